import { type Configuration, configurationOf, fileOf } from './configuration.ts';
import { type End, isIpv6Address } from './end.ts';
import { carriesAnother, deleteLine, ipLines, removalLines } from './iproute2.ts';

/** Where it reads files, if /etc/network/interfaces says so. */
const FOLDER = '/etc/network/interfaces.d';

/** A file of ifupdown for each device. Its own script for VLANs makes 802.1Q only, so `ip` makes the devices. */
export function ifupdown(ofBoth: End): Configuration {
  // That script takes names with a dot for its own.
  const end = { ...ofBoth, names: { ...ofBoth.names, inner: ofBoth.names.inner.replace('.', '-') } };
  const { names, address } = end;
  // It adds the address itself.
  const lines = ipLines({ ...end, address: null });
  const before = (line: string): string => `    pre-up ${line}`;
  const family = address !== null && isIpv6Address(address) ? 'inet6' : 'inet';
  const shared = fileOf(`${FOLDER}/${names.outer}`, [
    `auto ${names.outer}`,
    `iface ${names.outer} inet manual`,
    ...lines.outer.map(before),
    // It is shared: another inner device may be left.
    `    post-down ${carriesAnother(names.outer)} || ${deleteLine(names.outer)}`,
  ]);
  const own = fileOf(`${FOLDER}/${names.inner}`, [
    `auto ${names.inner}`,
    `iface ${names.inner} ${family} ${address === null ? 'manual' : 'static'}`,
    ...(address === null ? [] : [`    address ${address}`]),
    ...[...lines.mtu, ...lines.inner].map(before),
    `    post-down ${deleteLine(names.inner)}`,
  ]);
  return configurationOf(end, {
    about: [`/etc/network/interfaces must have the line: source ${FOLDER}/*`],
    files: [shared, own],
    commands: [`ifup ${names.outer} ${names.inner}`],
    aboutRemoval: [`The file of ${names.outer} goes with the last file of a device on it.`],
    remove: [
      // It fails for a device that is not its own.
      `ifdown ${names.inner} || true`,
      `rm -f ${own.path}`,
      `ls ${shared.path}[.-]* >/dev/null 2>&1 || { ifdown ${names.outer} || true; rm -f ${shared.path}; }`,
      ...removalLines(end),
    ],
  });
}
