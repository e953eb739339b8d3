#!/bin/bash
# The first process of a guest, started by guests.ts: a server with one network device, eth1, that runs what it is given.
# Root of the guest is whoever runs the tests, on the files of this machine: so `/` is mounted read-only, and all that is
# written goes into file systems in memory, or into the folder that the test gave it.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmp /tmp
mount -t tmpfs tmp /run
# Without `sync` what a command prints would stay in the guest until it ends.
mount -t hostfs -o "$guest_folder,sync" none /mnt
cd /mnt || exit 1

# bridge needs ipv6, which needs crc-ccitt.
modules=/usr/lib/uml/modules/$(uname -r)/kernel
for module in lib/crc-ccitt net/ipv6/ipv6 net/llc/llc net/802/stp net/bridge/bridge net/802/garp net/802/mrp \
  net/8021q/8021q drivers/net/veth; do
  busybox insmod "$modules/$module.ko" || echo "no module $module"
done

# vec0, the wire, takes no MTU above 1500 when it runs. So the device that is configured is another, bridged to it: frames of
# 1522 bytes pass, since a bridge counts neither of the tags.
ip link add eth1 address "$guest_address" type veth peer name port
ip link add name br0 type bridge mcast_snooping 0
for device in vec0 port br0; do
  echo 1 >/proc/sys/net/ipv6/conf/$device/disable_ipv6
  [ $device = br0 ] || ip link set $device master br0
  ip link set $device up
done
ip link set lo up
mkfifo /tmp/never
exec 9<>/tmp/never
echo >ready

# Commands come as files, and their results go as files; each is renamed when it is whole. The guest ends by itself,
# should nobody be left to end it.
while read -r up _ </proc/uptime && [ "${up%.*}" -lt "$guest_seconds" ]; do
  for file in *.command; do
    [ -e "$file" ] || break
    name=${file%.command}
    mv "$file" "$name.begun"
    (
      sh "$name.begun" >"$name.stdout" 2>"$name.stderr" </dev/null
      echo $? >"$name.code"
      mv "$name.code" "$name.ended"
    ) &
  done
  # A pause without a process of its own, which would cost more than all the rest.
  read -r -t 0.03 -u 9 _
done
busybox poweroff -f
