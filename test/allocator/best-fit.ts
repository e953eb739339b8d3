/** A tag that is held for a period. */
export type Hold = readonly [tag: number, start: number, end: number];

/**
 * The tag that wastes least, by a look at every hold of every tag; on a tie the lowest. See `Holdings.bestFit`.
 *
 * @returns with the smaller gap beside the period, infinite without neighbours
 */
export function bestFit(
  holds: readonly Hold[],
  tags: readonly number[],
  { start, end }: { start: number; end: number },
  now: number,
): { tag: number; gap: number } | undefined {
  let best: { tag: number; gap: number } | undefined;
  for (const tag of tags) {
    const own = holds.filter(([held]) => held === tag);
    if (own.some((hold) => hold[1] < end && start < hold[2])) continue;
    const toLeft = own.filter((hold) => hold[2] <= start && hold[2] > now).map((hold) => start - hold[2]);
    const toRight = own.filter((hold) => hold[1] >= end).map((hold) => hold[1] - end);
    const gap = Math.min(...toLeft, ...toRight, Number.POSITIVE_INFINITY);
    if (!best || gap < best.gap) best = { tag, gap };
  }
  return best;
}
