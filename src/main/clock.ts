import { readlinkSync } from 'node:fs';
import type { MachineClock } from '../cli/context.ts';
import type { Variables } from '../session/profiles/folders.ts';

/** The clock of this machine. @param env the environment variables, of which `TZ` matters */
export function clock(env: Variables): MachineClock {
  return { now: Date.now, sleep, localZone: () => localZone(env) };
}

async function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  const { setTimeout } = await import('node:timers/promises');
  await setTimeout(milliseconds, undefined, { signal });
}

/**
 * The zone of `/etc/localtime`; `UTC` where it is not known. JavaScript itself is asked last: its own search
 * for the zone takes half as long as Node to start.
 */
function localZone(env: Variables): string {
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
