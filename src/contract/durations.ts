import { Failure } from './failure.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const WEEK = 7 * DAY;

const UNIT = { w: WEEK, d: DAY, h: HOUR, m: MINUTE, s: SECOND } as const;

/**
 * A duration as people type it, in milliseconds: `90m`, `2h`, `2h30m`, `3d`, `1w`, or ISO 8601 as `P3D` and `PT90M`
 * (cli/README.md, "Values"). A day is always 24 h and a week 7 days; months and years have no
 * fixed length and are refused.
 *
 * @example parseDuration('2h30m') // 9000000
 * @throws Failure `usage`
 */
export function parseDuration(text: string): number {
  const parts =
    /^(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/i.exec(text.trim()) ??
    /^P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/i.exec(text.trim());
  const [weeks, days, hours, minutes, seconds] = (parts ?? []).slice(1).map((part) => Number(part ?? 0));
  const total =
    (weeks ?? 0) * UNIT.w +
    (days ?? 0) * UNIT.d +
    (hours ?? 0) * UNIT.h +
    (minutes ?? 0) * UNIT.m +
    (seconds ?? 0) * UNIT.s;
  if (total > 0 && Number.isSafeInteger(total)) return total;
  throw new Failure('usage', `${JSON.stringify(text)} is not a duration.`, {
    why: !parts
      ? 'Write it as 90m, 2h, 2h30m, 3d, 1w or P3D.'
      : total === 0
        ? 'It must be at least 1 s.'
        : 'It is too long.',
    fix: 'slices-conn help times',
  });
}

/**
 * Seconds as flags take them: a number, or a duration with its units.
 *
 * @example secondsIn('5m') // 300
 * @returns NaN for any other text
 */
export function secondsIn(text: string): number {
  if (/^[0-9]*\.?[0-9]+$/.test(text)) return Number(text);
  try {
    return parseDuration(text) / SECOND;
  } catch {
    return Number.NaN;
  }
}

/**
 * A duration for people, to the two largest units.
 *
 * @example formatDuration(9_000_000) // '2 h 30 min'
 */
export function formatDuration(milliseconds: number): string {
  const units = [
    [DAY, 'd'],
    [HOUR, 'h'],
    [MINUTE, 'min'],
    [SECOND, 's'],
  ] as const;
  let rest = Math.max(0, Math.round(milliseconds / SECOND)) * SECOND;
  const parts: string[] = [];
  for (const [size, name] of units) {
    const count = Math.floor(rest / size);
    if (count > 0) parts.push(`${count} ${name}`);
    else if (parts.length > 0) break;
    rest -= count * size;
    if (parts.length === 2) break;
  }
  return parts.length > 0 ? parts.join(' ') : '0 s';
}
