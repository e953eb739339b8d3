/** What a log record may hold: names, numbers and reasons; never a token, a header or a body. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** Writes a record of an event. */
export type Log = (level: 'info' | 'error', event: string, fields: LogFields) => void;

/**
 * A log of one JSON object a line.
 *
 * @param write takes a line with its line end, such as `process.stderr.write`
 * @param now milliseconds since the Unix epoch
 */
export function jsonLog(write: (line: string) => void, now: () => number): Log {
  return (level, event, fields) => {
    write(`${JSON.stringify({ time: new Date(now()).toISOString(), level, event, ...fields })}\n`);
  };
}

/** A log that drops every record. */
export const noLog: Log = () => undefined;
