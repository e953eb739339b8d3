/** Which side of its limit a ratio has to be on. */
export type Bound = 'atMost' | 'atLeast';

/** One ratio with its limit. */
export interface Result {
  /** Unique among all results; what the last line of output calls it. */
  name: string;
  /** What is divided by what. */
  what: string;
  ratio: number;
  limit: number;
  bound: Bound;
  /** The bare figures behind the ratio, with their units. */
  measured: string;
}

/** How a benchmark is run. */
export interface RunOptions {
  /** Fewer rounds and less data, for a first look: the limits stay as they are. */
  quick: boolean;
}

/** One file of this folder: what it measures and how. */
export interface Benchmark {
  /** What it is run by: `npm run bench NAME`. */
  name: string;
  /** How it measures, for the table. */
  method: string;
  run(options: RunOptions): Promise<Result[]>;
}

/** Whether a ratio is on the right side of its limit. */
export function isMet({ ratio, limit, bound }: Result): boolean {
  return bound === 'atMost' ? ratio <= limit : ratio >= limit;
}

/** A limit as it is read: `≤ 2` or `≥ 0.75`. */
export function limitText({ limit, bound }: Result): string {
  return `${bound === 'atMost' ? '≤' : '≥'} ${limit}`;
}
