import { type Configuration, shellScript } from './configuration.ts';
import { type End, isIpv6Address, protocolName } from './end.ts';
import { removalLine, shellLine } from './iproute2.ts';

/** Commands of NetworkManager, 1.42 or later. */
export function nmcli(end: End): Configuration {
  const { device, names, sTag, cTag, outer, mtu, address } = end;
  const below = `slices-${device}`;
  const call = (...words: readonly string[]): string => shellLine(['nmcli', 'connection', ...words]);
  const add = (
    type: string,
    name: string,
    on: string,
    size: number,
    ...settings: readonly string[]
  ): string =>
    call(
      ...['add', 'type', type, 'con-name', name, 'ifname', on, ...settings],
      ...['802-3-ethernet.mtu', String(size), ...methods(on === names.inner ? address : null)],
    );
  const vlan = (name: string, parent: string, tag: number, protocol: string, size: number): string =>
    add('vlan', name, name, size, 'vlan.parent', parent, 'vlan.id', String(tag), 'vlan.protocol', protocol);
  return shellScript(end, {
    about: [
      `${device} gets the connection ${below}, which has no address. Where it has a connection that must stay, type in place of the first command: nmcli connection modify ITS_NAME 802-3-ethernet.mtu ${mtu.device}`,
    ],
    commands: [
      // To bring it up again would take other VLANs down for a moment.
      `${call('show', below)} >/dev/null 2>&1 || { ${add('ethernet', below, device, mtu.device)} && ${call('up', below)}; }`,
      vlan(names.outer, device, sTag, protocolName(outer), mtu.outer),
      vlan(names.inner, names.outer, cTag, protocolName('802.1q'), mtu.inner),
      call('up', names.outer),
      call('up', names.inner),
    ],
    aboutRemoval: [`The connection ${below} goes when ${device} carries no other device.`],
    remove: [
      call('delete', names.inner, names.outer),
      removalLine(end),
      `ls -d ${shellLine([`/sys/class/net/${device}/upper_`])}* >/dev/null 2>&1 || ${call('delete', below)}`,
    ],
  });
}

/** The settings of addresses: without one, both versions are off, since nothing on the link gives out addresses. */
function methods(address: string | null): readonly string[] {
  const off = (version: string) => [`${version}.method`, 'disabled'];
  const on = (version: string, own: string) => [`${version}.method`, 'manual', `${version}.addresses`, own];
  if (address === null) return [...off('ipv4'), ...off('ipv6')];
  return isIpv6Address(address)
    ? [...off('ipv4'), ...on('ipv6', address)]
    : [...on('ipv4', address), ...off('ipv6')];
}
