import type { ProvenReservation } from '../../client/proof.ts';
import { Failure, type FailureFacts, failureOrThrow, isGone, ownCommand } from '../../contract/failure.ts';
import type { OptionsOf } from '../../contract/flags.ts';
import { idKind } from '../../contract/ids.ts';
import { MAX_REASON } from '../../contract/request-limits.ts';
import type { Reservation } from '../../contract/reservation.ts';
import { instantOf } from '../../contract/reservation-request.ts';
import { may, readRole } from '../../contract/roles.ts';
import { inOneText, sentence } from '../../contract/said.ts';
import { isOneLine } from '../../contract/visible-text.ts';
import { isOwn, type KnownReservation, shortIds } from '../../session/reservations/known.ts';
import type { Session } from '../../session/session.ts';
import { claimedRole, claimedSubject } from '../../tokens/claimed.ts';
import { linkName } from '../../words/link-name.ts';
import { withServices } from '../advice.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context } from '../context.ts';
import { EXIT_CODE_OF } from '../exit-codes.ts';
import { continued } from '../help-layout.ts';
import { reservationCard } from '../print/cards.ts';
import { escapeText } from '../print/output.ts';
import { checkConfirmable, confirm } from '../questions.ts';
import { shortTime, type TimeContext } from '../times.ts';
import { formatBandwidth, reservationWord } from '../values.ts';
import { againIn } from './gone.ts';
import {
  checkPerson,
  findReservation,
  linkAndPeriod,
  type MeantReservation,
  pickedReservation,
  requireReservation,
} from './reservation-argument.ts';

/** `slices-conn delete ID... | delete --all [--everyone]`. */
export const command = {
  about:
    'Deletes reservations: their VLANs and bandwidth are free again at once. Asks first, unless --yes is given.',
  args: {
    '[id...]': 'names, ids, or four characters or more of the last part of each; asked for when left out',
  },
  options: {
    all: { flags: '--all', help: 'all that you created in the experiment and that have not ended' },
    everyone: { flags: '--everyone', help: "with --all: other users' too" },
    ifExists: { flags: '--if-exists', help: 'no failure for what is gone or not known' },
    asAdministrator: {
      flags: '--as-administrator',
      help: 'delete any reservation, as an administrator of the service',
    },
    reason: { flags: '--reason <text>', help: 'why it is deleted; the service keeps the reason' },
  },
  examples: [
    'slices-conn delete con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
    'slices-conn delete --all',
    "slices-conn delete con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q --as-administrator --reason 'its job died'",
  ],
} as const satisfies CommandDeclaration;
/** The flags as typed. */
type Flags = OptionsOf<typeof command.options>;

const UNASKED = 'The deletion was not confirmed.';
const DECLINED = 'Nothing was deleted.';

/** Deletes reservations, one after the other, after asking. */
export async function run(context: Context, args: readonly string[], flags: Flags): Promise<void> {
  const words = [...new Set(args.map(reservationWord))];
  checkFlags(words, flags, context);
  checkConfirmable(context, UNASKED);
  if (flags.asAdministrator) return deleteAsAdministrator(context, words, flags.reason);
  const session = await context.session();
  const absent = new Set<string>();
  const unlessGone = (work: (id: string) => Promise<void>) => (id: string) =>
    work(id).catch((error: unknown) => {
      if (!flags.ifExists || !isGone(error)) throw error;
      absent.add(id);
    });
  const meantBy = async (word: string): Promise<MeantReservation[]> => {
    if (!flags.ifExists) return [await requireReservation(context, session, word)];
    const meant = await findReservation(context, session, word);
    if (!meant) absent.add(word);
    return meant ? [meant] : [];
  };
  const meant = flags.all
    ? await undeleted(context, session, flags.everyone === true)
    : words.length === 0
      ? [await pickedReservation(context, session, 'delete')]
      : (await eachMeant(words, meantBy)).flat();
  const ids = unique(meant);
  const seen = new Map(
    meant.flatMap((one) => ('state' in one && one.reservation ? [[one.id, one.reservation]] : [])),
  );
  if (ids.length > 0 && !context.flags.yes) {
    const times = await context.clock.times();
    const known = await described(times, session, meant, { unlessGone, seen });
    if (known.size > 0) await ask(context, times, known);
  }
  const again = new Map<string, string>();
  const failures = await failuresOf(
    ids.filter((id) => !absent.has(id)),
    unlessGone(async (id) => {
      await session.actFor(id);
      const before = seen.get(id) ?? (await lastSeen(session, id));
      await session.reservations.change([{ action: 'delete', id }], { before });
      // It may ask the portal, which keeps no deletion waiting, and fails none.
      const command = before && (await commandFor(context, session, before).catch(failureOrThrow));
      if (typeof command === 'string') again.set(id, command);
    }),
  );
  if (failures.size > 0) throw summary(ids, failures, { absent });
  const items = [...new Set([...ids, ...absent])].map((id) => ({
    id,
    deleted: !absent.has(id),
    again: again.get(id) ?? null,
  }));
  const none = flags.everyone ? 'The experiment has no reservation' : 'You have no reservation here';
  await context.output.result({ items }, ({ paint, columns = Number.POSITIVE_INFINITY }) =>
    items.length === 0
      ? `${none} that is scheduled or active.\n`
      : items
          .map(({ id, deleted, again: advice }) => {
            const done = deleted ? `${paint.green('Deleted')} ${id}\n` : `${id} is not there.\n`;
            if (advice === null) return done;
            const command = escapeText(context.output.advised(advice));
            const line = `  To book it again: ${command}`;
            if (line.length <= columns) return `${done}${line}\n`;
            return `${done}  To book it again:\n${continued(`    ${command}`, columns, context.output.shell)}\n`;
          })
          .join(''),
  );
}

/** A reservation that is to be deleted, as this machine knows it, else as the service does; undefined where neither tells. */
async function lastSeen(session: Session, id: string): Promise<Reservation | undefined> {
  const entry = await session.noted(id);
  if (entry?.reservation) return entry.reservation;
  return session.reservations.show(id, { allowUnsigned: true }).then(
    ({ reservation }) => reservation,
    (error: unknown) => {
      // Where the service is away, the deletion would wait for it once more.
      if (!(error instanceof Failure) || EXIT_CODE_OF[error.code] === 7) throw error;
      return undefined;
    },
  );
}

/** The command that books a deleted reservation again, in its own experiment; undefined where this person may not book there. */
async function commandFor(
  { flags, clock: { now } }: Context,
  session: Session,
  reservation: Reservation,
): Promise<string | undefined> {
  const { id, token } = await session.access();
  const role = readRole(claimedRole(token.reveal()) ?? '');
  if (role !== undefined && !may(role, 'create')) return undefined;
  return withServices(flags, await againIn(session, id, reservation, now()));
}

/** @throws Failure `usage` for flags and arguments that don't go together */
function checkFlags(
  words: readonly string[],
  { all, everyone, asAdministrator, reason }: Flags,
  context: Context,
): void {
  const wrong = (message: string, why: string, ...command: readonly string[]): Failure => {
    return new Failure('usage', message, { why, fix: ownCommand(...command) });
  };
  if (all && words.length > 0) {
    throw wrong(
      "--all and ids can't be given together.",
      '--all names every one already.',
      'delete',
      ...words,
    );
  }
  if (everyone && !all)
    throw wrong('--everyone needs --all.', 'It widens --all to all users.', 'delete', '--all', '--everyone');
  if (asAdministrator && (all || words.length === 0)) {
    throw wrong(
      'An administrator names each reservation.',
      '--as-administrator takes ids.',
      'delete',
      '--help',
    );
  }
  if (words.length === 0 && !all) checkPerson(context, 'delete');
  if (reason === undefined || asAdministrator) return;
  const why = 'Deleting a reservation of your own experiment needs no reason.';
  throw wrong('--reason is for administrators.', why, 'delete', ...(all ? ['--all'] : words));
}

/** The reservations that the words mean, one after the other. Where one means none, the failure says what that is for the others. */
async function eachMeant<Meant>(
  words: readonly string[],
  meantBy: (word: string) => Promise<Meant>,
): Promise<Meant[]> {
  const meant: Meant[] = [];
  try {
    for (const word of words) meant.push(await meantBy(word));
  } catch (error) {
    // Of exit code 7 it is said anyway.
    if (!(error instanceof Failure) || words.length === 1 || EXIT_CODE_OF[error.code] === 7) throw error;
    throw error.with({ why: inOneText(error.facts.why, DECLINED) });
  }
  return meant;
}

const unique = (meant: readonly MeantReservation[]): string[] => [...new Set(meant.map(({ id }) => id))];

/**
 * The reservations that `--all` means: those of the experiment that have not ended and that this user created. Where the
 * user token does not tell its user, those that this machine asked for.
 *
 * @param everyone other users' too
 */
async function undeleted(
  { output }: Context,
  session: Session,
  everyone: boolean,
): Promise<KnownReservation[]> {
  const { items, unknown } = await session.currentReservations();
  if (unknown > 0) {
    output.notice(`The outcome of ${unknown} earlier requests is not known. To see them: slices-conn list`);
  }
  if (everyone) return items;
  const user = claimedSubject((await session.connection.userToken.get()).reveal());
  return items.filter((item) => isOwn(item, user));
}

/**
 * The reservations in words, by id, for the question; those of which nothing is known are read.
 *
 * @param unlessGone lets a reading pass that finds none: that one is left out
 * @throws Failure
 */
async function described(
  times: TimeContext,
  session: Session,
  meant: readonly MeantReservation[],
  {
    unlessGone,
    seen,
  }: {
    unlessGone: (work: (id: string) => Promise<void>) => (id: string) => Promise<void>;
    /** Takes those that are read. */
    seen: Map<string, Reservation>;
  },
): Promise<Map<string, string>> {
  const known = new Map(meant.map((one) => [one.id, 'state' in one ? linkAndPeriod(one, times) : '']));
  const ids = [...known.keys()];
  const unread = await failuresOf(
    ids.filter((id) => known.get(id) === ''),
    unlessGone(async (id) => {
      await session.actFor(id);
      const { reservation } = await session.reservations.show(id, { allowUnsigned: true });
      seen.set(id, reservation);
      known.set(id, linkAndPeriod({ reservation, requested: null }, times));
    }),
  );
  if (unread.size > 0) throw summary(ids, unread, { isTried: false });
  return new Map([...known].filter(([, words]) => words !== ''));
}

/** Asks once about all of them. @param known see {@link described} */
async function ask(
  context: Context,
  { zone }: TimeContext,
  known: ReadonlyMap<string, string>,
): Promise<void> {
  const { output } = context;
  const [[id, words] = [], another] = known;
  const short = shortIds([...known.keys()]);
  if (another) {
    output.prompt(`To be deleted (times in ${zone}):`);
    for (const [one, about] of known) output.prompt(`  ${short.get(one)}  ${about}`);
  }
  const question = another ? `Delete these ${known.size} reservations?` : `Delete ${words} ${zone} (${id})?`;
  await confirm(context, question, { unasked: UNASKED, declined: DECLINED });
}

/** Deletes reservations of any experiment as an administrator; the question names their users. */
async function deleteAsAdministrator(
  context: Context,
  words: readonly string[],
  given: string | undefined,
): Promise<void> {
  const reason = checkedReason(given);
  const session = await context.session();
  const { administration } = session;
  const ids = unique(await eachMeant(words, (word) => namedByAdministrator(context, session, word)));
  const found = new Map<string, ProvenReservation>();
  const unread = await failuresOf(ids, async (id) => void found.set(id, await administration.show(id)));
  if (unread.size > 0) throw summary(ids, unread, { isTried: false });
  const times = await context.clock.times();
  const about = [...found.values()].map((one) => owned(one, times));
  await confirm(context, `Delete ${about.join(', and ')}?`, {
    unasked: UNASKED,
    declined: DECLINED,
  });
  const failures = await failuresOf(
    ids,
    async (id) => void (await administration.change([{ action: 'delete', id, reason }])),
  );
  if (failures.size > 0) throw summary(ids, failures);
  const items = [...found].map(([id, { reservation }]) => ({ id, deleted: true, reason, reservation }));
  await context.output.result({ items }, (print) =>
    [...found.values()]
      .map((proven) => {
        const { reservation } = proven;
        const card = reservationCard(print, print.paint.green('Deleted'), proven, { times });
        return `${card}  ${escapeText(`booked by ${reservation.created_by}; reason: ${reason}`)}\n`;
      })
      .join(''),
  );
}

/** The reservation that an administrator names: names and parts of ids are those of one's own experiments. */
async function namedByAdministrator(
  context: Context,
  session: Session,
  word: string,
): Promise<MeantReservation> {
  if (idKind(word) === 'reservation') return { id: word };
  const meant = await findReservation(context, session, word).catch((error: unknown) => {
    // Several that fit are listed with their ids.
    if (!(error instanceof Failure) || error.code === 'usage' || EXIT_CODE_OF[error.code] === 7) throw error;
    return undefined;
  });
  if (meant) return meant;
  throw new Failure('not_found', 'An administrator gives the whole id of a reservation.', {
    why: `No reservation of yours is named ${word} or has it in its id. The ids of all are in the audit of the server.`,
    fix: 'slices-conn serve audit',
  });
}

function checkedReason(reason = ''): string {
  const text = reason.trim();
  if (text !== '' && isOneLine(text, MAX_REASON)) return text;
  throw new Failure('usage', 'An administrator gives a reason for a deletion.', {
    why: `--reason takes one line of 1 to ${MAX_REASON} characters, which the service keeps.`,
    fix: { reason: 'left-behind' },
  });
}

/** A reservation and its user, for the question. */
function owned({ reservation }: ProvenReservation, times: TimeContext): string {
  const { id, bandwidth, end_date, created_by, experiment_id } = reservation;
  const end = `${shortTime(instantOf(end_date), times)} ${times.zone}`;
  const link = `${linkName(reservation)}, ${formatBandwidth(bandwidth)} until ${end}`;
  return escapeText(`${id} (${link}), booked by ${created_by} for ${experiment_id}`);
}

/** Does the work for each reservation, one after the other. @returns the failures, by id */
async function failuresOf(
  ids: readonly string[],
  work: (id: string) => Promise<void>,
): Promise<Map<string, Failure>> {
  const failures = new Map<string, Failure>();
  for (const id of ids) {
    try {
      await work(id);
    } catch (error) {
      failures.set(id, failureOrThrow(error));
    }
  }
  return failures;
}

/**
 * One failure for several deletions. The failure of a single deletion stays as it is. When all have failed with the same
 * exit code, the code is that of the first; otherwise it is `partly_done`.
 *
 * @param absent of those that did not fail, the ones that were not there, which is fine
 * @param isTried false: none was deleted, since some could not be read
 */
export function summary(
  ids: readonly string[],
  failures: ReadonlyMap<string, Failure>,
  { absent = new Set(), isTried = true }: { absent?: ReadonlySet<string>; isTried?: boolean } = {},
): Failure {
  const deletes = (id: string): boolean => isTried && !failures.has(id) && !absent.has(id);
  const [first, ...rest] = failures.values();
  if (!first) throw new RangeError('A summary needs a failure.');
  if (ids.length === 1) return first;
  const why = inOneText(
    ...[...failures].map(([id, { message, says }]) =>
      message.includes(id) ? says : sentence`${id}: ${says}`,
    ),
  );
  const alike = rest.every(({ code }) => EXIT_CODE_OF[code] === EXIT_CODE_OF[first.code]);
  const deleted = ids.filter(deletes);
  const maybeDone = [...failures.values()].some(({ facts }) => facts.maybeDone);
  const items = ids.map((id) => ({ id, deleted: deletes(id) }));
  const facts: FailureFacts = { why, items, ...(maybeDone ? { maybeDone, retryable: false } : {}) };
  const message = `${ids.length - deleted.length} of ${ids.length} reservations were not deleted${deleted.length > 0 ? `; deleted: ${deleted.join(', ')}` : ''}.`;
  return alike && deleted.length === 0 && !ids.some((id) => absent.has(id))
    ? new Failure(first.code, message, { ...first.facts, ...facts })
    : new Failure('partly_done', message, { ...facts, fix: 'slices-conn list' });
}
