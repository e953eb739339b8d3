import { readTypedDuration, SECOND, withDecimalPoint } from './durations.ts';
import { Failure } from './failure.ts';
import { MAX_VOLUME } from './request-limits.ts';

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
  if (!match) throw wrong('Write it as 100 (Mbps), 100M, 1G or 2.5G.');
  const [, whole = '', fraction = '', unit = 'M'] = match;
  const mbps = scaled(whole, fraction, BigInt(FACTOR[unit.toUpperCase() as keyof typeof FACTOR]));
  if (mbps === undefined) throw wrong('It must be a whole number of Mbps.');
  if (mbps < 1n) throw wrong('It must be at least 1 Mbps.');
  if (mbps > BigInt(MAX_BANDWIDTH)) throw wrong('It is more than any link has.');
  if (/B(?!IT)/.test(text.replace(/bit/i, 'BIT'))) {
    const [bits, bytes] = [Number(mbps), Number(8n * mbps)].map(bandwidthWord);
    throw wrong(`B is a byte, of 8 bits: write ${bytes} for bytes, or ${bits} for bits.`);
  }
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
function scaled(whole: string, fraction: string, factor: bigint): bigint | undefined {
  const [product, divisor] = [BigInt(whole + fraction) * factor, 10n ** BigInt(fraction.length)];
  return product % divisor === 0n ? product / divisor : undefined;
}

/**
 * The failure of a typed value. In an amount, or with a unit, a comma before three digits has two readings: both are said.
 *
 * @param kind such as `a bandwidth`
 * @param why how such a value is written
 * @param fix default: the help of the command
 */
export function wronglyTyped(text: string, kind: string, why: string, fix?: string): Failure {
  const parts = text.split(/(?<=\d),(?=\d{3}(?!\d))/);
  const readings = [parts.join(''), ...(parts.length === 2 ? [parts.join('.')] : [])].join(' or ');
  const both = `A comma before three digits may part thousands or a fraction: write ${readings}.`;
  return new Failure('usage', `${JSON.stringify(text)} is not ${kind}.`, {
    why: parts.length > 1 && (fix === undefined || /\d\s?[a-z]/i.test(text)) ? both : why,
    fix,
  });
}

const PREFIXES: readonly string[] = ['', 'K', 'M', 'G', 'T', 'P', 'E'];

/**
 * A volume as people type it, in bytes, always with a unit: `800G`, `1.5TB` (decimal), `2TiB` (binary), `5000000B`
 * (cli/README.md, "Values").
 *
 * @example parseVolume('800G') // 800_000_000_000
 * @throws Failure `usage` for another form, a part of a byte, or more than 9 PB
 */
export function parseVolume(text: string): number {
  const wrong = (why: string) => wronglyTyped(text, 'a volume', why);
  const match = /^(\d{1,16})(?:\.(\d{1,9}))?\s*(?=\D)([kKMGTPE]?)(i?)B?$/.exec(withDecimalPoint(text.trim()));
  const [, whole = '', fraction = '', prefix = '', binary = ''] = match ?? [];
  if (!match || (binary !== '' && prefix === '')) {
    throw wrong('Write it as 800G, 50T or 2TiB, with its unit.');
  }
  const exponent = BigInt(PREFIXES.indexOf(prefix.toUpperCase()));
  const bytes = scaled(whole, fraction, (binary === '' ? 1000n : 1024n) ** exponent);
  if (bytes === undefined || bytes < 1n) throw wrong('It must be a whole number of bytes.');
  if (bytes > BigInt(MAX_VOLUME)) throw wrong('The most is 9 PB.');
  return Number(bytes);
}

/** The bytes that 1 Mbps carries in a minute. */
const LEAST_VOLUME = 7_500_000;
/** More Mbps than a link has: what takes a minute or more even so is sent as it was asked for. */
const FASTEST = 1_000_000;

/**
 * A request for a volume such that what is found lasts a minute or more: a shorter one would be over before it could be
 * verified. So its rate is limited, and what 1 Mbps carries in less than a minute is made that much. Others stay as they are.
 */
export function withLastingVolume<
  Request extends { volume?: number | undefined; bandwidth?: number | undefined },
>(request: Request): Request {
  const volume = Math.max(request.volume ?? Infinity, LEAST_VOLUME);
  const most = Math.floor(volume / LEAST_VOLUME);
  if (most >= FASTEST) return request;
  return { ...request, volume, bandwidth: Math.min(most, request.bandwidth ?? most) };
}

/**
 * Bytes for people, decimal, to three digits.
 *
 * @example formatVolume(2_199_023_255_552) // '2.2 TB'
 */
export function formatVolume(bytes: number): string {
  const rounded = Number(bytes.toPrecision(3));
  const exponent = Math.min(PREFIXES.length - 1, Math.floor(Math.log10(rounded) / 3));
  return `${Number((rounded / 1000 ** exponent).toPrecision(3))} ${exponent === 1 ? 'k' : PREFIXES[exponent]}B`;
}

/**
 * A duration as people type it, in milliseconds, 1 s or more; see {@link readTypedDuration}.
 *
 * @example parseDuration('2h30m') // 9000000
 * @throws Failure `usage`
 */
export function parseDuration(text: string): number {
  const length = readTypedDuration(text);
  if (length !== undefined && length >= SECOND) return length;
  const form = /\d\s*(?:M|mo)\s*$/.test(text)
    ? '1m is a minute; write 30d for a month.'
    : 'Write it as 90m, 2h, 2h30m, 3d, 1w or P3D.';
  const why = length === undefined ? form : 'It must be at least 1 s.';
  throw wronglyTyped(text, 'a duration', why, 'slices-conn help times');
}
