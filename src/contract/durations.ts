/**
 * A typed text with a point for the decimal comma that people write. A comma before three digits stays, since it can be
 * read in two ways.
 *
 * @example withDecimalPoint('2,5G') // '2.5G'
 * @example withDecimalPoint('1,500M') // '1,500M'
 */
export function withDecimalPoint(text: string): string {
  return text.replace(/(\d),(\d{1,2})(?!\d)/g, '$1.$2');
}

/** Milliseconds of a second. */
export const SECOND = 1000;
/** Milliseconds of a minute. */
export const MINUTE = 60 * SECOND;
/** Milliseconds of an hour. */
export const HOUR = 60 * MINUTE;
/** Milliseconds of a day of 24 hours; where clocks change, a day of the calendar has 23 or 25. */
export const DAY = 24 * HOUR;
/** Milliseconds of seven days of 24 hours. */
export const WEEK = 7 * DAY;

/** From weeks to seconds. */
const SIZES = [WEEK, DAY, HOUR, MINUTE, SECOND];
const ISO = /^P(?!$)(?:(\d+)W)?(?:(\d+)D)?(?:T(?!$)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,3})?)S)?)?$/;

/** The length of so many weeks to seconds, in milliseconds; undefined where it can't be counted exactly. */
function lengthOf(counts: readonly (string | undefined)[]): number | undefined {
  const length = Math.round(SIZES.reduce((sum, size, at) => sum + Number(counts[at] ?? 0) * size, 0));
  return Number.isSafeInteger(length) ? length : undefined;
}

/**
 * The milliseconds of an ISO 8601 duration in weeks, days (of 24 h), hours, minutes and seconds, such as `PT2H` or
 * `P1DT30M`, with at most three digits of a second's fraction; undefined for other text, and for a duration that is too long to
 * be counted exactly.
 *
 * @example readIsoDuration('PT2H') // 7200000
 */
export function readIsoDuration(text: string): number | undefined {
  const match = ISO.exec(text);
  return match ? lengthOf(match.slice(1)) : undefined;
}

/**
 * A duration as the services read it (ISO 8601), in hours at most.
 *
 * @param milliseconds a whole number, 0 or more
 * @example isoDuration(9_000_000) // 'PT2H30M'
 */
export function isoDuration(milliseconds: number): string {
  const hours = Math.floor(milliseconds / HOUR);
  const minutes = Math.floor((milliseconds % HOUR) / MINUTE);
  const seconds = (milliseconds % MINUTE) / SECOND;
  const parts = [
    hours > 0 ? `${hours}H` : '',
    minutes > 0 ? `${minutes}M` : '',
    seconds > 0 ? `${seconds}S` : '',
  ];
  return `PT${parts.join('') || '0S'}`;
}

/** Weeks to seconds, each with its unit as people write it; see {@link readTypedDuration}. */
const TYPED = new RegExp(
  `^${['w(?:eeks?)?', 'd(?:ays?)?', 'h(?:(?:ou)?rs?)?', 'm(?:in(?:ute)?s?)?', 's(?:ec(?:ond)?s?)?']
    .map((unit) => `(?:(\\d+(?:\\.\\d+)?) ?${unit})? ?`)
    .join('')}$`,
  'i',
);

/**
 * The milliseconds of a duration as people type it (cli/README.md, "Values"): `90m`, `2h30m`, `1h30`, `11 h 6 min`,
 * `1.5 hours`, `3d`, `1w`, or ISO 8601, in any case; undefined for other text. Units go from the largest to the smallest,
 * and only the last number may have a fraction. Months and years have no fixed length and are other text, and so is a
 * capital M outside ISO 8601: it can be read as a month.
 */
export function readTypedDuration(text: string): number | undefined {
  const typed = withDecimalPoint(text.trim()).replace(/\s+/g, ' ');
  const iso = readIsoDuration(typed.toUpperCase());
  if (iso !== undefined || typed === '' || /\d ?M(?!in|IN)/.test(typed)) return iso;
  const counts = TYPED.exec(typed.replace(/h ?([0-5]\d)$/i, 'h$1m'))?.slice(1);
  const last = counts?.findLastIndex((count) => count !== undefined);
  if (!counts || counts.some((count, at) => at !== last && count?.includes('.'))) return undefined;
  return lengthOf(counts);
}

/**
 * Seconds as flags take them: a number, or a duration of a second or more with its units.
 *
 * @example secondsIn('5m') // 300
 * @returns NaN for any other text
 */
export function secondsIn(text: string): number {
  if (/^[0-9]*\.?[0-9]+$/.test(text)) return Number(text);
  const length = readTypedDuration(text) ?? 0;
  return length >= SECOND ? length / SECOND : Number.NaN;
}

/** Each unit with its letter, as it is typed, and its sign. */
const UNITS = [
  [DAY, 'd', 'd'],
  [HOUR, 'h', 'h'],
  [MINUTE, 'm', 'min'],
  [SECOND, 's', 's'],
] as const;

/** How often each of {@link UNITS} is in a duration. */
function inUnits(milliseconds: number): { count: number; letter: string; sign: string }[] {
  let rest = milliseconds;
  return UNITS.map(([size, letter, sign]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return { count, letter, sign };
  });
}

/** A duration as it is typed; undefined where it has a part of a second. @example durationWord(9_000_000) // '2h30m' */
export function durationWord(milliseconds: number): string | undefined {
  if (milliseconds < SECOND || milliseconds % SECOND !== 0) return undefined;
  return inUnits(milliseconds)
    .map(({ count, letter }) => (count > 0 ? `${count}${letter}` : ''))
    .join('');
}

/**
 * A duration for people, to the two largest units.
 *
 * @example formatDuration(9_000_000) // '2 h 30 min'
 */
export function formatDuration(milliseconds: number): string {
  const units = inUnits(Math.max(0, Math.round(milliseconds / SECOND)) * SECOND);
  const largest = units.findIndex(({ count }) => count > 0);
  if (largest === -1) return '0 s';
  const shown = units.slice(largest, largest + 2).filter(({ count }) => count > 0);
  return shown.map(({ count, sign }) => `${count} ${sign}`).join(' ');
}
