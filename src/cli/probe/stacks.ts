import type { End } from '../../vlan/end.ts';
import { ETHERTYPE } from '../../vlan/end.ts';

/** A VLAN tag of a frame: what kind it says that it is, four hexadecimal digits, and its number. */
export interface Tag {
  readonly ethertype: string;
  /** Undefined where it is not known which: seen without a capture, see watched-stacks.ts. */
  readonly id: number | undefined;
}

/** The VLAN tags of a frame, the outer one first. */
export type Stack = readonly Tag[];

/** The inner tag's ethertype always, and the outer one's of a device that was made without `proto`. */
export const Q = '8100';

/** A stack as `probe --json` has it. @example `88a8:1001 8100:17` */
export function stackText(stack: Stack): string {
  return stack.map(({ ethertype, id }) => `${ethertype}:${id ?? '?'}`).join(' ');
}

/** The stack that the frames of an end have when they arrive. */
export function rightStack(end: End): Stack {
  return [
    { ethertype: outerEthertype(end), id: end.sTag },
    { ethertype: Q, id: end.cTag },
  ];
}

/** The ethertype of an end's outer tag, four hexadecimal digits. */
export function outerEthertype({ outer }: Pick<End, 'outer'>): string {
  return ETHERTYPE[outer].slice(2);
}

/**
 * The tags in a line of `tcpdump -e -n`; undefined for a frame without any.
 *
 * @example stackIn('… ethertype 802.1Q-QinQ (0x88a8), length 50: vlan 1001, p 0, ethertype 802.1Q (0x8100), vlan 17, p 0, …')
 */
export function stackIn(line: string): Stack | undefined {
  const stack: Tag[] = [];
  for (const [, ethertype = '', id] of line.matchAll(
    /\(0x([0-9a-f]{4})\),(?: length \d+:)? vlan (\d{1,4}),/g,
  )) {
    stack.push({ ethertype, id: Number(id) });
  }
  return stack.length === 0 ? undefined : stack;
}

/** The state of the far end, as a stack from it shows. */
export type Heard = 'right' | 'tags_swapped' | 'ethertype' | 'c_tag' | 'untranslated' | 'single';

/**
 * The state of the far end that a stack from it shows, by the reservation's tags of both ends: a provider
 * that finds no reservation for a frame's tags may pass it on as it is. Undefined for frames of somebody
 * else.
 */
export function heardIn(stack: Stack, end: End): Heard | undefined {
  const { sTag, cTag, otherSTag, otherCTag } = end;
  const [outer, inner] = stack;
  if (!outer) return undefined;
  const right = outerEthertype(end);
  const ours = [sTag, cTag, otherSTag, otherCTag];
  if (outer.id === undefined || !ours.includes(outer.id)) return undefined;
  if (!inner) return 'single';
  const isPair = (s: number, c: number): boolean => outer.id === s && inner.id === c;
  const kinds = outer.ethertype === right && inner.ethertype === Q;
  if (isPair(sTag, cTag)) return kinds ? 'right' : 'ethertype';
  if (isPair(otherSTag, otherCTag)) return kinds ? 'untranslated' : 'ethertype';
  if (isPair(cTag, sTag) || isPair(otherCTag, otherSTag)) return 'tags_swapped';
  if (outer.ethertype === right && (outer.id === sTag || outer.id === otherSTag)) return 'c_tag';
  return undefined;
}
