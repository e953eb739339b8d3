import { readlinkSync } from 'node:fs';
import type { Environment } from '../session/profiles/folders.ts';

/** The machine's time zone, an IANA name, whatever `TZ` says: the one of `/etc/localtime`. `UTC` where it is not known. */
export function localZone(env: Environment): string {
  // With TZ set, JavaScript's own answer is about TZ.
  if (env['TZ'] === undefined) {
    const { timeZone } =
      Intl.DateTimeFormat().resolvedOptions() as Partial<Intl.ResolvedDateTimeFormatOptions>;
    if (timeZone !== undefined && timeZone !== 'Etc/Unknown') return timeZone;
  }
  try {
    const [, name = 'UTC'] = /\/zoneinfo\/(.+)$/.exec(readlinkSync('/etc/localtime')) ?? [];
    return name;
  } catch {
    return 'UTC';
  }
}
