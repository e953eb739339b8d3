#!/usr/bin/busybox sh
# The first process of a guest, started by guests.ts: a server with one network device, eth1, that runs what it is given; or,
# without an address, the provider's two sites between links, with a wire to each, vec0 and vec1, vec2 and vec3, and no server's tools.
# Root of the guest is whoever runs the tests, on the files of this machine: so `/` is mounted read-only, and all that is
# written goes into file systems in memory, or into the folder that the test gave it.
#
# A process of a guest costs far more processor time than one of this machine. So this shell is busybox's, whose programs
# are part of it, and what scripts need is left to /bin/sh, whose `ip` and `ping` are the real ones.
if [ "$1" != serve ]; then
  # By its path: busybox finds itself in /proc, which until then is that of the machine.
  /usr/bin/busybox mount -t proc proc /proc
  mount -t sysfs sys /sys
  # A checkout below /tmp stays where it is.
  checkout=${0%/test/packets/*}
  cd "$checkout"
  mount -t tmpfs tmp /tmp
  case $checkout in
    /tmp/*) mkdir -p "$checkout" && mount -o bind . "$checkout" ;;
  esac
  mount -t tmpfs tmp /run
  # Without `sync` what a command prints would stay in the guest until it ends.
  mount -t hostfs -o "$guest_folder,sync" none /mnt
  modules=/usr/lib/uml/modules/$(uname -r)/kernel
  if [ -n "$guest_address" ]; then
    # bridge needs ipv6, which needs crc-ccitt.
    needed="lib/crc-ccitt net/ipv6/ipv6 net/llc/llc net/802/stp net/bridge/bridge net/802/garp net/802/mrp
      net/8021q/8021q drivers/net/veth"
  else
    needed="net/sched/sch_ingress net/sched/cls_flower net/sched/act_vlan net/sched/act_mirred"
  fi
  for module in $needed; do
    insmod "$modules/$module.ko" || echo "no module $module"
  done
  # Lines come and go as they are, as long as the device is open.
  exec 3<>/dev/ttyS0
  stty raw -echo <&3
  export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
  exec /bin/sh "$0" serve
fi

if [ -n "$guest_address" ]; then
  # vec0, the wire, takes no MTU above 1500 when it runs. So the device that is configured is another, bridged to it: frames of
  # 1522 bytes pass, since a bridge counts neither of the tags.
  echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
  echo 1 >/proc/sys/net/ipv6/conf/vec0/disable_ipv6
  ip -batch - <<END
link add name br0 type bridge mcast_snooping 0
link add name port type veth peer name eth1 address $guest_address
link set vec0 master br0
link set port master br0
link set vec0 up
link set port up
link set br0 up
link set lo up
END
  echo 0 >/proc/sys/net/ipv6/conf/default/disable_ipv6
  echo 0 >/proc/sys/net/ipv6/conf/eth1/disable_ipv6
else
  for device in vec0 vec1 vec2 vec3; do
    ip link set "$device" up
  done
fi

# Each line names a script; a line goes back when it has ended, with its exit code. The guest ends with the other end of
# the line.
cd /mnt || exit 1
echo ready >&3
while read -r name <&3; do
  {
    (. "./$name") >"$name.stdout" 2>"$name.stderr" </dev/null 3>&-
    echo "$name $?" >&3
  } &
done
exec /usr/bin/busybox poweroff -f
