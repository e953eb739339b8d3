import { scaled, wronglyTyped } from './bandwidth.ts';
import { MAX_VOLUME } from './request-limits.ts';
import { withDecimalPoint } from './typed-number.ts';

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
