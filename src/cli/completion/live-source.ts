import { setTimeout as sleep } from 'node:timers/promises';
import { formatBandwidth } from '../../contract/amounts.ts';
import { parseInstant } from '../../contract/instants.ts';
import { SITES } from '../../contract/links.ts';
import { reservationState } from '../../contract/reservation-request.ts';
import type { Choosable } from '../../session/choice.ts';
import { isAlmostOver } from '../../session/login/credentials.ts';
import { OFFLINE } from '../../session/profiles/profile-keys.ts';
import type { LedgerEntry } from '../../session/reservations/ledger.ts';
import type { Session } from '../../session/session.ts';
import { linkName } from '../../words/links.ts';
import type { Context } from '../context.ts';
import { openProfiles, wantedProfile } from '../global-options.ts';
import { type Candidate, type CompletionSource, isPlainWord } from './candidates.ts';

/** The longest wait for candidates, in milliseconds. */
const LIVE_LIMIT = 1500;

/**
 * Candidates that this machine or a service knows: its profiles, and the projects and experiments of the
 * profile's services, if the user is logged in and they answer within {@link LIVE_LIMIT}.
 */
export function liveSource(context: Context): CompletionSource {
  const now = context.clock.now();
  return {
    sites: () => sites(context),
    profiles: async () => {
      const profiles = await openProfiles(context);
      return profiles.names().map((value) => ({ value, description: 'profile' }));
    },
    experiments: () => asked(context, async ({ portal }) => named(await portal.experiments(), now)),
    projects: () => asked(context, async ({ portal }) => named(await portal.projects(), now)),
    reservations: () => limited(() => reservations(context, now)),
  };
}

/**
 * The ledger's reservations that have not ended and were not deleted. No service is asked. Offers names,
 * which people know, and ids where a reservation has none or two share one.
 */
async function reservations({ session }: Context, now: number): Promise<Candidate[]> {
  const entries = await (await (await session()).ledger()).entries({ now });
  const nameIn = ({ reservation, requested }: LedgerEntry) => reservation?.name ?? requested?.name;
  const current = entries.filter(
    ({ id, reservation }) =>
      id !== undefined && (!reservation || reservationState(reservation, now) !== 'ended'),
  );
  const named = Map.groupBy(current, nameIn);
  return current.map((entry) => {
    const { id = '', reservation } = entry;
    const name = nameIn(entry);
    const value = name !== undefined && named.get(name)?.length === 1 ? name : id;
    if (!reservation) return { value, description: 'unknown' };
    const rate = formatBandwidth(reservation.bandwidth);
    return {
      value,
      description: `${linkName(reservation)}, ${rate}, ${reservationState(reservation, now)}`,
    };
  });
}

/** Offers names; and ids where two items share a name, or where a shell would have to quote it. */
function named(
  items: readonly (Choosable & { role: string; description: string })[],
  now: number,
): Candidate[] {
  return items.map(({ id, name, role, description, expires_at }) => {
    const byName = isPlainWord(name) && items.filter((item) => item.name === name).length === 1;
    const end = parseInstant(expires_at, 'utc-if-absent') ?? Number.POSITIVE_INFINITY;
    const about = [byName ? '' : name, role, end <= now ? 'expired' : '', description];
    return { value: byName ? name : id, description: about.filter(Boolean).join(', ') };
  });
}

/** The sites of the service, where somebody is logged in and it tells them; else those of the built-in network. */
async function sites(context: Context): Promise<Candidate[]> {
  const { name } = await (await openProfiles(context)).resolve(wantedProfile(context.flags));
  const told =
    name === OFFLINE
      ? []
      : await asked(context, async ({ connectivity }) => ((await connectivity.sites()) ?? []).map(asSite));
  return told.length > 0 ? told : SITES.map(asSite);
}

/** A name begins with its country's code (contract/README.md, "Available sites"). */
function asSite(value: string): Candidate {
  const names = new Intl.DisplayNames(['en'], { type: 'region' });
  return { value, description: names.of(value.slice(0, 2).toUpperCase()) ?? '' };
}

/**
 * Asks the services for candidates. There are none without a login, or when the services answer late. A login
 * that needs a refresh is not used: a refresh that is cut off half-way would lose it.
 */
async function asked(
  { session, clock: { now } }: Context,
  question: (session: Session) => Promise<Candidate[]>,
): Promise<Candidate[]> {
  return limited(async () => {
    const opened = await session();
    const { userToken, login } = opened.connection;
    const used = userToken.origin === 'login' ? login?.read() : undefined;
    return used && isAlmostOver(used, now()) ? [] : question(opened);
  });
}

async function limited(answer: () => Promise<Candidate[]>): Promise<Candidate[]> {
  return Promise.race([answer(), sleep(LIVE_LIMIT, [])]).catch(() => []);
}
