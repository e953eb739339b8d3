/** How many bytes 1 Mbps carries in a millisecond. */
const BYTES_PER_MBPS_MS = 125;

/**
 * How long a transfer takes, in milliseconds, rounded up.
 *
 * @param volume bytes
 * @param rate Mbps
 * @param unit it is a multiple of so many milliseconds. Default: 1
 *
 * @example
 * // 250,000 bytes at 1000 Mbps take 2 ms; one byte more takes 3 ms.
 */
export function durationOf(volume: number, rate: number, unit = 1): number {
  // Exact: a quotient of integers below 2^53 is never rounded to another integer.
  return Math.ceil(volume / (BYTES_PER_MBPS_MS * rate * unit)) * unit;
}

/**
 * The lowest rate that carries a volume in time, in whole Mbps.
 *
 * @param volume bytes
 * @param duration milliseconds, more than 0
 */
export function slowestRate(volume: number, duration: number): number {
  return Math.ceil(volume / (BYTES_PER_MBPS_MS * duration));
}
