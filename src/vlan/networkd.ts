import { type Configuration, type ConfigurationFile, contentOf, printedFiles } from './configuration.ts';
import { type End, isIpv6Address, protocolName } from './end.ts';
import { removalLine } from './iproute2.ts';

/** Where systemd-networkd reads its files. */
export const NETWORKD_FOLDER = '/etc/systemd/network';

/** A file of sections, as systemd reads it. */
function unit(path: string, sections: Readonly<Record<string, readonly string[]>>): ConfigurationFile {
  const lines = Object.entries(sections).map(([name, values]) => contentOf([`[${name}]`, ...values]));
  return { path: `${NETWORKD_FOLDER}/${path}`, content: lines.join('\n') };
}

/**
 * Files of systemd-networkd. It applies one `.network` file to a device, the first that matches. So the device below has
 * one file whatever it carries, and each reservation adds its VLAN in a drop-in.
 */
export function networkd(end: End): Configuration {
  const { device, names, sTag, cTag, outer, mtu, address } = end;
  const below = `10-slices-${device}.network`;
  const dropIns = `${NETWORKD_FOLDER}/${below}.d`;
  const vlan = (name: string, size: number, tag: number, protocol: string): ConfigurationFile =>
    unit(`10-${name}.netdev`, {
      NetDev: [`Name=${name}`, 'Kind=vlan', `MTUBytes=${size}`],
      VLAN: [`Id=${tag}`, `Protocol=${protocol}`],
    });
  // Without an address a device is never online for systemd, which would wait for it at boot.
  const notWaitedFor = 'RequiredForOnline=no';
  const quiet = 'LinkLocalAddressing=no';
  const isIpv6 = address !== null && isIpv6Address(address);
  const own = [
    vlan(names.outer, mtu.outer, sTag, protocolName(outer)),
    unit(`10-${names.outer}.network`, {
      Match: [`Name=${names.outer}`],
      Link: [notWaitedFor],
      Network: [`VLAN=${names.inner}`, quiet],
    }),
    vlan(names.inner, mtu.inner, cTag, protocolName('802.1q')),
    unit(`10-${names.inner}.network`, {
      Match: [`Name=${names.inner}`],
      Link: [notWaitedFor],
      Network: [
        // IPv6 does not work without a link-local address (RFC 4291 §2.1).
        isIpv6 ? 'IPv6AcceptRA=no' : quiet,
        ...(address === null ? [] : [`Address=${address}`]),
      ],
    }),
  ];
  const shared = unit(below, {
    Match: [`Name=${device}`],
    Link: [`MTUBytes=${mtu.device}`, notWaitedFor],
    Network: [quiet],
  });
  const dropIn = unit(`${below}.d/${names.outer}.conf`, { Network: [`VLAN=${names.outer}`] });
  return printedFiles(end, {
    about: [
      `${device} is used for VLANs only. Where it has a .network file already, add VLAN=${names.outer} and MTUBytes=${mtu.device} there, and leave ${below} and its drop-in out.`,
    ],
    files: [shared, dropIn, ...own],
    commands: ['networkctl reload'],
    aboutRemoval: [`The file of ${device} goes with its last drop-in.`],
    remove: [
      `rm -f ${[dropIn, ...own].map(({ path }) => path).join(' ')}`,
      `rmdir --ignore-fail-on-non-empty ${dropIns}`,
      `[ -e ${dropIns} ] || rm -f ${shared.path}`,
      removalLine(end),
      'networkctl reload',
    ],
  });
}
