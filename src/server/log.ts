import type { Sentence } from '../contract/said.ts';
import { jsonText } from '../contract/visible-text.ts';

/** The facts of a log record: names, numbers and reasons; never a token, a header or a body. */
export type LogFields = Readonly<Record<string, string | number | boolean | Sentence | undefined>>;

/** Writes a record of an event. */
export type Log = (level: 'info' | 'error', event: string, fields: LogFields) => void;

/**
 * A log of one JSON object a line. Fields may hold text of a request: characters that could make a terminal show something
 * else are escaped.
 *
 * @param write takes a line with its line end, such as `process.stderr.write`
 * @param now milliseconds since the Unix epoch
 */
export function jsonLog(write: (line: string) => void, now: () => number): Log {
  return (level, event, fields) => {
    write(`${jsonText({ time: new Date(now()).toISOString(), level, event, ...fields })}\n`);
  };
}

/** For how long equal errors share a record, in milliseconds. */
const REPEATS_MS = 1000;

/**
 * A log in which equal errors are written once a second: the first at once, and those that follow as one record with their
 * number in `times`. While a database is away, each request that fails would write the same.
 */
export function withoutRepeats(log: Log): Log {
  const repeats = new Map<string, number>();
  return (level, event, fields) => {
    if (level !== 'error') {
      log(level, event, fields);
      return;
    }
    const text = JSON.stringify([event, fields]);
    const known = repeats.get(text);
    repeats.set(text, (known ?? -1) + 1);
    if (known !== undefined) return;
    log(level, event, fields);
    const resume = (): void => {
      const times = repeats.get(text) ?? 0;
      repeats.set(text, 0);
      if (times === 0) repeats.delete(text);
      else log(level, event, { ...fields, times });
      if (times > 0) setTimeout(resume, REPEATS_MS).unref();
    };
    setTimeout(resume, REPEATS_MS).unref();
  };
}

/** A log that drops every record. */
export const noLog: Log = () => undefined;
