/** The same numbers with room for twice as many. */
export function doubled<Numbers extends Float64Array | Int32Array | Uint16Array>(values: Numbers): Numbers {
  const larger = new (values.constructor as new (length: number) => Numbers)(2 * values.length);
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
