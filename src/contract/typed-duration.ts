import { wronglyTyped } from './bandwidth.ts';
import { readTypedDuration, SECOND } from './durations.ts';

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
