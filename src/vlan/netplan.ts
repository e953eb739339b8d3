import {
  type Configuration,
  type ConfigurationFile,
  contentOf,
  linesOf,
  printedFiles,
} from './configuration.ts';
import { commented, type End, isIpv6Address, protocolName } from './end.ts';
import { removalLine } from './iproute2.ts';
import { NETWORKD_FOLDER } from './networkd.ts';

type Renderer = 'networkd' | 'NetworkManager';

/** A netplan file on systemd-networkd. */
export function netplan(end: End): Configuration {
  const { names, outer } = end;
  const folder = `${NETWORKD_FOLDER}/10-netplan-${names.outer}.netdev.d`;
  const dropIn = {
    path: `${folder}/50-slices.conf`,
    content: contentOf(['[VLAN]', `Protocol=${protocolName(outer)}`]),
  };
  // netplan has no key for the protocol, and makes 802.1Q.
  const isNeeded = outer === '802.1ad';
  const configuration = inNetplan(end, 'networkd', isNeeded ? [dropIn] : [], [`rm -rf ${folder}`]);
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

/** A netplan file on NetworkManager, 1.42 or later. */
export function netplanNm(end: End): Configuration {
  return inNetplan(end, 'NetworkManager', [], []);
}

function inNetplan(
  end: End,
  renderer: Renderer,
  more: readonly ConfigurationFile[],
  removeMore: readonly string[],
): Configuration {
  const path = `/etc/netplan/60-slices-${end.names.outer}.yaml`;
  const yaml = { path, content: contentOf(yamlLines(end, renderer)), isPrivate: true };
  const configuration = printedFiles(end, {
    about: [
      `Where netplan knows ${end.device} as a bond or a bridge, set its mtu there, and leave "ethernets" out.`,
    ],
    files: [yaml],
    commands: ['netplan apply'],
    remove: [`rm -f ${path}`, ...removeMore, removalLine(end), 'netplan apply'],
  });
  return { ...configuration, files: [yaml, ...more] };
}

function yamlLines(
  { device, names, sTag, cTag, outer, mtu, address }: End,
  renderer: Renderer,
): readonly string[] {
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
      // IPv6 does not work without a link-local address (RFC 4291 §2.1).
      ...(own !== null && isIpv6Address(own) ? ['      accept-ra: false'] : ['      link-local: []']),
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
  return [
    'network:',
    '  version: 2',
    '  ethernets:',
    `    ${below}:`,
    `      renderer: ${renderer}`,
    `      mtu: ${mtu.device}`,
    '  vlans:',
    ...vlan(names.outer, below, sTag, mtu.outer, protocolName(outer), null),
    ...vlan(names.inner, names.outer, cTag, mtu.inner, protocolName('802.1q'), address),
  ];
}
