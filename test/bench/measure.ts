import type { Result } from './benchmark.ts';

/** What is measured against something else: gives its own figure for one round (a time, or a rate). */
export type Contender = () => number | Promise<number>;

/**
 * Compares two contenders that took turns: the ratio is the median, over the rounds, of one's figure by the other's of the same
 * round.
 *
 * @param shown a figure with its unit
 */
export type Compare<Name extends string> = (
  over: Name,
  under: Name,
  about: Pick<Result, 'name' | 'what' | 'limit' | 'bound'>,
  shown: (figure: number) => string,
) => Result;

/**
 * Lets contenders take turns within one run, so that what else the machine does hits all of them; every other round
 * in reverse order. One round before the first is not counted.
 *
 * @param rounds how many are counted
 */
export async function alternate<Name extends string>(
  rounds: number,
  contenders: readonly (readonly [name: Name, measure: Contender])[],
): Promise<Compare<Name>> {
  const figures = new Map<Name, number[]>(contenders.map(([name]) => [name, []]));
  for (let round = -1; round < rounds; round += 1) {
    for (const [name, measure] of round % 2 === 0 ? contenders : contenders.toReversed()) {
      const figure = await measure();
      if (round >= 0) figures.get(name)?.push(figure);
    }
  }
  const of = (name: Name): number[] => figures.get(name) ?? [];
  return (over, under, about, shown) => ({
    ...about,
    ratio: median(of(over).map((figure, round) => figure / (of(under)[round] ?? Number.NaN))),
    measured: `${shown(median(of(over)))} ÷ ${shown(median(of(under)))}`,
  });
}

/** The middle of some figures; NaN of none. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** How long something takes, in milliseconds. */
export async function milliseconds(work: () => unknown): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/**
 * Calls `work` from several places at once until the time is over.
 *
 * @param seconds how long new calls are made; those under way are finished
 * @returns calls per second
 */
export async function ratePerSecond(
  { inFlight, seconds }: { inFlight: number; seconds: number },
  work: () => Promise<unknown>,
): Promise<number> {
  const began = performance.now();
  let calls = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() - began < seconds * 1000) {
      await work();
      calls += 1;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  return (calls * 1000) / (performance.now() - began);
}
