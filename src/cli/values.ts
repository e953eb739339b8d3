import * as v from 'valibot';
import { Failure } from '../contract/failure.ts';
import { ReservationId } from '../contract/fields.ts';
import { RESERVATION_NAME } from '../contract/ids.ts';
import { SITES } from '../contract/sites.ts';
import { withDecimalPoint } from '../contract/typed-number.ts';
import { nearest } from '../session/choice.ts';

export { bandwidthChange, bandwidthWord, formatBandwidth, parseBandwidth } from '../contract/bandwidth.ts';

/**
 * The known site with the name {@link nearest} to a mistyped one; undefined where none is near.
 *
 * @param options `other`: the site at the other end, which is not meant twice; `sites`: those of the service, where it
 *   tells them, in place of the built-in ones
 */
export function nearestSite(
  name: string,
  { other, sites = SITES }: { other?: string | undefined; sites?: readonly string[] | undefined } = {},
): string | undefined {
  return nearest(
    name,
    sites.filter((site) => site !== other),
  );
}

/**
 * Checks the form of a site name. The service decides whether the site exists: a deployment can have other
 * sites than the twelve of the spec.
 *
 * @throws Failure `usage`, with the name that is meant where only its letters differ
 */
export function siteName(text: string): string {
  if (SITE_NAME.test(text)) return text;
  const meant = text.toLowerCase().replaceAll(/[\s._]+/g, '-');
  const hint = SITE_NAME.test(meant) ? ` Did you mean ${meant}?` : '';
  throw new Failure('usage', `${JSON.stringify(text)} is not a site name.${hint}`, {
    why: 'It has lower-case letters, digits and dashes only.',
    fix: 'slices-conn sites',
  });
}

const SITE_NAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** The sites that a service names where it refuses one; undefined where it names none. */
export function sitesNamed(details: Failure['facts']['details'] = []): readonly string[] | undefined {
  const sites = details.find(({ code }) => code === 'site_unknown')?.facts?.['sites'];
  return Array.isArray(sites) ? sites.filter((site) => typeof site === 'string') : undefined;
}

/** Checks the form of a reservation id. @throws Failure `usage` for another form */
export function reservationId(text: string): string {
  if (v.is(ReservationId, text)) return text;
  throw notAnId(text, '');
}

function notAnId(text: string, more: string): Failure {
  return new Failure('usage', `${JSON.stringify(text)} is not a reservation id.`, {
    why: `Ids look like con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q.${more}`,
    fix: 'slices-conn list',
  });
}

/**
 * Checks the form of an ID argument: a reservation's id, its name, or four characters or more of the id's
 * last section, after the `…` of a shortened id or without.
 *
 * @throws Failure `usage` for another form
 */
export function reservationWord(text: string): string {
  const part = text.replace(/^(?:…|\.\.\.)/, '');
  if (/^[A-Za-z0-9_-]{4,128}$/.test(part)) return part;
  if (RESERVATION_NAME.test(text) || v.is(ReservationId, text)) return text;
  throw notAnId(text, ' Four characters or more of the last part are enough, or its name.');
}

const PREFIXES: readonly string[] = ['', 'K', 'M', 'G', 'T', 'P', 'E'];

/**
 * A volume as people type it, in bytes: `800G`, `1.5TB` (decimal), `2TiB` (binary), `5000000` (cli/README.md,
 * "Values").
 *
 * @example parseVolume('800G') // 800_000_000_000
 * @throws Failure `usage` for another form, a part of a byte, or more than 9 PB
 */
export function parseVolume(text: string): number {
  const match = /^(\d{1,16})(?:\.(\d{1,9}))?\s*([kKMGTPE]?)(i?)B?$/.exec(withDecimalPoint(text.trim()));
  const [, whole = '', fraction = '', prefix = '', binary = ''] = match ?? [];
  if (!match || (binary !== '' && prefix === '')) {
    throw wrong(text, 'Write it as 800G, 50T or 2TiB, in bytes.');
  }
  const exponent = BigInt(PREFIXES.indexOf(prefix.toUpperCase()));
  const scaled = BigInt(whole + fraction) * (binary === '' ? 1000n : 1024n) ** exponent;
  const divisor = 10n ** BigInt(fraction.length);
  const bytes = scaled / divisor;
  if (scaled % divisor !== 0n || bytes < 1n) throw wrong(text, 'It must be a whole number of bytes.');
  if (bytes > BigInt(Number.MAX_SAFE_INTEGER)) throw wrong(text, 'The most is 9 PB.');
  return Number(bytes);
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

function wrong(text: string, why: string): Failure {
  return new Failure('usage', `${JSON.stringify(text)} is not a volume.`, {
    why,
    fix: 'slices-conn reserve --help',
  });
}
