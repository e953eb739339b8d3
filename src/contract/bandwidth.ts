import { Failure } from './failure.ts';
import { withDecimalPoint } from './typed-number.ts';

/** The largest bandwidth that a request can name, in Mbps: fifteen digits, which a number holds exactly. */
export const MAX_BANDWIDTH = 999_999_999_999_999;

const FACTOR = { M: 1, G: 1000, T: 1_000_000 } as const;

/**
 * Bandwidth as people type it, in Mbps: `100`, `100M`, `1G`, `2.5G`, `2,5 Gbps`, `10 Gbit`, `1Gb/s` (cli/README.md, "Values").
 *
 * @example parseBandwidth('2.5G') // 2500
 * @throws Failure `usage` for another form, or a fraction of 1 Mbps
 */
export function parseBandwidth(text: string): number {
  const wrong = (why: string) => wronglyTyped(text, 'a bandwidth', why);
  const match = /^(\d{1,15})(?:\.(\d{1,6}))?\s*(?:([MGT])(?:b(?:its?)?(?:ps|\/s)?)?)?$/i.exec(
    withDecimalPoint(text.trim()),
  );
  if (match && /B(?!IT)/.test(text.replace(/bit/i, 'BIT'))) {
    throw wrong('B is a byte, of 8 bits: write 1 GB/s as 8G.');
  }
  if (!match) throw wrong('Write it as 100 (Mbps), 100M, 1G or 2.5G.');
  const [, whole = '', fraction = '', unit = 'M'] = match;
  const mbps = scaled(whole, fraction, BigInt(FACTOR[unit.toUpperCase() as keyof typeof FACTOR]));
  if (mbps === undefined) throw wrong('It must be a whole number of Mbps.');
  if (mbps < 1n) throw wrong('It must be at least 1 Mbps.');
  if (mbps > BigInt(MAX_BANDWIDTH)) throw wrong('It is more than any link has.');
  return Number(mbps);
}

/**
 * Mbps for people.
 *
 * @example formatBandwidth(2500) // '2.5 Gbps'
 */
export function formatBandwidth(mbps: number): string {
  return mbps >= 1000 ? `${mbps / 1000} Gbps` : `${mbps} Mbps`;
}

/** A bandwidth in Mbps, with what it was where that differs. @example bandwidthChange(200, 500) // '200 → 500 Mbps' */
export function bandwidthChange(before: number, after: number): string {
  if (before === after) return formatBandwidth(after);
  const [from, to] = [formatBandwidth(before), formatBandwidth(after)];
  const isAlike = from.split(' ')[1] === to.split(' ')[1];
  return `${isAlike ? from.split(' ')[0] : from} → ${to}`;
}

/**
 * Mbps as they are typed.
 *
 * @example bandwidthWord(2500) // '2.5G'
 */
export function bandwidthWord(mbps: number): string {
  return mbps >= 1000 ? `${mbps / 1000}G` : `${mbps}M`;
}

/**
 * A decimal number times a factor; undefined where that is not whole. In integers: 1.1 * 1000 is not 1100 in floating point.
 *
 * @param fraction the digits behind the point
 */
export function scaled(whole: string, fraction: string, factor: bigint): bigint | undefined {
  const [product, divisor] = [BigInt(whole + fraction) * factor, 10n ** BigInt(fraction.length)];
  return product % divisor === 0n ? product / divisor : undefined;
}

/** The failure of a typed value. @param kind such as `a bandwidth` */
export function wronglyTyped(text: string, kind: string, why: string, fix = '--help'): Failure {
  return new Failure('usage', `${JSON.stringify(text)} is not ${kind}.`, { why, fix });
}
