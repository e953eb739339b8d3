/** The same numbers with room for twice as many. */
export function doubledFloats(values: Float64Array): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(2 * values.length);
  larger.set(values);
  return larger;
}

/** The same numbers with room for twice as many. */
export function doubledInts(values: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(2 * values.length);
  larger.set(values);
  return larger;
}

/** The same numbers with room for twice as many. */
export function doubledShorts(values: Uint16Array): Uint16Array<ArrayBuffer> {
  const larger = new Uint16Array(2 * values.length);
  larger.set(values);
  return larger;
}

/**
 * The last index from `first` to before `end` whose value is at most `limit`; `first` when none is.
 *
 * @param values rise from `first` to before `end`
 */
export function lastAtOrBefore(values: Float64Array, first: number, end: number, limit: number): number {
  let low = first;
  let high = end - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if ((values[middle] ?? 0) <= limit) low = middle;
    else high = middle - 1;
  }
  return low;
}
