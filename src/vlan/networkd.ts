import { type Configuration, type ConfigurationFile, contentOf, printedFiles } from './configuration.ts';
import { type End, isIpv6Address, protocolName } from './end.ts';
import { aboutDeviceMtu, removalLines } from './iproute2.ts';

/** Where systemd-networkd reads its files. */
export const NETWORKD_FOLDER = '/etc/systemd/network';

/** A file of sections, as systemd reads it. */
function unit(path: string, sections: Readonly<Record<string, readonly string[]>>): ConfigurationFile {
  const lines = Object.entries(sections).map(([name, values]) => contentOf([`[${name}]`, ...values]));
  return { path: `${NETWORKD_FOLDER}/${path}`, content: lines.join('\n') };
}

/**
 * Files of systemd-networkd. It applies one `.network` file to a device, the first that matches. So the
 * device below has one file whatever it carries, and the outer one too, which reservations share: what is on
 * them is added by drop-ins.
 */
export function networkd(end: End): Configuration {
  const { device, names, sTag, cTag, outer, mtu, address } = end;
  const vlan = (name: string, size: number, tag: number, protocol: string): ConfigurationFile =>
    unit(`10-${name}.netdev`, {
      NetDev: [`Name=${name}`, 'Kind=vlan', `MTUBytes=${size}`],
      VLAN: [`Id=${tag}`, `Protocol=${protocol}`],
    });
  const link = (
    file: string,
    name: string,
    settings: readonly string[],
    addresses: readonly string[],
  ): ConfigurationFile =>
    unit(`${file}.network`, {
      Match: [`Name=${name}`],
      // Without an address a device is never online for systemd, which would wait for it at boot.
      Link: [...settings, 'RequiredForOnline=no'],
      Network: addresses,
    });
  const quiet = 'LinkLocalAddressing=no';
  const isIpv6 = address !== null && isIpv6Address(address);
  /** Puts a device on that of a file. */
  const dropIn = (file: ConfigurationFile, name: string): ConfigurationFile => ({
    path: `${file.path}.d/${name}.conf`,
    content: contentOf(['[Network]', `VLAN=${name}`]),
  });
  const below = link(`10-slices-${device}`, device, [`MTUBytes=${mtu.device}`], [quiet]);
  const carrier = link(`10-${names.outer}`, names.outer, [], [quiet]);
  const shared = [
    dropIn(below, names.outer),
    vlan(names.outer, mtu.outer, sTag, protocolName(outer)),
    carrier,
  ];
  const own = [
    dropIn(carrier, names.inner),
    vlan(names.inner, mtu.inner, cTag, protocolName('802.1q')),
    link(
      `10-${names.inner}`,
      names.inner,
      [],
      [
        // IPv6 does not work without a link-local address (RFC 4291 §2.1).
        isIpv6 ? 'IPv6AcceptRA=no' : quiet,
        ...(address === null ? [] : [`Address=${address}`]),
      ],
    ),
  ];
  const remove = (files: readonly ConfigurationFile[]): string =>
    `rm -f ${files.map(({ path }) => path).join(' ')}`;
  /** Lines that remove files, unless drop-ins are left to one of them. */
  const removeUnused = (
    { path }: ConfigurationFile,
    files: readonly ConfigurationFile[],
  ): readonly string[] => [`rmdir ${path}.d 2>/dev/null || true`, `[ -e ${path}.d ] || ${remove(files)}`];
  return printedFiles(end, {
    about: [
      aboutDeviceMtu(end),
      `${device} is used for VLANs only. Where it has a .network file already, add VLAN=${names.outer} and MTUBytes=${mtu.device} there, and leave 10-slices-${device}.network and its drop-in out.`,
    ],
    files: [below, ...shared, ...own],
    commands: ['networkctl reload'],
    aboutRemoval: [`The files of ${names.outer} and ${device} go with their last drop-in.`],
    remove: [
      remove(own),
      ...removeUnused(carrier, shared),
      ...removeUnused(below, [below]),
      ...removalLines(end),
      'networkctl reload',
    ],
  });
}
