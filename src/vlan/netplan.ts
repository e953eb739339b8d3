import {
  type Configuration,
  type ConfigurationFile,
  contentOf,
  linesOf,
  printedFiles,
} from './configuration.ts';
import { commented, type End, isIpv6Address, protocolName } from './end.ts';
import { aboutDeviceMtu, removalLines } from './iproute2.ts';
import { NETWORKD_FOLDER } from './networkd.ts';

/** netplan files on systemd-networkd. */
export function netplan(end: End): Configuration {
  const { names, outer } = end;
  const folder = `${NETWORKD_FOLDER}/10-netplan-${names.outer}.netdev.d`;
  const dropIn = {
    path: `${folder}/50-slices.conf`,
    content: contentOf(['[VLAN]', `Protocol=${protocolName(outer)}`]),
  };
  // netplan has no key for the protocol, and makes 802.1Q.
  const isNeeded = outer === '802.1ad';
  const configuration = inNetplan(end, isNeeded ? [dropIn] : [], folder);
  if (!isNeeded) return configuration;
  return {
    ...configuration,
    text: [
      ...configuration.text,
      ...commented([
        '',
        `${dropIn.path} is needed too, else netplan makes the outer device with 802.1Q (0x8100):`,
        ...linesOf(dropIn),
      ]),
    ],
  };
}

/** @param more other files of the outer device. @param folder theirs, to be removed with it */
function inNetplan(end: End, more: readonly ConfigurationFile[], folder: string): Configuration {
  const { device, names } = end;
  const { outer, inner } = yamlLines(end);
  const file = (name: string, lines: readonly string[]): ConfigurationFile => ({
    path: `/etc/netplan/${name}.yaml`,
    content: contentOf(['network:', '  version: 2', ...lines]),
    isPrivate: true,
  });
  // netplan reads them in this order, and a device before those on it.
  const [shared, own] = [file(`60-slices-${names.outer}`, outer), file(`61-slices-${names.inner}`, inner)];
  const configuration = printedFiles(end, {
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
  return { ...configuration, files: [shared, own, ...more] };
}

/** The content of each of the two files below `network`. */
function yamlLines({ device, names, sTag, cTag, mtu, address }: End): {
  readonly outer: readonly string[];
  readonly inner: readonly string[];
} {
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
  return {
    outer: [
      '  ethernets:',
      `    ${below}:`,
      '      renderer: networkd',
      `      mtu: ${mtu.device}`,
      '  vlans:',
      ...vlan(names.outer, below, sTag, mtu.outer, null),
    ],
    inner: ['  vlans:', ...vlan(names.inner, names.outer, cTag, mtu.inner, address)],
  };
}
