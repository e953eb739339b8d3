import { type Configuration, configurationOf, fileOf, linesOf } from './configuration.ts';
import { commented, type End, isIpv6Address, protocolName } from './end.ts';
import { aboutDeviceMtu, removalLines } from './iproute2.ts';
import { NETWORKD_FOLDER } from './networkd.ts';

/** netplan files on systemd-networkd. */
export function netplan(end: End): Configuration {
  const { device, names, sTag, cTag, mtu, address, outer } = end;
  /** A name that YAML could take for a number, such as `1e3`. */
  const below = JSON.stringify(device);
  const vlan = (name: string, parent: string, tag: number, size: number, own: string | null) => [
    `    ${name}:`,
    '      renderer: networkd',
    `      id: ${tag}`,
    `      link: ${parent}`,
    `      mtu: ${size}`,
    // IPv6 does not work without a link-local address (RFC 4291 §2.1).
    own !== null && isIpv6Address(own) ? '      accept-ra: false' : '      link-local: []',
    ...(own === null ? [] : [`      addresses: [${JSON.stringify(own)}]`]),
    '      optional: true',
  ];
  const file = (name: string, ...lines: readonly string[]) =>
    fileOf(`/etc/netplan/${name}.yaml`, ['network:', '  version: 2', ...lines], true);
  // netplan reads them in this order, and a device before those on it.
  const shared = file(
    `60-slices-${names.outer}`,
    ...['  ethernets:', `    ${below}:`, '      renderer: networkd', `      mtu: ${mtu.device}`],
    ...['  vlans:', ...vlan(names.outer, below, sTag, mtu.outer, null)],
  );
  const own = file(
    `61-slices-${names.inner}`,
    ...['  vlans:', ...vlan(names.inner, names.outer, cTag, mtu.inner, address)],
  );
  const folder = `${NETWORKD_FOLDER}/10-netplan-${names.outer}.netdev.d`;
  const configuration = configurationOf(end, {
    about: [
      aboutDeviceMtu(end),
      `Where netplan knows ${device} as a bond or a bridge, set its mtu there, and leave "ethernets" out.`,
    ],
    files: [shared, own],
    commands: ['netplan apply'],
    aboutRemoval: [`The file of ${names.outer} goes with the last file of a device on it.`],
    remove: [
      `rm -f ${own.path}`,
      `ls /etc/netplan/61-slices-${names.outer}.*.yaml >/dev/null 2>&1 || rm -rf ${shared.path} ${folder}`,
      'netplan apply',
      ...removalLines(end),
    ],
  });
  if (outer !== '802.1ad') return configuration;
  // netplan has no key for the protocol, and makes 802.1Q.
  const dropIn = fileOf(`${folder}/50-slices.conf`, ['[VLAN]', `Protocol=${protocolName(outer)}`]);
  const needed = `${dropIn.path} is needed too, else netplan makes the outer device with 802.1Q (0x8100):`;
  return {
    ...configuration,
    files: [...configuration.files, dropIn],
    text: [...configuration.text, ...commented(['', needed, ...linesOf(dropIn)])],
  };
}
