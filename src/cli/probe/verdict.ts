import { BlockList, isIPv6 } from 'node:net';
import type { End } from '../../vlan/end.ts';
import { deleteCall, ipCalls, shellLine } from '../../vlan/iproute2.ts';
import type { Device } from './devices.ts';
import { type Heard, heardIn, outerEthertype, Q, type Stack, stackText } from './stacks.ts';

/** The verdicts of `probe`, in their order (vlan/README.md, "What probe decides, in this order"). */
export const VERDICTS = [
  'ok',
  'own_tags_swapped',
  'own_ethertype',
  'own_other_sites_tags',
  'own_device',
  'own_mtu',
  'far_tags_swapped',
  'far_ethertype',
  'far_c_tag',
  'single_tagged',
  'far_does_not_hear',
  'silent',
  'path_mtu',
] as const;
/** One of {@link VERDICTS}. */
export type VerdictCode = (typeof VERDICTS)[number];

/** The place of a fault: this end, the other one, or the network between; null where it is not known. */
export const WHERE = ['own', 'far', 'path'] as const;
/** One of {@link WHERE}. */
export type Where = (typeof WHERE)[number];

/** The verdict of `probe` on a link. */
export interface Verdict {
  readonly verdict: VerdictCode;
  readonly end: Where | null;
  /** The verdict in words: what is wrong, with the numbers. */
  readonly says: string;
  /** Lines for root's shell that repair the own end, or remove the wrong device there. */
  readonly repair?: readonly string[];
  /** Whether the own end is to be configured then, as `slices-conn vlan` says. */
  readonly configure?: boolean;
  /** A size that passes where larger packets are lost, in bytes; undefined where none is known. */
  readonly passes?: number;
}

/** The observations of `probe`. A member is null where it was not tried, because an earlier row decides. */
export interface Evidence {
  /** The network devices of this machine. */
  readonly devices: readonly Device[];
  /** The addresses of the inner device, such as `10.0.0.1/24`. */
  readonly addresses: readonly string[] | null;
  /** Whether one of three small packets was answered. */
  readonly small: boolean | null;
  /** The fate of three packets of the full size; `too_long` where the system did not send them. */
  readonly full: 'answered' | 'lost' | 'too_long' | null;
  /** Whether one of three small packets was answered after packets of the full size were not. */
  readonly again: boolean | null;
  /** Whether one of three packets was answered that are a tag shorter than the full size. */
  readonly shorter: boolean | null;
  /** Whether ARP was answered. */
  readonly arp: boolean | null;
  /** The stacks of tags that arrived, each once; null where nothing could listen, without root. */
  readonly heard: readonly Stack[] | null;
}

/** Two VLAN devices, one on the other. */
export interface Pair {
  readonly outer: Device & { tag: NonNullable<Device['tag']> };
  readonly inner: Device & { tag: NonNullable<Device['tag']> };
}

const hasTag = (device: Device): device is Pair['outer'] => device.tag !== undefined;

/** Every VLAN device on a VLAN device on the end's own. */
function pairsOn({ device }: End, devices: readonly Device[]): readonly Pair[] {
  const tagged = devices.filter(hasTag);
  return tagged
    .filter(({ parent }) => parent === device)
    .flatMap((outer) =>
      tagged.filter(({ parent }) => parent === outer.name).map((inner) => ({ outer, inner })),
    );
}

/** The two devices of an end, whatever they are called; undefined where the right ones do not exist. */
export function pairOf(end: End, devices: readonly Device[]): Pair | undefined {
  return pairsOn(end, devices).find(
    ({ outer, inner }) =>
      outer.tag.id === end.sTag &&
      inner.tag.id === end.cTag &&
      outer.tag.ethertype === outerEthertype(end) &&
      inner.tag.ethertype === Q,
  );
}

/**
 * Whether a stack is that of another reservation with the same S-tag at this site: its C-tag has a device
 * here.
 *
 * @param own the two devices of the reservation
 */
export function isOfAnother([outer, inner]: Stack, own: Pair, devices: readonly Device[]): boolean {
  if (!inner || outer?.id !== own.outer.tag.id || outer.ethertype !== own.outer.tag.ethertype) return false;
  return devices.some(
    ({ name, parent, tag }) =>
      parent === own.outer.name &&
      name !== own.inner.name &&
      tag?.id === inner.id &&
      tag?.ethertype === inner.ethertype,
  );
}

/** A fault of the own end. @param repair lines for root's shell */
function own(verdict: VerdictCode, says: string, repair: readonly string[] = []): Verdict {
  return { verdict, end: 'own', says, repair };
}

/** A fault of the own end that is configured anew after its repair. @param remove the wrong device */
function wrong(verdict: VerdictCode, says: string, remove?: string): Verdict {
  const repair = remove === undefined ? [] : [shellLine(deleteCall(remove))];
  return { ...own(verdict, says, repair), configure: true };
}

/**
 * The first rows of the table at {@link verdictOf}: a fault of the own end's devices, before anything is sent.
 * Undefined where there is none.
 */
export function ownFault(
  end: End,
  { devices, addresses }: Pick<Evidence, 'devices' | 'addresses'>,
): Verdict | undefined {
  const { device } = end;
  const right = pairOf(end, devices);
  const mistake = right ? undefined : wrongTags(end, devices);
  if (mistake) return mistake;
  const parent = devices.find(({ name }) => name === device);
  if (!parent) {
    const real = devices
      .filter((one) => one.parent === undefined && one.name !== 'lo')
      .map(({ name }) => name);
    const known = real.length === 0 ? '' : ` There is ${real.slice(0, 8).join(', ')}.`;
    return own('own_device', `This machine has no network device ${device}.${known}`);
  }
  if (!right) return missingDevice(end, devices);
  const fault = wrongState(end, parent, right);
  if (fault || addresses?.length !== 0) return fault;
  return own('own_device', `${right.inner.name} has no address, so nothing can be sent from it.`, [
    shellLine(['ip', 'address', 'add', 'ADDRESS/LENGTH', 'dev', right.inner.name]),
  ]);
}

/** Two devices with swapped tags, another ethertype, or the other site's tags. */
function wrongTags(end: End, devices: readonly Device[]): Verdict | undefined {
  const { sTag, cTag, otherSTag, otherCTag, site, otherSite } = end;
  const pairs = pairsOn(end, devices);
  /** The device to remove of two wrong ones: the outer one may carry devices of other reservations. */
  const wrongOf = ({ outer, inner }: Pair): string =>
    devices.some(({ name, parent }) => parent === outer.name && name !== inner.name)
      ? inner.name
      : outer.name;
  const tagged = (s: number, c: number) => (pair: Pair) => pair.outer.tag.id === s && pair.inner.tag.id === c;
  const swapped = pairs.find(tagged(cTag, sTag));
  if (swapped) {
    const says = `The tags are swapped at this end: ${swapped.outer.name} has the C-tag ${cTag}, and ${swapped.inner.name} on it the S-tag ${sTag}. The S-tag is the outer one.`;
    return wrong('own_tags_swapped', says, wrongOf(swapped));
  }
  const otherKind = pairs.find(tagged(sTag, cTag));
  if (otherKind) {
    const { outer, inner } = otherKind;
    const [odd, due] =
      outer.tag.ethertype === outerEthertype(end) ? [inner, Q] : [outer, outerEthertype(end)];
    const says = `The ethertype is wrong at this end: the frames of ${odd.name} have 0x${odd.tag.ethertype}, and 0x${due} is due.`;
    return wrong('own_ethertype', says, wrongOf(otherKind));
  }
  // As pairs, in either order: one site's C-tag may be the other one's S-tag.
  const theirs = [
    [otherSTag, otherCTag],
    [sTag, otherCTag],
    [otherSTag, cTag],
  ] as const;
  const others = pairs.find((pair) => theirs.some(([s, c]) => tagged(s, c)(pair) || tagged(c, s)(pair)));
  if (!others) return undefined;
  const says = `This end has the tags of ${otherSite}: ${others.outer.tag.id} and ${others.inner.tag.id}. At ${site} they are ${sTag} and ${cTag}.`;
  return wrong('own_other_sites_tags', says, wrongOf(others));
}

/** The fault of an end where the outer device, or the inner one, is missing. */
function missingDevice(end: End, devices: readonly Device[]): Verdict {
  const { device, sTag, cTag, names } = end;
  const outer = devices
    .filter(hasTag)
    .find(({ parent, tag }) => parent === device && tag.id === sTag && tag.ethertype === outerEthertype(end));
  if (outer) {
    const says = `${outer.name} has the S-tag ${sTag}, but there is no device on it with the C-tag ${cTag}.`;
    if (outer.name === names.outer) return wrong('own_device', says);
    // It may carry devices of other reservations, and the kernel takes the tag once.
    const { inner, up } = ipCalls({ ...end, names: { ...names, outer: outer.name } });
    return own('own_device', says, [shellLine(inner), shellLine(up.inner)]);
  }
  const missing = `No device on ${device} has the S-tag ${sTag}.`;
  const named = devices.find(({ name }) => name === names.outer);
  if (!named) return wrong('own_device', missing);
  const on = named.parent === undefined ? '' : ` on ${named.parent}`;
  const tag = named.tag === undefined ? 'without a tag' : `with the tag ${named.tag.id}`;
  return wrong('own_device', `${missing} ${named.name} is a device${on} ${tag}.`, named.name);
}

/** A device that is down, has no carrier, or too small an MTU. */
function wrongState({ mtu }: End, parent: Device, { outer, inner }: Pair): Verdict | undefined {
  const set = (name: string, ...words: readonly string[]): string =>
    shellLine(['ip', 'link', 'set', 'dev', name, ...words]);
  const all: [Device, due: number][] = [
    [parent, mtu.device],
    [outer, mtu.outer],
    [inner, mtu.inner],
  ];
  const down = all.find(([{ isUp }]) => !isUp)?.[0].name;
  if (down !== undefined) return own('own_device', `${down} is down.`, [set(down, 'up')]);
  const unplugged = all.find(([{ hasCarrier }]) => !hasCarrier)?.[0].name;
  if (unplugged !== undefined) {
    const says = `${unplugged} has no carrier: the cable, or the switch's port, carries nothing.`;
    return own('own_device', says);
  }
  const small = all.filter(([one, due]) => one.mtu < due);
  const [first] = small;
  if (!first) return undefined;
  const [{ name, mtu: found }, due] = first;
  const says = `The MTU of ${name} is ${found}, and ${due} is due: ${mtu.inner} for packets, and 4 more for each tag.`;
  return own(
    'own_mtu',
    says,
    small.map(([one, size]) => set(one.name, 'mtu', String(size))),
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
  return addresses.length > 0 && !networks.check(peer, family);
}

/**
 * The verdict on one end, from all that was seen (vlan/README.md). The first row that fits decides:
 *
 * | Evidence | Verdict |
 * |---|---|
 * | own devices: the outer one has the C-tag, the inner one the S-tag | `own_tags_swapped` |
 * | own devices: the right tags, with another ethertype | `own_ethertype` |
 * | own devices: tags of the other site | `own_other_sites_tags` |
 * | own devices: missing, down, without carrier or address | `own_device` |
 * | own devices: an MTU below what is due | `own_mtu` |
 * | small packets unanswered; heard 88a8:C 8100:S | `far_tags_swapped` |
 * | small packets unanswered; heard 8100:S 8100:C | `far_ethertype` |
 * | small packets unanswered; heard 88a8:S 8100:other | `far_c_tag` |
 * | small packets unanswered; heard one tag only | `single_tagged` |
 * | small packets unanswered; heard the right stack | `far_does_not_hear` |
 * | small packets unanswered; heard nothing, or listening was not possible | `silent` |
 * | small packets answered; full size too long for the own end | `own_mtu` |
 * | small packets answered, before and after the full size was not | `path_mtu` |
 * | all answered | `ok` |
 *
 * @param peer the other end's address
 */
export function verdictOf(end: End, peer: string, evidence: Evidence): Verdict {
  const { site, otherSite, sTag, cTag, mtu } = end;
  const fault = ownFault(end, evidence);
  if (fault) return fault;
  const { full, again, shorter } = evidence;
  if (evidence.small && full === 'answered') {
    return {
      verdict: 'ok',
      end: null,
      says: `The link works: ${peer} answers packets of ${mtu.inner} bytes.`,
    };
  }
  if (evidence.small && full === 'too_long') {
    const says = `This machine does not send packets of ${mtu.inner} bytes: its route to ${peer} has a smaller MTU, see "ip route get ${peer}".`;
    return { verdict: 'own_mtu', end: 'own', says };
  }
  if (evidence.small && again) {
    const less = mtu.inner - 4;
    const what = shorter
      ? `${less} bytes pass: the network between is 4 bytes short.`
      : `${less} bytes are lost too.`;
    const says = `Small packets pass, packets of ${mtu.inner} bytes are lost on the way. ${what}`;
    const inner = pairOf(end, evidence.devices)?.inner.name ?? end.names.inner;
    const repair = [shellLine(['ip', 'link', 'set', 'dev', inner, 'mtu', String(less)])];
    return { verdict: 'path_mtu', end: 'path', says, ...(shorter ? { passes: less, repair } : {}) };
  }
  const heard = (evidence.heard ?? []).map((stack) => ({ stack, what: heardIn(stack, end) }));
  const first = (kind: Heard): string | undefined => {
    const found = heard.find(({ what }) => what === kind);
    return found && stackText(found.stack);
  };
  const far = (verdict: VerdictCode, says: string): Verdict => ({ verdict, end: 'far', says });
  const due = `${outerEthertype(end)}:${sTag} ${Q}:${cTag}`;
  const outside = isOutside(peer, evidence.addresses ?? [])
    ? ` ${peer} is not in the network of ${evidence.addresses?.join(', ')}.`
    : '';
  const swapped = first('tags_swapped');
  if (swapped !== undefined) {
    return far('far_tags_swapped', `The tags are swapped at ${otherSite}: its frames arrive as ${swapped}.`);
  }
  const ethertype = first('ethertype');
  if (ethertype !== undefined) {
    const says = `The ethertype is wrong at ${otherSite}: its frames arrive as ${ethertype}, and ${due} is due.`;
    return far('far_ethertype', says);
  }
  const otherC = first('c_tag');
  if (otherC !== undefined) {
    const says = `The C-tag is wrong at ${otherSite}: its frames arrive as ${otherC}, and ${due} is due.`;
    return far('far_c_tag', says);
  }
  const isSingle = heard.length > 0 && heard.every(({ what }) => what === 'single' || what === undefined);
  const single = first('single');
  if (isSingle && single !== undefined) {
    const says = `${otherSite} sends frames with one tag only: they arrive as ${single}, and ${due} is due.`;
    return far('single_tagged', says);
  }
  if (first('right') !== undefined) {
    const says = evidence.arp
      ? `${otherSite} answers ARP, and no ping: frames pass both ways. A firewall there may drop ICMP.`
      : `${otherSite} sends frames with the right tags, and does not answer: it does not hear ${site}, or ${peer} is not its address.${outside}`;
    return far('far_does_not_hear', says);
  }
  const untranslated = first('untranslated');
  if (untranslated !== undefined) {
    const says = `Frames arrive with the tags of ${otherSite}, ${untranslated}: the network does not translate them to ${due}.`;
    return { verdict: 'silent', end: 'path', says };
  }
  const says =
    evidence.heard === null
      ? `${peer} does not answer, and only root can listen to what arrives.`
      : `Nothing arrives from ${otherSite}: it sends nothing, or its frames are lost on the way.`;
  return { verdict: 'silent', end: null, says: `${says}${outside}` };
}
