import { type End, ETHERTYPE } from '../../vlan/end.ts';

/** The inner tag's ethertype always, and the outer one's of a device that was made without `proto`. */
export const Q = '8100';

/**
 * The tags that the frames of an end have when they arrive, the outer one first. A tag is its ethertype, four hexadecimal
 * digits, and its number; a stack is the tags of a frame with blanks between, as `probe --json` has it.
 *
 * @example tagsAt(end) // ['88a8:1001', '8100:17']
 */
export function tagsAt({ outer, sTag, cTag }: End): readonly [outer: string, inner: string] {
  return [`${ETHERTYPE[outer].slice(2)}:${sTag}`, `${Q}:${cTag}`];
}

/**
 * The stack of a frame in a line of `tcpdump -e -n`; empty for a frame without a tag.
 *
 * @example stackIn('… ethertype 802.1Q-QinQ (0x88a8), length 50: vlan 1001, p 0, ethertype 802.1Q (0x8100), vlan 17, p 0, …')
 */
export function stackIn(line: string): string {
  const tags = line.matchAll(/\(0x([0-9a-f]{4})\),(?: length \d+:)? vlan (\d{1,4}),/g);
  return [...tags].map(([, ethertype, id]) => `${ethertype}:${id}`).join(' ');
}

/** The numbers of a stack alone. @example idsIn('88a8:1001 8100:17') // '1001 17' */
export function idsIn(stack: string): string {
  return stack.replaceAll(/\w+:/g, '');
}

/** The state of the far end, as a stack from it shows. */
export type Heard = 'right' | 'tags_swapped' | 'ethertype' | 'c_tag' | 'untranslated' | 'single';

/**
 * The state of the far end that a stack from it shows, by the reservation's tags of both ends: a provider
 * that finds no reservation for a frame's tags may pass it on as it is. Undefined for frames of somebody
 * else.
 *
 * @param stack where it is not known which inner tag a frame has, that one is `8100:?`: see watched-stacks.ts
 */
export function heardIn(stack: string, end: End): Heard | undefined {
  const { sTag, cTag, otherSTag, otherCTag } = end;
  const [outer = '', inner] = idsIn(stack).split(' ');
  if (![sTag, cTag, otherSTag, otherCTag].map(String).includes(outer)) return undefined;
  if (inner === undefined) return 'single';
  const kind = tagsAt(end)[0].slice(0, 4);
  const isTagged = stack === `${kind}:${outer} ${Q}:${inner}`;
  const isPair = (s: number, c: number): boolean => outer === String(s) && inner === String(c);
  if (isPair(sTag, cTag)) return isTagged ? 'right' : 'ethertype';
  if (isPair(otherSTag, otherCTag)) return isTagged ? 'untranslated' : 'ethertype';
  if (isPair(cTag, sTag) || isPair(otherCTag, otherSTag)) return 'tags_swapped';
  return stack.startsWith(kind) && [sTag, otherSTag].includes(Number(outer)) ? 'c_tag' : undefined;
}
