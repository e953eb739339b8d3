import { HOW_TO_WRITE, readOffset, readWords } from './typed-time.ts';

const TIME_OF_DAY = '\\d\\d?(?::\\d\\d|\\s?[ap]m)';
/** A range: its day, the two times, and what is between them. */
const RANGE = new RegExp(
  `^(?:(.+?)[\\sT])??(${TIME_OF_DAY})(\\s*(?:[-–—]|to\\b|until\\b|till\\b)\\s*)(${TIME_OF_DAY}|\\d\\d?)$`,
  'i',
);

const quoted = (text: string): string => (text.includes(' ') ? `'${text}'` : text);

/** What was probably meant by a text that is not a time. @param names what comes before a start, and before an end; default: the flags */
export function adviceOnTime(typed: string, [start, end] = ['--start', '--end']): string {
  const [, day, from = '', between = '', until] = RANGE.exec(typed) ?? [];
  if (until !== undefined) {
    const at = (time: string): string => quoted(day === undefined ? time : `${day} ${time}`);
    const isOffset = between === '-' && readOffset(`-${until}`) !== undefined;
    const other = isOffset ? ` Where -${until} is an offset, write ${at(`${from} UTC-${until}`)}.` : '';
    return `A start and an end are two times: ${start} ${at(from)} ${end} ${at(until)}.${other}`;
  }
  const [, date, time] = /^(\d{4}-\d\d-\d\d)\s?[-+](\d\d:\d\d)$/.exec(typed) ?? [];
  if (date) return `Write '${date} ${time}'. An offset stands behind a time of day.`;
  if (/\bmidnight\b/i.test(typed))
    return "A day has two midnights: write 'friday 00:00' or 'saturday 00:00'.";
  const [, rest = '', zone] = /^(.*?)\s*\(?([a-z][a-z0-9/_+-]*)\)?$/i.exec(typed) ?? [];
  if (readWords(rest, '')?.time === undefined) return HOW_TO_WRITE;
  return `${zone} is not a zone that is read. Write its offset, as '${rest} +01:00', or its IANA name, as '${rest} Europe/Brussels'.`;
}
