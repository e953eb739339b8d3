import { type Configuration, contentOf, printedFiles } from './configuration.ts';
import { type End, isIpv6Address } from './end.ts';
import { ipCalls, removalLine, shellLine } from './iproute2.ts';

/** Where both programs read files, if /etc/network/interfaces says so. */
const FOLDER = '/etc/network/interfaces.d';

/** A file of ifupdown. Its own script for VLANs makes 802.1Q only, so `ip` makes the devices. */
export function ifupdown(end: End): Configuration {
  const { names, address } = end;
  // That script takes names with a dot for its own.
  const inner = names.inner.replace('.', '-');
  const { device, outer, inner: addInner, up } = ipCalls(end, inner);
  const [outerUp = [], innerUp = []] = up;
  return inInterfaces(
    end,
    [names.outer, inner],
    [
      `auto ${names.outer}`,
      `iface ${names.outer} inet manual`,
      `    pre-up ${shellLine(device)}`,
      `    pre-up ${shellLine(outer)}`,
      `    up ${shellLine(outerUp)}`,
      `    post-down ${removeIfThere(names.outer)}`,
      '',
      `auto ${inner}`,
      `iface ${inner} ${address === null ? 'inet manual' : `${isIpv6Address(address) ? 'inet6' : 'inet'} static`}`,
      ...(address === null ? [] : [`    address ${address}`]),
      `    pre-up ${shellLine(addInner)}`,
      `    up ${shellLine(innerUp)}`,
      `    post-down ${removeIfThere(inner)}`,
    ],
  );
}

/** The inner device goes with the outer one, whichever of the two is taken down first. */
function removeIfThere(name: string): string {
  return `[ ! -e /sys/class/net/${name} ] || ip link del ${name}`;
}

/** A file of ifupdown2, which knows the protocol. */
export function ifupdown2(end: End): Configuration {
  const { device, names, sTag, cTag, outer, mtu, address } = end;
  return inInterfaces(
    end,
    [device, names.outer, names.inner],
    [
      `auto ${device}`,
      `iface ${device}`,
      `    mtu ${mtu.device}`,
      '',
      `auto ${names.outer}`,
      `iface ${names.outer}`,
      `    vlan-raw-device ${device}`,
      `    vlan-id ${sTag}`,
      `    vlan-protocol ${outer}`,
      `    mtu ${mtu.outer}`,
      '',
      `auto ${names.inner}`,
      `iface ${names.inner}`,
      ...(address === null ? [] : [`    address ${address}`]),
      `    vlan-raw-device ${names.outer}`,
      `    vlan-id ${cTag}`,
      '    vlan-protocol 802.1q',
      `    mtu ${mtu.inner}`,
    ],
  );
}

/** @param devices in the order in which they come up */
function inInterfaces(end: End, devices: readonly string[], lines: readonly string[]): Configuration {
  const path = `${FOLDER}/${end.names.outer}`;
  const made = devices.filter((name) => name !== end.device).toReversed();
  return printedFiles(end, {
    about: [`/etc/network/interfaces must have the line: source ${FOLDER}/*`],
    files: [{ path, content: contentOf(lines) }],
    commands: [shellLine(['ifup', ...devices])],
    remove: [shellLine(['ifdown', ...made]), `rm -f ${path}`, removalLine(end)],
  });
}
