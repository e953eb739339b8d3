import { BlockList, isIPv6 } from 'node:net';
import type { End } from '../../vlan/end.ts';
import { deleteCall, ipCalls, setCall, shellLine } from '../../vlan/iproute2.ts';
import type { Device } from './devices.ts';
import { type Heard, heardIn, idsIn, tagsAt } from './stacks.ts';

/** The verdicts of `probe`, in their order (vlan/README.md, "What probe decides, in this order"), and what each means. */
export const VERDICTS = {
  ok: 'the link works, at the full size',
  own_tags_swapped: 'this end: the C-tag is outside, the S-tag inside',
  own_ethertype: 'this end: the outer tag is 802.1Q in place of 802.1ad',
  own_other_sites_tags: "this end has the other site's tags",
  own_device: 'this end: a device is missing, down, or without address',
  own_mtu: 'this end: an MTU is too small',
  far_tags_swapped: 'the other end: the C-tag is outside, the S-tag inside',
  far_ethertype: 'the other end: the outer tag is 802.1Q',
  far_c_tag: 'the other end: another C-tag',
  single_tagged: 'the other end sends one tag only',
  far_does_not_hear: 'the other end sends, and does not answer',
  silent: 'nothing arrives',
  path_mtu: 'large packets are lost in the network',
} as const;
/** One of {@link VERDICTS}. */
export type VerdictCode = keyof typeof VERDICTS;

/** The place of a fault: this end, the other one, or the network between; null where it is not known. */
export const WHERE = ['own', 'far', 'path'] as const;

/** The verdict of `probe` on a link. */
export interface Verdict {
  readonly verdict: VerdictCode;
  readonly end: (typeof WHERE)[number] | null;
  /** The verdict in words: what is wrong, with the numbers. */
  readonly says: string;
  /** Lines for root's shell that repair the own end, or remove the wrong device there. */
  readonly repair?: readonly string[];
  /** Whether the own end is to be configured then, as `slices-conn vlan` says. */
  readonly configure?: boolean;
  /** A size that passes where larger packets are lost, in bytes; undefined where none is known. */
  readonly passes?: number;
}

/** Two VLAN devices, one on the other, and the stack of tags that their frames have. */
export interface Pair {
  readonly outer: Device;
  readonly inner: Device;
  readonly stack: string;
}

/** A fault of the own end. @param repair lines for root's shell */
export function ownFault(verdict: VerdictCode, says: string, ...repair: readonly string[]): Verdict {
  return { verdict, end: 'own', says, repair };
}

/** A fault of the own end that is configured anew after its repair. @param remove the wrong device */
function misconfigured(verdict: VerdictCode, says: string, remove?: string): Verdict {
  const repair = remove === undefined ? [] : [shellLine(deleteCall(remove))];
  return { ...ownFault(verdict, says, ...repair), configure: true };
}

/**
 * The two devices of an end, whatever they are called, or the fault of the own end. The first row that fits decides:
 *
 * | Devices | Verdict |
 * |---|---|
 * | the outer one has the C-tag, the inner one the S-tag | `own_tags_swapped` |
 * | the right tags, with another ethertype | `own_ethertype` |
 * | tags of the other site | `own_other_sites_tags` |
 * | missing, down or without carrier | `own_device` |
 * | an MTU below what is due | `own_mtu` |
 */
export function ownEnd(end: End, devices: readonly Device[]): Pair | Verdict {
  const { device } = end;
  const on = (parent: string): readonly Device[] =>
    devices.filter((one) => one.tag !== undefined && one.parent === parent);
  const pairs = on(device).flatMap((outer) =>
    on(outer.name).map((inner): Pair => ({ outer, inner, stack: `${outer.tag} ${inner.tag}` })),
  );
  const right = pairs.find(({ stack }) => stack === tagsAt(end).join(' '));
  const fault = right ? undefined : wrongTags(end, pairs, devices);
  if (fault) return fault;
  const parent = devices.find(({ name }) => name === device);
  if (!parent) {
    const real = devices.filter((one) => one.parent === undefined && one.name !== 'lo').slice(0, 8);
    const known = real.length === 0 ? '' : ` There is ${real.map(({ name }) => name).join(', ')}.`;
    return ownFault('own_device', `This machine has no network device ${device}.${known}`);
  }
  return right ? (wrongState(end, parent, right) ?? right) : missingDevice(end, devices);
}

/** Two devices with swapped tags, another ethertype, or the other site's tags. */
function wrongTags(end: End, pairs: readonly Pair[], devices: readonly Device[]): Verdict | undefined {
  const { sTag, cTag, otherSTag, otherCTag, site, otherSite } = end;
  // As pairs, in either order: one site's C-tag may be the other one's S-tag.
  const theirs = [`${otherSTag} ${otherCTag}`, `${sTag} ${otherCTag}`, `${otherSTag} ${cTag}`];
  const reversed = theirs.map((ids) => ids.split(' ').toReversed().join(' '));
  const rows: readonly [VerdictCode, ids: readonly string[], says: (pair: Pair) => string][] = [
    [
      'own_tags_swapped',
      [`${cTag} ${sTag}`],
      ({ outer, inner }) =>
        `The tags are swapped at this end: ${outer.name} has the C-tag ${cTag}, and ${inner.name} on it the S-tag ${sTag}. The S-tag is the outer one.`,
    ],
    [
      'own_ethertype',
      [`${sTag} ${cTag}`],
      ({ outer, inner }) => {
        const [outerDue, innerDue] = tagsAt(end);
        const [odd, due] = outer.tag === outerDue ? [inner, innerDue] : [outer, outerDue];
        return `The ethertype is wrong at this end: the frames of ${odd.name} have 0x${odd.tag?.slice(0, 4)}, and 0x${due.slice(0, 4)} is due.`;
      },
    ],
    [
      'own_other_sites_tags',
      [...theirs, ...reversed],
      ({ stack }) =>
        `This end has the tags of ${otherSite}: ${idsIn(stack).replace(' ', ' and ')}. At ${site} they are ${sTag} and ${cTag}.`,
    ],
  ];
  for (const [code, ids, says] of rows) {
    const found = pairs.find(({ stack }) => ids.includes(idsIn(stack)));
    if (!found) continue;
    const { outer, inner } = found;
    // The outer one may carry devices of other reservations.
    const isShared = devices.some(({ name, parent }) => parent === outer.name && name !== inner.name);
    return misconfigured(code, says(found), isShared ? inner.name : outer.name);
  }
  return undefined;
}

/** The fault of an end where the outer device, or the inner one, is missing. */
function missingDevice(end: End, devices: readonly Device[]): Verdict {
  const { device, sTag, cTag, names } = end;
  const outer = devices.find(({ parent, tag }) => parent === device && tag === tagsAt(end)[0]);
  if (outer) {
    const says = `${outer.name} has the S-tag ${sTag}, but there is no device on it with the C-tag ${cTag}.`;
    if (outer.name === names.outer) return misconfigured('own_device', says);
    // It may carry devices of other reservations, and the kernel takes the tag once.
    const { inner, up } = ipCalls({ ...end, names: { ...names, outer: outer.name } });
    return ownFault('own_device', says, shellLine(inner), shellLine(up.inner));
  }
  const missing = `No device on ${device} has the S-tag ${sTag}.`;
  const named = devices.find(({ name }) => name === names.outer);
  if (!named) return misconfigured('own_device', missing);
  const on = named.parent === undefined ? '' : ` on ${named.parent}`;
  const tag = named.tag === undefined ? 'without a tag' : `with the tag ${idsIn(named.tag)}`;
  return misconfigured('own_device', `${missing} ${named.name} is a device${on} ${tag}.`, named.name);
}

/** A device that is down, has no carrier, or too small an MTU. */
function wrongState({ mtu }: End, parent: Device, { outer, inner }: Pair): Verdict | undefined {
  const set = (name: string, ...words: readonly string[]): string => shellLine(setCall(name, ...words));
  const all = [
    { ...parent, due: mtu.device },
    { ...outer, due: mtu.outer },
    { ...inner, due: mtu.inner },
  ];
  const down = all.find(({ isUp }) => !isUp)?.name;
  if (down !== undefined) return ownFault('own_device', `${down} is down.`, set(down, 'up'));
  const unplugged = all.find(({ hasCarrier }) => !hasCarrier)?.name;
  if (unplugged !== undefined) {
    const says = `${unplugged} has no carrier: the cable, or the switch's port, carries nothing.`;
    return ownFault('own_device', says);
  }
  const small = all.filter((one) => one.mtu < one.due);
  const [first] = small;
  if (!first) return undefined;
  const says = `The MTU of ${first.name} is ${first.mtu}, and ${first.due} is due: ${mtu.inner} for packets, and 4 more for each tag.`;
  return ownFault('own_mtu', says, ...small.map(({ name, due }) => set(name, 'mtu', String(due))));
}

/**
 * Whether a stack is that of another reservation with the same S-tag at this site: its C-tag has a device
 * here.
 *
 * @param own the two devices of the reservation
 */
export function isOfAnother(stack: string, own: Pair, devices: readonly Device[]): boolean {
  return devices.some(
    ({ name, parent, tag }) =>
      parent === own.outer.name && name !== own.inner.name && stack === `${own.outer.tag} ${tag}`,
  );
}

/** Whether an address is in none of the networks of others, such as `10.0.0.1/24`. */
function isOutside(peer: string, addresses: readonly string[]): boolean {
  const family = isIPv6(peer) ? 'ipv6' : 'ipv4';
  const networks = new BlockList();
  for (const address of addresses) {
    const [host = '', length] = address.split('/');
    networks.addSubnet(host, Number(length), family);
  }
  return !networks.check(peer, family);
}

/**
 * The verdict where small packets are not answered, from what arrives (vlan/README.md). The first row that fits decides:
 *
 * | Heard | Verdict |
 * |---|---|
 * | 88a8:C 8100:S | `far_tags_swapped` |
 * | 8100:S 8100:C | `far_ethertype` |
 * | 88a8:S 8100:other | `far_c_tag` |
 * | one tag only | `single_tagged` |
 * | the right stack | `far_does_not_hear` |
 * | the other site's tags | `silent`, in the path |
 * | nothing, or listening was not possible | `silent` |
 *
 * @param peer the other end's address
 * @param addresses those of this end, at least one
 * @param arrived the stacks that arrived, each once; null where nothing could listen, without root
 * @param arp whether ARP was answered; null where it was not used
 */
export function heardVerdict(
  end: End,
  peer: string,
  addresses: readonly string[],
  { heard: arrived, arp }: { heard: readonly string[] | null; arp: boolean | null },
): Verdict {
  const { site, otherSite } = end;
  const due = tagsAt(end).join(' ');
  const heard = Map.groupBy(arrived ?? [], (stack) => heardIn(stack, end));
  const first = (kind: Heard): string | undefined => heard.get(kind)?.[0];
  const far = (verdict: VerdictCode, says: string): Verdict => ({ verdict, end: 'far', says });
  const outside = isOutside(peer, addresses)
    ? ` ${peer} is not in the network of ${addresses.join(', ')}.`
    : '';
  const swapped = first('tags_swapped');
  if (swapped !== undefined) {
    return far('far_tags_swapped', `The tags are swapped at ${otherSite}: its frames arrive as ${swapped}.`);
  }
  for (const [kind, verdict, what] of [
    ['ethertype', 'far_ethertype', 'ethertype'],
    ['c_tag', 'far_c_tag', 'C-tag'],
  ] as const) {
    const stack = first(kind);
    if (stack === undefined) continue;
    const says = `The ${what} is wrong at ${otherSite}: its frames arrive as ${stack}, and ${due} is due.`;
    return far(verdict, says);
  }
  const [single, right, untranslated] = [first('single'), first('right'), first('untranslated')];
  if (single !== undefined && right === undefined && untranslated === undefined) {
    const says = `${otherSite} sends frames with one tag only: they arrive as ${single}, and ${due} is due.`;
    return far('single_tagged', says);
  }
  if (right !== undefined) {
    const says = arp
      ? `${otherSite} answers ARP, and no ping: frames pass both ways. A firewall there may drop ICMP.`
      : `${otherSite} sends frames with the right tags, and does not answer: it does not hear ${site}, or ${peer} is not its address.${outside}`;
    return far('far_does_not_hear', says);
  }
  if (untranslated !== undefined) {
    const says = `Frames arrive with the tags of ${otherSite}, ${untranslated}: the network does not translate them to ${due}.`;
    return { verdict: 'silent', end: 'path', says };
  }
  const says = arrived
    ? `Nothing arrives from ${otherSite}: it sends nothing, or its frames are lost on the way.`
    : `${peer} does not answer, and only root can listen to what arrives.`;
  return { verdict: 'silent', end: null, says: `${says}${outside}` };
}
