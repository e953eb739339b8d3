import { type Period, TAG_PLACES, type TagPlace, type Tags } from './demand.ts';
import type { Holdings } from './holdings.ts';
import type { TagLayer } from './tag-layer.ts';

/**
 * How many neighbours in time are looked at before every tag is. On a link with tags to spare, a few are enough; on one
 * that is nearly full, looking at all tags is quicker than at all of their reservations.
 */
const NEIGHBOURS = 256;

/** What a place has found so far. */
interface Candidate {
  tag: number;
  gap: number;
}

/**
 * Chooses a tag at each of the four places by best fit: what {@link TagLayer.bestFit} finds for each of them, found
 * from the other end. The reservations that end before the period or start after it are walked in the order of their
 * distance; the first whose tag is free leaves the smallest gap. Of equal distances, all are looked at, since the lowest
 * tag is due.
 *
 * @param now time that has passed is no gap, see {@link TagLayer.bestFit}; milliseconds
 * @param kept tags that are chosen already
 * @returns the tags; a place where none is free is missing
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
      // No free tag has a neighbour: the lowest of them is as good as any.
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
