import { readlinkSync } from 'node:fs';
import type { Environment } from '../session/profiles/folders.ts';

/**
 * The machine's time zone, an IANA name, whatever `TZ` says: the one of `/etc/localtime`. `UTC` where it is not known.
 * JavaScript itself is asked last: its own search for the zone takes half as long as Node to start.
 */
export function localZone(env: Environment): string {
  const linked = linkedZone();
  if (linked !== undefined) return linked;
  // With TZ set, JavaScript's own answer is about TZ.
  if (env['TZ'] !== undefined) return 'UTC';
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions() as Partial<Intl.ResolvedDateTimeFormatOptions>;
  return timeZone === undefined || timeZone === 'Etc/Unknown' ? 'UTC' : timeZone;
}

/** The zone whose file `/etc/localtime` is a link to. */
function linkedZone(): string | undefined {
  try {
    return /\/zoneinfo\/(?:posix\/|right\/)?(.+)$/.exec(readlinkSync('/etc/localtime'))?.[1];
  } catch {
    return undefined;
  }
}
