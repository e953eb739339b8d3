import { Failure } from '../../contract/failure.ts';
import { formatInstant } from '../../contract/instants.ts';
import { clockOf, timeText } from '../../words/civil-time.ts';
import { adviceOnTime } from '../../words/time-advice.ts';
import { parseTime, type TimeReading } from '../../words/typed-time.ts';

/** Absolute times begin so: a date, or a day with its month and year. plan.schema.json says the same. */
const ABSOLUTE =
  /^\s*(?:\d{4}-\d{2}-\d{2}|(?:[a-z]{3}\S*\s+)?(?:\d{1,2}\S*\s+[a-z]{3}\S*|[a-z]{3}\S*\s+\d{1,2}\S*)\s+\d{4}(?![\d:]))/i;

/** The zone in which a plan file's times are read. */
export interface PlanZone {
  /** Milliseconds since the Unix epoch. */
  now: number;
  /** Its name. */
  zone: string;
  /** Whether the file names it. Else it is the person's: another machine would read another time. */
  isOfFile: boolean;
}

/**
 * A time of a plan file, in milliseconds: an absolute one in a zone that the file names, since a file that is applied twice
 * must mean the same.
 *
 * @param or what could stand in its place
 * @throws Failure `usage` for any other time, with what to write for it
 */
export function readPlanTime(text: string, plan: PlanZone, reading: TimeReading, or = ''): number {
  const { now, zone } = plan;
  const read = (zoneAdvice?: string): number =>
    parseTime(
      text,
      { now, zone, advice: (typed) => adviceOnTime(typed, ['start:', 'end:']) },
      { ...reading, ...(zoneAdvice === undefined ? {} : { zoneAdvice }) },
    );
  if (ABSOLUTE.test(text)) return plan.isOfFile ? read() : read(toWrite(read(), plan));
  let why = `Write it as 2026-12-01T10:00:00Z${or}.`;
  try {
    why = toWrite(read(), plan);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
  }
  throw new Failure('usage', `${JSON.stringify(text)} is not an absolute time.`, { why });
}

/** What to write for an instant: the time in the file's zone, else with the offset of the person's, which is named. */
function toWrite(instant: number, { zone, isOfFile }: PlanZone): string {
  const clock = clockOf(zone);
  const local = formatInstant(clock.civil(instant)).replace(/(?::00)?\.\d+Z$/, '');
  if (isOfFile) return `Write ${local.replace('T', ' ')}.`;
  const offset = clock.offset(instant);
  const utc = zone === 'UTC' ? 'Z' : `${offset < 0 ? '-' : '+'}${timeText(Math.abs(offset))}`;
  return `Write ${local}${utc} (${zone}), or tz: ${zone} once at the head of the file.`;
}
