import type { End } from '../../vlan/end.ts';
import type { Machine } from '../context.ts';
import { type Device, devicesOf } from './devices.ts';
import type { Listener } from './listening.ts';
import { heardIn, Q, tagsAt } from './stacks.ts';

/** A VLAN device whose counter shows that frames with its stack of tags arrive. */
interface Watched {
  readonly stack: string;
  readonly name: string;
  /** The device that it is made on. */
  readonly parent: string;
  /** The last tag of its stack. */
  readonly tag: string;
}

/**
 * The beginning of the names of devices that are made for watching: 14 characters. Another reservation may
 * have the outer device too, and be watched at the same time.
 */
const prefixOf = ({ names, cTag }: Pick<End, 'names' | 'cTag'>): string =>
  `${names.outer}${String(cTag).padStart(4, '0')}`;

/** The stacks that are watched, the outer ones first: mistakes of the other end make them, as far as they are known before. */
function stacksFor(end: End): readonly string[] {
  const { sTag, cTag, otherSTag, otherCTag } = end;
  const [right = ''] = tagsAt(end)[0].split(':');
  const wrong = right === Q ? '88a8' : Q;
  const stacks = [
    [sTag, cTag],
    [otherSTag, otherCTag],
  ].flatMap(([s, c]) => [
    ...[`${right}:${s} ${Q}:${c}`, `${right}:${c} ${Q}:${s}`],
    ...[`${wrong}:${s} ${Q}:${c}`, `${Q}:${c} ${Q}:${s}`],
  ]);
  for (const inner of [sTag, otherSTag, otherCTag]) stacks.push(`${right}:${sTag} ${Q}:${inner}`);
  return [...new Set([...stacks.map((stack) => stack.replace(/ .*/, '')), ...stacks])];
}

/** The watched stacks, the outer ones first, each with a device that is there or is to be made. */
function watchedFor(end: End, devices: readonly Device[]): readonly Watched[] {
  const watched: Watched[] = [];
  for (const [at, stack] of stacksFor(end).entries()) {
    const [outer = '', inner] = stack.split(' ');
    const below = watched.find((one) => one.stack === outer)?.name;
    const [parent, tag] = inner === undefined ? [end.device, outer] : [below ?? '', inner];
    const existing = devices.find((one) => one.parent === parent && one.tag === tag);
    watched.push({ stack, name: existing?.name ?? `${prefixOf(end)}${at.toString(36)}`, parent, tag });
  }
  return watched;
}

/**
 * Listens without tcpdump: VLAN devices without addresses are made on the stacks that mistakes make, and
 * their counters tell what arrives. They can't send: no ARP, no multicast, no address. Needs root.
 *
 * Which C-tag it is behind an S-tag is known only for the reservation's tags. Others are told from frames
 * with one tag by what the kernel reads: it learns a neighbour from ARP, and counts IPv6, where there is no
 * second tag.
 *
 * @param stop removes what was made so far
 */
export async function watchStacks(end: End, machine: Machine, stop: AbortSignal): Promise<Listener> {
  /** A line that fails is left out: a device of the same tag may have come meanwhile. */
  const inOneGo = (lines: readonly string[]): Promise<unknown> =>
    machine.runProgram(['ip', '-force', '-batch', '-'], { input: `${lines.join('\n')}\n` });
  const isMade = ({ name }: Pick<Device, 'name'>): boolean => name.startsWith(prefixOf(end));
  const remove = async (): Promise<void> => {
    const left = (await devicesOf(machine)).filter(isMade);
    // A device goes with its parent.
    const below = left.filter(({ parent = '' }) => !isMade({ name: parent }));
    if (below.length > 0) await inOneGo(below.map(({ name }) => `link del ${name}`));
  };
  // An earlier probe may have been killed.
  await remove();
  const watched = watchedFor(end, await devicesOf(machine));
  const outer = watched.find(({ stack }) => stack === tagsAt(end)[0])?.name ?? end.names.outer;
  const earlier = await seen(end, watched, machine, 'before');
  const missing = watched.filter(isMade);
  try {
    stop.throwIfAborted();
    await inOneGo(
      missing.flatMap(({ name, parent, tag }) => {
        const [kind, id] = tag.split(':');
        const protocol = kind === Q ? '802.1Q' : '802.1ad';
        return [
          `link add link ${parent} name ${name} type vlan proto ${protocol} id ${id}`,
          `link set dev ${name} arp off multicast off`,
          `link set dev ${name} addrgenmode none`,
        ];
      }),
    );
    stop.throwIfAborted();
    // A device that is not mute would send on these tags as soon as it is up.
    const mute = (await devicesOf(machine)).filter((one) => isMade(one) && one.isMute);
    const up = missing.filter(({ name }) => mute.some((one) => one.name === name));
    await inOneGo(up.map(({ name }) => `link set dev ${name} up`));
    stop.throwIfAborted();
    // Devices that were there before have counted while the others were made, which takes seconds on a slow
    // machine.
    const before = asOfBegin(watched, earlier, await seen(end, watched, machine, 'before'));
    return {
      async heard() {
        const after = await seen(end, watched, machine, 'after');
        // A neighbour that was learnt before counts too: the other end asks for a known address again only
        // after half a minute.
        const { stdout } = await machine.runProgram(['ip', '-4', 'neigh', 'show', 'dev', outer]);
        return arrived(end, watched, before, after, stdout.includes('lladdr'));
      },
      stop: remove,
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** The kernel's counters at one instant. */
interface Counters {
  readonly devices: readonly Device[];
  /** Packets of IPv6 that devices with one of the two S-tags have received, without another tag. */
  readonly ipv6: ReadonlyMap<string, number>;
}

/** Whether a stack is the S-tag of one of the sites alone: behind it there may be any C-tag. */
function isSTag(end: End, stack: string): boolean {
  return [end.sTag, end.otherSTag].some((sTag) => stack === tagsAt({ ...end, sTag })[0]);
}

/**
 * Looks once.
 *
 * @param when whether the counters of IPv6 are read before those of the devices, or after them. A frame that
 *   comes between counts as IPv6 then, and never as one with an unknown second tag
 */
async function seen(
  end: End,
  watched: readonly Watched[],
  machine: Machine,
  when: 'before' | 'after',
): Promise<Counters> {
  const outer = watched.filter(({ stack }) => isSTag(end, stack));
  const countIpv6 = async (): Promise<Counters['ipv6']> => {
    const files = outer.map(({ name }) => `/proc/net/dev_snmp6/${name}`);
    const { stdout } = await machine.runProgram(['grep', '-sH', 'Ip6InReceives', ...files]);
    const lines = stdout.matchAll(/^\/proc\/net\/dev_snmp6\/([^:]+):Ip6InReceives\s+(\d+)$/gm);
    return new Map([...lines].map(([, name = '', count]) => [name, Number(count)]));
  };
  const early = when === 'before' ? await countIpv6() : undefined;
  const devices = await devicesOf(machine);
  return { devices, ipv6: early ?? (await countIpv6()) };
}

/**
 * The counters to subtract: the earlier ones of each device that was there already, and nothing for each that
 * was made for two tags. A device that was made for an outer tag has counted frames with two until there was
 * a device for those: so its later counter is subtracted.
 */
function asOfBegin(watched: readonly Watched[], earlier: Counters, later: Counters): Counters {
  const isInner = (name: string): boolean =>
    watched.some((one) => one.name === name && one.stack.includes(' '));
  return {
    devices: later.devices.map(
      (one) =>
        earlier.devices.find(({ name }) => name === one.name) ??
        (isInner(one.name) ? { ...one, received: 0 } : one),
    ),
    ipv6: new Map([...later.ipv6, ...earlier.ipv6]),
  };
}

/**
 * Which of the stacks have arrived, from what was counted before and after.
 *
 * @param hasLearnt whether the kernel has learnt a neighbour from ARP behind the own S-tag alone
 */
function arrived(
  end: End,
  watched: readonly Watched[],
  before: Counters,
  after: Counters,
  hasLearnt: boolean,
): readonly string[] {
  const counted = ({ devices }: Counters, name: string): number =>
    devices.find((one) => one.name === name)?.received ?? 0;
  const more = (name: string): number => counted(after, name) - counted(before, name);
  const stacks = watched.flatMap(({ stack, name }): string[] => {
    // Those of other reservations too, which are not watched.
    const above = after.devices.filter(({ parent }) => parent === name);
    const own = more(name) - above.reduce((sum, child) => sum + more(child.name), 0);
    if (own <= 0) return [];
    if (!isSTag(end, stack)) return [stack];
    // Frames with the S-tag, and no C-tag or an unknown one.
    const ipv6 = (after.ipv6.get(name) ?? 0) - (before.ipv6.get(name) ?? 0);
    const hasNeighbour = hasLearnt && stack === tagsAt(end)[0];
    return [
      ...(ipv6 > 0 || hasNeighbour ? [stack] : []),
      ...(own > ipv6 && !hasNeighbour ? [`${stack} ${Q}:?`] : []),
    ];
  });
  return stacks.filter((stack) => heardIn(stack, end) !== undefined);
}
