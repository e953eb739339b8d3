import { type Configuration, configurationOf } from './configuration.ts';
import { type End, isIpv6Address, protocolName } from './end.ts';
import { carriesAnother, deleteLine, placeOf, shellLine } from './iproute2.ts';

/** Commands of NetworkManager, 1.42 or later. */
export function nmcli(end: End): Configuration {
  const { device, names, sTag, cTag, outer, mtu, address } = end;
  const below = `slices-${device}`;
  const call = (...words: readonly string[]): string => shellLine(['nmcli', 'connection', ...words]);
  /** @param size the MTU as a shell reads it */
  const add = (type: string, name: string, on: string, size: string, ...settings: string[]): string =>
    [
      call('add', 'type', type, 'con-name', name, 'ifname', on, ...settings, '802-3-ethernet.mtu'),
      size,
      shellLine(methods(on === names.inner ? address : null)),
    ].join(' ');
  const vlan = (name: string, parent: string, tag: number, protocol: string, size: number): string => {
    const settings = ['vlan.parent', parent, 'vlan.id', String(tag), 'vlan.protocol', protocol];
    return add('vlan', name, name, String(size), ...settings);
  };
  const isKnown = (name: string): string => `${call('show', name)} >/dev/null 2>&1`;
  /** To bring a shared connection up again would take the devices of others down for a moment. */
  const shared = (name: string, adding: string): string =>
    `${isKnown(name)} || { ${adding} && ${call('up', name)}; }`;
  const atLeast = (on: string, name: string, size: number): string =>
    `[ "$(cat ${placeOf(on, 'mtu')})" -ge ${size} ] || { ${call('modify', name, '802-3-ethernet.mtu', String(size))} && ${call('up', name)}; }`;
  // The MTU that it has, where that is larger.
  const larger = `"$({ echo ${mtu.device}; cat ${placeOf(device, 'mtu')}; } | sort -n | tail -n 1)"`;
  return configurationOf(end, {
    about: [
      `${device} gets the connection ${below}, which has no address. Where it has a connection that must stay, type in place of the first command: nmcli connection modify ITS_NAME 802-3-ethernet.mtu ${mtu.device}`,
    ],
    commands: [
      shared(below, add('ethernet', below, device, larger)),
      atLeast(device, below, mtu.device),
      shared(names.outer, vlan(names.outer, device, sTag, protocolName(outer), mtu.outer)),
      atLeast(names.outer, names.outer, mtu.outer),
      // A second connection of the same name would be made beside it.
      `! ${isKnown(names.inner)} || ${call('delete', names.inner)}`,
      vlan(names.inner, names.outer, cTag, protocolName('802.1q'), mtu.inner),
      call('up', names.inner),
    ],
    aboutRemoval: [`The connection ${below} goes when ${device} carries no other device.`],
    remove: [
      `! ${isKnown(names.inner)} || ${call('delete', names.inner)}`,
      // NetworkManager removes the devices of its connections in its own time.
      deleteLine(names.inner, true),
      `${carriesAnother(names.outer)} || nmcli -g NAME connection show | grep -q '^${names.outer}[.]' || ! ${isKnown(names.outer)} || ${call('delete', names.outer)}`,
      `${carriesAnother(names.outer)} || ${deleteLine(names.outer, true)}`,
      `${carriesAnother(device)} || ! ${isKnown(below)} || ${call('delete', below)}`,
    ],
  });
}

/** The settings of addresses: without one, both versions are off, since the link gives out none. */
function methods(address: string | null): readonly string[] {
  const used = address === null ? undefined : isIpv6Address(address) ? 'ipv6' : 'ipv4';
  return ['ipv4', 'ipv6'].flatMap((version) =>
    version === used && address !== null
      ? [`${version}.method`, 'manual', `${version}.addresses`, address]
      : [`${version}.method`, 'disabled'],
  );
}
