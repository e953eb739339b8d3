import { type Period, TAG_PLACES, type TagPlace, type Tags } from './demand.ts';
import type { Holdings } from './holdings.ts';
import type { TagLayer } from './tag-layer.ts';

/**
 * How many neighbours in time are checked before the search goes through all tags instead. On a link with many free tags a
 * few neighbours are enough; on one that is nearly full there are fewer tags than reservations.
 */
const NEIGHBOURS = 256;

/** The best tag that was found for a place so far. */
interface Candidate {
  tag: number;
  gap: number;
}

/**
 * Chooses a tag at each of the four places by best fit. The result is that of {@link TagLayer.bestFit}, but the search
 * starts from the reservations: it walks those that end before the period or start after it, nearest first; the first
 * whose tag is free leaves the smallest gap. At equal distances it checks all of them and takes the lowest tag.
 *
 * @param now milliseconds; time before it does not count as a gap, see {@link TagLayer.bestFit}
 * @param kept tags that are chosen already
 * @returns the tags; a place without a free tag is missing
 */
export function chooseTags(
  layers: Readonly<Record<TagPlace, TagLayer>>,
  holdings: Holdings,
  { start, end }: Period,
  { now, kept }: { now: number; kept: Partial<Tags> },
): Partial<Tags> {
  const chosen: Partial<Tags> = { ...kept };
  const found: Partial<Record<TagPlace, Candidate>> = {};
  let open = TAG_PLACES.filter((place) => chosen[place] === undefined);
  const before = holdings.byEnd.downFrom(start);
  const after = holdings.byStart.upFrom(end);
  for (let seen = 0; seen < NEIGHBOURS && open.length > 0; seen += 1) {
    const ended = before.time() ?? Number.NEGATIVE_INFINITY;
    const toLeft = ended > now ? start - ended : Number.POSITIVE_INFINITY;
    const toRight = (after.time() ?? Number.POSITIVE_INFINITY) - end;
    const gap = Math.min(toLeft, toRight);
    open = open.filter((place) => {
      const best = found[place];
      if (!best || best.gap >= gap) return true;
      chosen[place] = best.tag;
      return false;
    });
    if (gap === Number.POSITIVE_INFINITY) {
      // No free tag has a neighbour: the lowest one is the best fit.
      for (const place of open) {
        const tag = layers[place].firstFree(start, end);
        if (tag !== undefined) chosen[place] = tag;
      }
      return chosen;
    }
    const nearest = toLeft <= toRight ? before : after;
    const slot = nearest.slot();
    nearest.advance();
    for (const place of open) {
      const tag = holdings.tagAt(slot, place);
      const lower = tag < (found[place]?.tag ?? Number.POSITIVE_INFINITY);
      if (lower && layers[place].isFree(tag, start, end)) found[place] = { tag, gap };
    }
  }
  for (const place of open) {
    const tag = layers[place].bestFit(start, end, now);
    if (tag !== undefined) chosen[place] = tag;
  }
  return chosen;
}
