import type { End } from '../../vlan/end.ts';
import type { Machine } from '../machine.ts';
import { type Device, devicesOf } from './devices.ts';
import type { Listener } from './listening.ts';
import { heardIn, outerEthertype, Q, type Stack, stackText } from './stacks.ts';

/** A VLAN device whose counter shows that frames with its stack of tags arrive. */
interface Watched {
  readonly stack: Stack;
  /** The device that it is on. */
  readonly parent: string;
  /** Its name. */
  readonly name: string;
  /** Whether it is made for this. */
  readonly isOurs: boolean;
}

/**
 * What the names of devices that are made for watching start with: 14 characters. Another reservation may have the outer
 * device too, and be watched at the same time.
 */
const prefixOf = ({ names, cTag }: Pick<End, 'names' | 'cTag'>): string =>
  `${names.outer}${String(cTag).padStart(4, '0')}`;

/** The stacks that are watched: those that mistakes of the other end make, as far as they are known before. */
function stacksFor(end: End): readonly Stack[] {
  const { sTag, cTag, otherSTag, otherCTag } = end;
  const right = outerEthertype(end);
  const wrong = right === Q ? '88a8' : Q;
  const stacks: Stack[] = [];
  const add = (outerKind: string, outer: number, inner: number): void => {
    const single: Stack = [{ ethertype: outerKind, id: outer }];
    for (const stack of [single, [...single, { ethertype: Q, id: inner }]]) {
      if (!stacks.some((other) => stackText(other) === stackText(stack))) stacks.push(stack);
    }
  };
  for (const [s, c] of [
    [sTag, cTag],
    [otherSTag, otherCTag],
  ] as const) {
    add(right, s, c);
    add(right, c, s);
    add(wrong, s, c);
    add(Q, c, s);
  }
  for (const inner of [sTag, otherSTag, otherCTag]) add(right, sTag, inner);
  return stacks;
}

/**
 * Listens without tcpdump: VLAN devices without addresses are made on the stacks that mistakes make, and their counters
 * tell what arrives. They can't send: no ARP, no multicast, no address. Needs root.
 *
 * Which C-tag it is behind the own S-tag is known only for the reservation's tags. Others are told from frames with one tag
 * by what the kernel reads: it learns a neighbour from ARP, and counts IPv6, where there is no second tag.
 *
 * @param readText reads a file of /proc
 * @param stop removes what was made so far
 */
export async function watchStacks(
  end: End,
  machine: Machine,
  readText: (path: string) => Promise<string>,
  stop: AbortSignal,
): Promise<Listener> {
  const run = async (...words: readonly string[]): Promise<number> =>
    (await machine.runProgram(['ip', ...words])).exitCode;
  const prefix = prefixOf(end);
  const remove = async (): Promise<void> => {
    const left = (await devicesOf(machine)).filter(({ name }) => name.startsWith(prefix));
    // A device goes with the one that it is on.
    for (const { name } of left.filter(({ parent }) => !parent?.startsWith(prefix))) {
      await run('link', 'del', name);
    }
  };
  // An earlier probe may have been killed.
  await remove();
  const found = await devicesOf(machine);
  const watched: Watched[] = [];
  const parentOf = (stack: Stack): string | undefined => {
    if (stack.length === 1) return end.device;
    const below = stackText(stack.slice(0, -1));
    return watched.find((one) => stackText(one.stack) === below)?.name;
  };
  try {
    // The outer ones first.
    for (const stack of stacksFor(end).toSorted((one, other) => one.length - other.length)) {
      stop.throwIfAborted();
      const parent = parentOf(stack);
      const { ethertype, id = 0 } = stack.at(-1) ?? {};
      if (parent === undefined || ethertype === undefined) continue;
      const existing = found.find(
        (one) => one.parent === parent && one.tag?.id === id && one.tag.ethertype === ethertype,
      );
      if (existing) {
        watched.push({ stack, parent, name: existing.name, isOurs: false });
        continue;
      }
      const name = `${prefix}${watched.length.toString(36)}`;
      const protocol = ethertype === Q ? '802.1Q' : '802.1ad';
      const made = await run(
        ...['link', 'add', 'link', parent, 'name', name, 'type', 'vlan', 'proto', protocol, 'id', String(id)],
      );
      if (made !== 0) continue;
      watched.push({ stack, parent, name, isOurs: true });
      // Before it is up: from then on the kernel would send on these tags.
      const still = await run(
        ...['link', 'set', 'dev', name, 'addrgenmode', 'none', 'arp', 'off', 'multicast', 'off'],
      );
      if (still === 0) await run('link', 'set', 'dev', name, 'up');
    }
    const before = await seen(end, machine, readText);
    return {
      heard: async () => arrived(end, watched, before, await seen(end, machine, readText)),
      stop: remove,
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** What the kernel has counted and learnt at one instant. */
interface Seen {
  readonly devices: readonly Device[];
  /** Packets of IPv6 that each device has received. */
  readonly ipv6: ReadonlyMap<string, number>;
  /** The devices that have learnt a neighbour from ARP. The outer one has no address, and needs none. */
  readonly neighbours: ReadonlySet<string>;
}

async function seen(end: End, machine: Machine, readText: (path: string) => Promise<string>): Promise<Seen> {
  const devices = await devicesOf(machine);
  const outer = devices.find(
    ({ parent, tag }) =>
      parent === end.device && tag?.id === end.sTag && tag.ethertype === outerEthertype(end),
  );
  const [ipv6, neighbours] = [new Map<string, number>(), new Set<string>()];
  if (outer) {
    const counters = await readText(`/proc/net/dev_snmp6/${outer.name}`).catch(() => '');
    ipv6.set(outer.name, Number(/^Ip6InReceives\s+(\d+)/m.exec(counters)?.[1] ?? 0));
    const { stdout } = await machine.runProgram(['ip', '-4', 'neigh', 'show', 'dev', outer.name]);
    if (stdout.includes('lladdr')) neighbours.add(outer.name);
  }
  return { devices, ipv6, neighbours };
}

/** Which of the stacks have arrived, from what was counted before and after. */
function arrived(end: End, watched: readonly Watched[], before: Seen, after: Seen): readonly Stack[] {
  const counted = ({ devices }: Seen, name: string): number =>
    devices.find((one) => one.name === name)?.received ?? 0;
  const more = ({ name }: Pick<Device, 'name'>): number => counted(after, name) - counted(before, name);
  const stacks = watched.flatMap((one): Stack[] => {
    const { stack, name } = one;
    // Those of other reservations too, which are not watched.
    const above = after.devices.filter(({ parent }) => parent === name);
    const own = more(one) - above.reduce((sum, child) => sum + more(child), 0);
    if (own <= 0) return [];
    const isOuter =
      stack.length === 1 && stack[0]?.ethertype === outerEthertype(end) && stack[0].id === end.sTag;
    if (!isOuter) return [stack];
    // Frames with the own S-tag, and no C-tag or an unknown one.
    const ipv6 = (after.ipv6.get(name) ?? 0) - (before.ipv6.get(name) ?? 0);
    const hasNeighbour = after.neighbours.has(name);
    const isSingle = ipv6 > 0 || hasNeighbour;
    const unknown: Stack = [...stack, { ethertype: Q, id: undefined }];
    return [...(isSingle ? [stack] : []), ...(own > ipv6 && !hasNeighbour ? [unknown] : [])];
  });
  return stacks.filter((stack) => heardIn(stack, end) !== undefined);
}
