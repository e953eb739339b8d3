/** One ratio with its limit. */
export interface Result {
  /** Unique among all results; what the last line of output calls it. */
  name: string;
  /** What is divided by what. */
  what: string;
  ratio: number;
  limit: number;
  /** Which side of its limit the ratio has to be on. */
  bound: 'atMost' | 'atLeast';
  /** The bare figures behind the ratio, with their units. */
  measured: string;
}

/**
 * One file of this folder; what stands before it is how it measures.
 *
 * @param quick fewer rounds and less data, for a first look: the limits stay as they are
 */
export type Benchmark = (options: { quick: boolean }) => Promise<Result[]>;
