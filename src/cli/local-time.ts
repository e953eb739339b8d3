import { Temporal } from 'temporal-polyfill';
import { Failure } from '../contract/failure.ts';

/** A time of day in a time zone. */
export interface LocalTime {
  /** `today`, `tomorrow`, or a date as `2026-12-01`. */
  day: string;
  /** As `10:00` or `10:00:00`. */
  time: string;
  /** An IANA time zone, such as `Europe/Brussels`. */
  zone: string;
  /** Milliseconds since the Unix epoch, for today and tomorrow. */
  now: number;
}

/**
 * The instant of a local time, in milliseconds.
 *
 * @throws Failure `usage` for an unknown zone, a day or time that does not exist, and one that exists twice, when
 *   clocks are put back
 */
export function localInstant({ day, time, zone, now }: LocalTime): number {
  let today: Temporal.PlainDate;
  try {
    today = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(zone).toPlainDate();
  } catch {
    throw new Failure('usage', `${JSON.stringify(zone)} is not a time zone.`, {
      fix: '--tz Europe/Brussels',
    });
  }
  try {
    const date =
      day === 'today' ? today : day === 'tomorrow' ? today.add({ days: 1 }) : Temporal.PlainDate.from(day);
    const local = date.toPlainDateTime(Temporal.PlainTime.from(time.padStart(5, '0')));
    return local.toZonedDateTime(zone, { disambiguation: 'reject' }).epochMilliseconds;
  } catch {
    throw new Failure('usage', `${day} ${time} does not exist, or exists twice, in ${zone}.`, {
      why: 'Clocks may be put forward or back then.',
      fix: 'Give the time with an offset: 2026-12-01T10:00:00+01:00.',
    });
  }
}
