import { type Configuration, type ConfigurationFile, contentOf, printedFiles } from './configuration.ts';
import { type End, isIpv6Address } from './end.ts';
import { carriesAnother, deleteLine, ipLines, removalLines, shellLine } from './iproute2.ts';

/** Where it reads files, if /etc/network/interfaces says so. */
const FOLDER = '/etc/network/interfaces.d';

/** A file of ifupdown. Its own script for VLANs makes 802.1Q only, so `ip` makes the devices. */
export function ifupdown(ofBoth: End): Configuration {
  // That script takes names with a dot for its own.
  const end = { ...ofBoth, names: { ...ofBoth.names, inner: ofBoth.names.inner.replace('.', '-') } };
  const { names, address } = end;
  // It adds the address itself.
  const { mtu, outer, inner } = ipLines({ ...end, address: null });
  const before = (line: string): string => `    pre-up ${line}`;
  return inInterfaces(end, {
    devices: [names.outer, names.inner],
    outer: [
      `auto ${names.outer}`,
      `iface ${names.outer} inet manual`,
      ...outer.map(before),
      // It is shared: another inner device may be left.
      `    post-down ${carriesAnother(names.outer)} || ${deleteLine(names.outer)}`,
    ],
    inner: [
      `auto ${names.inner}`,
      `iface ${names.inner} ${address === null ? 'inet manual' : `${isIpv6Address(address) ? 'inet6' : 'inet'} static`}`,
      ...(address === null ? [] : [`    address ${address}`]),
      ...[...mtu, ...inner].map(before),
      `    post-down ${deleteLine(names.inner)}`,
    ],
  });
}

/** Its files: one for the outer device, which reservations share, one for the inner. */
interface Interfaces {
  /** In the order in which they come up. */
  readonly devices: readonly string[];
  readonly outer: readonly string[];
  readonly inner: readonly string[];
}

function inInterfaces(end: End, { devices, outer, inner }: Interfaces): Configuration {
  const { names } = end;
  const file = (name: string, lines: readonly string[]): ConfigurationFile => ({
    path: `${FOLDER}/${name}`,
    content: contentOf(lines),
  });
  const [shared, own] = [file(names.outer, outer), file(names.inner, inner)];
  // Both fail for a device that is not theirs.
  const down = (name: string): string => `${shellLine(['ifdown', name])} || true`;
  return printedFiles(end, {
    about: [`/etc/network/interfaces must have the line: source ${FOLDER}/*`],
    files: [shared, own],
    commands: [shellLine(['ifup', ...devices])],
    aboutRemoval: [`The file of ${names.outer} goes with the last file of a device on it.`],
    remove: [
      down(names.inner),
      `rm -f ${own.path}`,
      `ls ${shared.path}[.-]* >/dev/null 2>&1 || { ${down(names.outer)}; rm -f ${shared.path}; }`,
      ...removalLines(end),
    ],
  });
}
