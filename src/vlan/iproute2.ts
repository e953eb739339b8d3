import { shellWord } from '../contract/failure.ts';
import { aboutEnd, type End, oneLine } from './end.ts';

/** A program and its arguments. */
export type ProgramCall = readonly string[];

/** The calls of `ip` that make the two devices of an end, in order. A child's MTU can't be above its parent's. */
export function ipCalls({ device, names, sTag, cTag, outer, mtu, address }: End): readonly ProgramCall[] {
  const link = (parent: string, name: string, size: number, protocol: string, tag: number): ProgramCall => [
    ...['ip', 'link', 'add', 'link', parent, 'name', name, 'mtu', String(size)],
    ...['type', 'vlan', 'proto', protocol, 'id', String(tag)],
  ];
  return [
    ['ip', 'link', 'set', 'dev', device, 'mtu', String(mtu.device), 'up'],
    link(device, names.outer, mtu.outer, outer === '802.1ad' ? '802.1ad' : '802.1Q', sTag),
    link(names.outer, names.inner, mtu.inner, '802.1Q', cTag),
    ...(address === null ? [] : [['ip', 'address', 'add', address, 'dev', names.inner]]),
    ['ip', 'link', 'set', 'dev', names.outer, 'up'],
    ['ip', 'link', 'set', 'dev', names.inner, 'up'],
  ];
}

/** The calls of `ip` that undo {@link ipCalls}: the inner device goes with the outer one. The parent's MTU stays. */
export function ipRemovalCalls({ names }: Pick<End, 'names'>): readonly ProgramCall[] {
  return [['ip', 'link', 'del', names.outer]];
}

/** A call as a line for a shell. */
export function shellLine(call: ProgramCall): string {
  return call.map(shellWord).join(' ');
}

/** Lines as comments of a shell, YAML or INI file. */
export function commented(lines: readonly string[]): readonly string[] {
  return lines.map((line) => `# ${oneLine(line)}`);
}

/** The lines of a shell script that configures an end until the next restart of the machine. */
export function iproute2(end: End): readonly string[] {
  const { device, mtu } = end;
  return [
    ...commented([
      ...aboutEnd(end),
      `Run it as root. Where the MTU of ${device} is more than ${mtu.device} already, leave "mtu ${mtu.device}" out of the first line.`,
    ]),
    ...ipCalls(end).map(shellLine),
  ];
}

/** The lines of a shell script that undoes {@link iproute2}. */
export function iproute2Removal(end: End): readonly string[] {
  const { names, device, reservation, site } = end;
  return [
    ...commented([
      `Reservation ${reservation.id} at ${site}`,
      `Removes ${names.outer}, and ${names.inner} with it. The MTU of ${device} stays as it is.`,
    ]),
    ...ipRemovalCalls(end).map(shellLine),
  ];
}
