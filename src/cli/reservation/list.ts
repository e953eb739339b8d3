import { Failure, ownCommand } from '../../contract/failure.ts';
import type { OptionsOf } from '../../contract/flags.ts';
import { isWithin } from '../../contract/instants.ts';
import { KEY_KEPT } from '../../contract/request-limits.ts';
import { reservationState } from '../../contract/reservation-request.ts';
import { ARRIVAL_LIMIT_MS, byStart, type ListedReservation } from '../../session/reservations/joined-list.ts';
import { isCurrent, isOwn, knownPeriod, knownRequest } from '../../session/reservations/known.ts';
import type { Session } from '../../session/session.ts';
import { claimedSubject } from '../../tokens/claimed.ts';
import { linkName } from '../../words/links.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context } from '../context.ts';
import { onServiceTime, readSpan, type Span } from '../period.ts';
import { type NamedExperiment, requestResult } from '../print/cards.ts';
import { escapeText } from '../print/output.ts';
import { type ListedIn, reservationTable } from '../print/reservation-table.ts';
import { checkConfirmable, confirm } from '../questions.ts';
import { shortTime, type TimeContext } from '../times.ts';
import { nearestSite, siteName } from '../values.ts';
import { reserveText } from './again.ts';
import { linkAndPeriod } from './reservation-argument.ts';

/** `slices-conn list [--all] [--all-experiments] [--mine] [--site SITE] [--state STATE] [--start T] [--end T]
 * [--timeline | --ics] [--forget KEY]`. */
export const command = {
  about:
    "Lists the experiment's reservations that have not ended: the service's list, joined with what this machine asked for.",
  options: {
    all: { flags: '--all', help: 'also reservations that have ended or were deleted' },
    allExperiments: {
      flags: '--all-experiments',
      help: 'of every experiment of yours that has not expired',
    },
    mine: { flags: '--mine', help: 'only those that you created' },
    site: { flags: '--site <site>', help: 'only links that end at this site' },
    state: {
      flags: '--state <state>',
      help: 'only those in this state',
      choices: ['scheduled', 'active', 'ended', 'deleted', 'unknown'],
    },
    start: { flags: '--start <time>', help: 'only those that last longer than until then' },
    end: { flags: '--end <time>', help: 'only those that start before then' },
    timeline: { flags: '--timeline', help: 'draw them as bars over time', conflicts: ['ics'] },
    ics: { flags: '--ics', help: 'print them as a calendar (RFC 5545)' },
    forget: {
      flags: '--forget <key>',
      help: 'settle by hand a request that was never answered, by its idempotency key: it made nothing',
    },
  },
  examples: [
    'slices-conn list',
    'slices-conn list --mine --site be-gent1 --state active',
    'slices-conn list --all --timeline',
    'slices-conn list --start today --end +1w --timeline',
    'slices-conn list --all --ics > links.ics',
    "slices-conn list --all --json | jq -r '.items[].reservation.id'",
  ],
} as const satisfies CommandDeclaration;
/** The flags as typed. */
type Flags = OptionsOf<typeof command.options>;

/** Lists the experiment's reservations: the service's list joined with the ledger. */
export async function run(given: Context, _args: readonly string[], flags: Flags): Promise<void> {
  if (flags.forget !== undefined) return forget(given, flags.forget);
  if (flags.site !== undefined) siteName(flags.site);
  readSpan(flags, await given.clock.times());
  const session = await given.session();
  const context = await onServiceTime(given, session, { isLook: true });
  const { output } = context;
  const span = readSpan(flags, await context.clock.times());
  const { found, experiments, hasList, unasked } = await read(context, session, flags);
  const user = flags.mine ? claimedSubject((await session.connection.userToken.get()).reveal()) : undefined;
  const shown = found.filter(({ item }) => isWanted(item, flags, user, span));
  if (!hasList) {
    output.notice(
      'This service does not list reservations: it was asked for each that this machine knows. Others are not shown.',
    );
  }
  for (const [id, failure] of unasked) {
    output.notice(
      `warning: The service could not be asked for ${id}, which is shown as it was last: ${failure.message}`,
    );
  }
  const times = await context.clock.times();
  const items = shown.map(({ item: { entry: _entry, requested, ...item } }) => ({
    ...item,
    requested: requested && requestResult(requested),
  }));
  const isMissed = shown.length === 0 && flags.site !== undefined;
  const sites = isMissed ? await session.connectivity.sites().catch(() => undefined) : undefined;
  const { timeline } = flags.timeline ? await import('../print/timeline.ts') : {};
  const { calendar } = flags.ics ? await import('../print/calendar.ts') : {};
  await output.result({ items }, (print) => {
    if (calendar) return calendar(shown, { experiments, now: times.now });
    if (shown.length === 0) return `${escapeText(noneText(experiments, flags, sites))}\n`;
    const context = { experiments, times, known: found.map(({ item }) => item.id), span };
    if (timeline) return timeline(print, shown, context, output.columns);
    return reservationTable(print, shown, context);
  });
  const isUnnamed = shown.some(({ item: { state, id } }) => state === 'unknown' && id === null);
  const can = isUnnamed ? await session.connectivity.features().catch(() => undefined) : undefined;
  const known = { hasList, hasKeys: can?.idempotencyKey === true };
  for (const { item, experiment } of shown) {
    if (item.state !== 'unknown') continue;
    const { id } = experiment;
    const where = flags.allExperiments && id !== undefined ? ['--experiment', id] : [];
    output.notice(whatToDo(item, where, times, known));
  }
}

/** The result of {@link read}. */
interface Found {
  found: ListedIn[];
  /** The experiments that were asked about. */
  experiments: NamedExperiment[];
  hasList: boolean;
  /** See `JoinedList`. */
  unasked: Map<string, Failure>;
}

/** Reads the reservations of the chosen experiment, or of every experiment that has not expired. */
async function read(
  { output, clock: { now } }: Context,
  session: Session,
  { all, allExperiments, state }: Flags,
): Promise<Found> {
  const isPast = state === undefined ? all === true : state === 'ended' || state === 'deleted';
  const result: Found = { found: [], experiments: [], hasList: true, unasked: new Map() };
  const asked = allExperiments
    ? (await session.experiments.ofNamedProject(await session.portal.experiments())).items
    : [undefined];
  for (const one of asked) {
    if (one && Date.parse(one.expires_at) <= now()) continue;
    if (one) session.actIn(one.id);
    try {
      const { items, hasList, unasked } = await session.reservations.list({ current: !isPast });
      const access = await session.access();
      const experiment = { id: access.id, name: one?.name || access.name };
      result.found.push(...items.map((item) => ({ item: seenAt(now(), item), experiment })));
      result.experiments.push(experiment);
      for (const [id, failure] of unasked) result.unasked.set(id, failure);
      result.hasList &&= hasList;
    } catch (error) {
      if (!one || !(error instanceof Failure) || error.code !== 'role_not_allowed') throw error;
      output.notice(`The reservations of experiment ${one.name || one.id} are left out: ${error.message}`);
    }
  }
  result.found.sort((one, other) => byStart(one.item, other.item));
  return result;
}

/** By the service's clock: this machine's may be wrong. */
function seenAt(now: number, item: ListedReservation): ListedReservation {
  const { state, reservation } = item;
  if (!reservation || state === 'deleted' || state === 'unknown') return item;
  return { ...item, state: reservationState(reservation, now) };
}

function isWanted(
  item: ListedReservation,
  { all, mine, site, state }: Flags,
  user: string | undefined,
  { start, end }: Span,
): boolean {
  const { site1, site2 } = knownRequest(item) ?? {};
  const { start: starts = Number.NaN, end: ends = Number.NaN } = knownPeriod(item) ?? {};
  return (
    (state === undefined ? all === true || isCurrent(item) : item.state === state) &&
    (site === undefined || site === site1 || site === site2) &&
    (!mine || isOwn(item, user)) &&
    (start === undefined || ends > start) &&
    (end === undefined || starts < end)
  );
}

/** The text in place of an empty list. @param sites of the service, where it tells them */
function noneText(
  experiments: readonly NamedExperiment[],
  flags: Flags,
  sites: readonly string[] | undefined,
): string {
  const { all, mine, site, state, start, end } = flags;
  const [only, another] = experiments;
  if (!only) return 'You are in no active experiment whose reservations you may list.';
  const where = another ? `your ${experiments.length} experiments` : `experiment ${only.name ?? only.id}`;
  const isOfPeriod = start !== undefined || end !== undefined;
  if (site !== undefined || mine || state !== undefined || isOfPeriod) {
    const near = site === undefined ? undefined : nearestSite(site, { sites });
    const isPast = isOfPeriod && !all && state === undefined;
    const hint = isPast ? ' --all looks at those that ended or were deleted too.' : '';
    return `No reservation in ${where} matches.${near === undefined ? hint : ` Did you mean ${near}?`}`;
  }
  if (all) return `No reservations in ${where} yet.`;
  return `No reservation in ${where} is scheduled or active; --all shows those that ended or were deleted.`;
}

/**
 * Explains an unknown outcome, with what settles it. An answer may have come that could not be read or verified.
 *
 * @param where the flags of its experiment
 * @param service whether it lists reservations, and whether it takes idempotency keys
 */
function whatToDo(
  { id, requested, entry }: ListedReservation,
  where: readonly string[],
  times: TimeContext,
  { hasList, hasKeys }: { hasList: boolean; hasKeys: boolean },
): string {
  const asked = entry ? `${shortTime(entry.askedAt, times)} ${times.zone}` : '';
  if (id !== null) {
    // The id of a create is known from its answer alone.
    const said =
      entry?.asked === 'reserve'
        ? `The service's answer about ${id}, asked for at ${asked}, could not be verified.`
        : `No valid answer came to the last request about ${id}, sent at ${asked}.`;
    return `${said} To see its state: ${ownCommand('show', id, ...where)}`;
  }
  const link = requested ? linkName(requested) : 'a link';
  const said = `${link}: no valid answer came to the request of ${asked}, so the link may be booked.`;
  if (!entry) return said;
  // A part of a list of changes was never asked for alone.
  const isPart = entry.key.includes('/');
  if (requested && hasKeys && !isPart && isWithin(entry.beganAt, KEY_KEPT, times.now)) {
    const again = reserveText(requested, '--idempotency-key', entry.key, ...where);
    return `${said} To settle it: ${again}`;
  }
  return hasList
    ? `${said} What this list does not show by ${shortTime(entry.askedAt + ARRIVAL_LIMIT_MS, times)} was never made.`
    : `${said} This service can't look it up: ask its operators whether it is. If it is not: ${ownCommand('list', '--forget', entry.key, ...where)}`;
}

/**
 * Settles by hand what no service can tell: a request that was never answered made nothing.
 *
 * @throws Failure `not_found`, `usage`; Declined
 */
async function forget(context: Context, key: string): Promise<void> {
  const { output } = context;
  const session = await context.session();
  const ledger = await session.ledger();
  const [entry] = await ledger.entries({ key });
  if (!entry) {
    throw new Failure('not_found', `This machine sent no request under the key ${key} to this service.`, {
      fix: 'slices-conn list',
    });
  }
  if (entry.outcome !== 'unknown' || entry.id !== undefined) {
    throw new Failure('usage', `What became of the request under the key ${key} is known.`, {
      why: 'Only a request that was never answered can be forgotten.',
      fix: entry.id === undefined ? 'slices-conn list --all' : ownCommand('show', entry.id),
    });
  }
  const times = await context.clock.times();
  const link = entry.requested
    ? linkAndPeriod({ reservation: null, requested: entry.requested }, times)
    : key;
  const unasked = `To forget the request under the key ${key} was not confirmed.`;
  checkConfirmable(context, unasked);
  output.prompt(`${link}, asked for at ${shortTime(entry.askedAt, times)} ${times.zone}`);
  output.prompt('If it was booked after all, it stays booked, and this machine does not know it.');
  await confirm(context, 'Forget it?', { unasked, declined: 'Nothing was changed.' });
  await ledger.refused(entry);
  await output.result({ forgotten: key }, () => `Forgotten: ${escapeText(link)}\n`);
}
