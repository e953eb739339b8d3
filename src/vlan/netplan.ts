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

type Renderer = 'networkd' | 'NetworkManager';

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
  const configuration = inNetplan(end, 'networkd', isNeeded ? [dropIn] : [], folder);
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

/** netplan files on NetworkManager, 1.42 or later. */
export function netplanNm(end: End): Configuration {
  return inNetplan(end, 'NetworkManager', []);
}

/** @param more other files of the outer device. @param folder theirs, to be removed with it */
function inNetplan(
  end: End,
  renderer: Renderer,
  more: readonly ConfigurationFile[],
  folder?: string,
): Configuration {
  const { device, names } = end;
  const { outer, inner } = yamlLines(end, renderer);
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
      `ls /etc/netplan/61-slices-${names.outer}.*.yaml >/dev/null 2>&1 || rm -rf ${[shared.path, ...(folder ? [folder] : [])].join(' ')}`,
      'netplan apply',
      // Before, NetworkManager would make them again.
      ...removalLines(end),
    ],
  });
  return { ...configuration, files: [shared, own, ...more] };
}

/** The content of each of the two files below `network`. */
function yamlLines(
  { device, names, sTag, cTag, outer, mtu, address }: End,
  renderer: Renderer,
): { readonly outer: readonly string[]; readonly inner: readonly string[] } {
  const onNm = renderer === 'NetworkManager';
  /** A name that YAML could take for a number, such as `1e3`. */
  const below = JSON.stringify(device);
  const vlan = (
    name: string,
    parent: string,
    tag: number,
    size: number,
    protocol: string,
    own: string | null,
  ) => {
    const off = ['ipv4', 'ipv6'].filter(
      (version) => own === null || isIpv6Address(own) !== (version === 'ipv6'),
    );
    return [
      `    ${name}:`,
      `      renderer: ${renderer}`,
      `      id: ${tag}`,
      `      link: ${parent}`,
      `      mtu: ${size}`,
      // IPv6 does not work without a link-local address (RFC 4291 §2.1). NetworkManager's methods say it
      // below.
      ...(own !== null && isIpv6Address(own)
        ? ['      accept-ra: false']
        : onNm
          ? []
          : ['      link-local: []']),
      ...(own === null ? [] : [`      addresses: [${JSON.stringify(own)}]`]),
      ...(onNm
        ? [
            '      networkmanager:',
            '        passthrough:',
            `          vlan.protocol: "${protocol}"`,
            ...off.map((version) => `          ${version}.method: disabled`),
          ]
        : ['      optional: true']),
    ];
  };
  return {
    outer: [
      '  ethernets:',
      `    ${below}:`,
      `      renderer: ${renderer}`,
      `      mtu: ${mtu.device}`,
      '  vlans:',
      ...vlan(names.outer, below, sTag, mtu.outer, protocolName(outer), null),
    ],
    inner: ['  vlans:', ...vlan(names.inner, names.outer, cTag, mtu.inner, protocolName('802.1q'), address)],
  };
}
