import { type Configuration, type ConfigurationFile, configurationOf, fileOf } from './configuration.ts';
import { type End, isIpv6Address, protocolName } from './end.ts';
import { aboutDeviceMtu, removalLines } from './iproute2.ts';

/** Where systemd-networkd reads its files. */
export const NETWORKD_FOLDER = '/etc/systemd/network';

/**
 * Files of systemd-networkd. It applies one `.network` file to a device, the first that matches. So the
 * device below has one file whatever it carries, and the outer one too, which reservations share: what is on
 * them is added by drop-ins.
 */
export function networkd(end: End): Configuration {
  const { device, names, sTag, cTag, outer, mtu, address } = end;
  const file = (name: string, ...lines: readonly string[]): ConfigurationFile =>
    fileOf(`${NETWORKD_FOLDER}/${name}`, lines);
  const vlan = (name: string, size: number, tag: number, protocol: string): ConfigurationFile =>
    file(
      `10-${name}.netdev`,
      ...['[NetDev]', `Name=${name}`, 'Kind=vlan', `MTUBytes=${size}`, ''],
      ...['[VLAN]', `Id=${tag}`, `Protocol=${protocol}`],
    );
  /** @param on settings of the device, and of the network on it */
  const link = (path: string, name: string, on: { link?: string[]; network: string[] }): ConfigurationFile =>
    file(
      `${path}.network`,
      ...['[Match]', `Name=${name}`, ''],
      // Without an address a device is never online for systemd, which would wait for it at boot.
      ...['[Link]', ...(on.link ?? []), 'RequiredForOnline=no', ''],
      ...['[Network]', ...on.network],
    );
  const quiet = 'LinkLocalAddressing=no';
  // IPv6 does not work without a link-local address (RFC 4291 §2.1).
  const own = address !== null && isIpv6Address(address) ? 'IPv6AcceptRA=no' : quiet;
  /** Puts a device on that of a file. */
  const dropIn = ({ path }: ConfigurationFile, name: string): ConfigurationFile =>
    fileOf(`${path}.d/${name}.conf`, ['[Network]', `VLAN=${name}`]);
  const below = link(`10-slices-${device}`, device, { link: [`MTUBytes=${mtu.device}`], network: [quiet] });
  const carrier = link(`10-${names.outer}`, names.outer, { network: [quiet] });
  const shared = [
    dropIn(below, names.outer),
    vlan(names.outer, mtu.outer, sTag, protocolName(outer)),
    carrier,
  ];
  const inner = [
    dropIn(carrier, names.inner),
    vlan(names.inner, mtu.inner, cTag, protocolName('802.1q')),
    link(`10-${names.inner}`, names.inner, {
      network: [own, ...(address === null ? [] : [`Address=${address}`])],
    }),
  ];
  const remove = (files: readonly ConfigurationFile[]): string =>
    `rm -f ${files.map(({ path }) => path).join(' ')}`;
  /** Lines that remove files, unless drop-ins are left to one of them. */
  const removeUnused = ({ path }: ConfigurationFile, files: readonly ConfigurationFile[]) => [
    `rmdir ${path}.d 2>/dev/null || true`,
    `[ -e ${path}.d ] || ${remove(files)}`,
  ];
  return configurationOf(end, {
    about: [
      aboutDeviceMtu(end),
      `${device} is used for VLANs only. Where it has a .network file already, add VLAN=${names.outer} and MTUBytes=${mtu.device} there, and leave 10-slices-${device}.network and its drop-in out.`,
    ],
    files: [below, ...shared, ...inner],
    commands: ['networkctl reload'],
    aboutRemoval: [`The files of ${names.outer} and ${device} go with their last drop-in.`],
    remove: [
      remove(inner),
      ...removeUnused(carrier, shared),
      ...removeUnused(below, [below]),
      ...removalLines(end),
      'networkctl reload',
    ],
  });
}
