import { Failure, type FailureFacts, failureOrThrow, isGone } from '../../contract/failure.ts';
import { idKind } from '../../contract/fields.ts';
import type { OptionsOf } from '../../contract/flags.ts';
import { MAX_REASON } from '../../contract/request-limits.ts';
import type { Reservation } from '../../contract/reservation.ts';
import { may, readRole } from '../../contract/roles.ts';
import { inOneText, sentence } from '../../contract/said.ts';
import { isOneLine } from '../../contract/visible-text.ts';
import { isOwn, type KnownReservation, shortIds } from '../../session/reservations/known.ts';
import type { Session } from '../../session/session.ts';
import { claimedRole, claimedSubject } from '../../tokens/claimed.ts';
import { withServices } from '../advice.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context } from '../context.ts';
import { EXIT_CODE_OF } from '../exit-codes.ts';
import { continued } from '../help-layout.ts';
import { escapeText } from '../print/output.ts';
import { checkConfirmable, confirm } from '../questions.ts';
import type { TimeContext } from '../times.ts';
import { reservationWord } from '../values.ts';
import { againIn } from './again.ts';
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
  if (words.length === 0 && !flags.all && !flags.asAdministrator) checkPerson(context, 'delete');
  checkFlags(words, flags);
  checkConfirmable(context, UNASKED);
  const reason = flags.asAdministrator ? checkedReason(flags.reason) : undefined;
  const session = await context.session();
  const { administration, reservations } = session;
  /** With --if-exists: what is gone, or not known. */
  const absent = new Set<string>();
  const meantBy = async (word: string): Promise<MeantReservation | undefined> => {
    if (reason !== undefined) return { id: await namedByAdministrator(context, session, word) };
    if (!flags.ifExists) return requireReservation(context, session, word);
    const found = await findReservation(context, session, word);
    if (!found) absent.add(word);
    return found;
  };
  const meant = flags.all
    ? await undeleted(context, session, flags.everyone === true)
    : words.length === 0
      ? [await pickedReservation(context, session, 'delete')]
      : await eachMeant(words, meantBy);
  const ids = [...new Set(meant.map(({ id }) => id))];
  const known = new Map(meant.flatMap((one) => ('state' in one ? [[one.id, one]] : [])));
  const seen = new Map<string, Reservation>();
  for (const { id, reservation } of known.values()) if (reservation) seen.set(id, reservation);
  /** Does the work for each that is there. @returns the failures, by id */
  const failuresOf = async (work: (id: string) => Promise<unknown>): Promise<Map<string, Failure>> => {
    const failures = new Map<string, Failure>();
    for (const id of ids.filter((one) => !absent.has(one))) {
      await work(id).catch((error: unknown) => {
        if (flags.ifExists && isGone(error)) absent.add(id);
        else failures.set(id, failureOrThrow(error));
      });
    }
    return failures;
  };
  if (reason !== undefined || !context.flags.yes) {
    const show = async (id: string) => {
      if (reason !== undefined) return administration.show(id);
      await session.actFor(id);
      return reservations.show(id, { allowUnsigned: true });
    };
    const unread = await failuresOf(async (id) => {
      if (!known.has(id)) seen.set(id, (await show(id)).reservation);
    });
    if (unread.size > 0) throw summary(ids, unread, { isTried: false });
    const times = await context.clock.times();
    const about = ids.flatMap((id): [string, string, string][] => {
      const reservation = seen.get(id) ?? null;
      const said = linkAndPeriod(known.get(id) ?? { reservation, requested: null }, times);
      const { created_by, experiment_id } = reservation ?? {};
      const by = reason === undefined ? '' : `, booked by ${created_by} for ${experiment_id}`;
      return absent.has(id) ? [] : [[id, said, by]];
    });
    if (about.length > 0 && !context.flags.yes) await ask(context, times, about);
  }
  const again = new Map<string, string>();
  const failures = await failuresOf(async (id) => {
    if (reason !== undefined) {
      await administration.change([{ action: 'delete', id, reason }]);
      return;
    }
    await session.actFor(id);
    const before = seen.get(id) ?? (await lastSeen(session, id));
    await reservations.change([{ action: 'delete', id }], { before });
    // This may ask the portal, so it comes after the deletion, and its failure is ignored.
    const command = before && (await commandFor(context, session, before).catch(failureOrThrow));
    if (typeof command === 'string') again.set(id, command);
  });
  if (failures.size > 0) throw summary(ids, failures, { absent });
  const items = [...new Set([...ids, ...absent])].map((id) => {
    const more =
      reason === undefined ? { again: again.get(id) ?? null } : { reason, reservation: seen.get(id) };
    return { id, deleted: !absent.has(id), ...more };
  });
  await context.output.result({ items }, ({ paint, columns = Number.POSITIVE_INFINITY }) => {
    if (items.length === 0) {
      const none = flags.everyone ? 'The experiment has no reservation' : 'You have no reservation here';
      return `${none} that is scheduled or active.\n`;
    }
    const lines = items.map(({ id, deleted }) => {
      if (!deleted) return `${id} is not there.\n`;
      const done = `${paint.green('Deleted')} ${id}\n`;
      if (reason !== undefined) {
        return `${done}  ${escapeText(`booked by ${seen.get(id)?.created_by}; reason: ${reason}`)}\n`;
      }
      const advice = again.get(id);
      if (advice === undefined) return done;
      const line = `  To book it again: ${escapeText(context.output.advised(advice))}`;
      return `${done}${continued(line, columns, context.output.shell)}\n`;
    });
    return lines.join('');
  });
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
function checkFlags(words: readonly string[], { all, everyone, asAdministrator, reason }: Flags): void {
  const isAll = all === true;
  const own = 'Deleting a reservation of your own experiment needs no reason.';
  const faults: [isWrong: boolean, message: string, why: string][] = [
    [isAll && words.length > 0, "--all and ids can't be given together.", '--all names every one already.'],
    [everyone === true && !isAll, '--everyone needs --all.', 'It widens --all to all users.'],
    [
      asAdministrator === true && (isAll || words.length === 0),
      'An administrator names each reservation.',
      '--as-administrator takes ids.',
    ],
    [reason !== undefined && !asAdministrator, '--reason is for administrators.', own],
  ];
  for (const [isWrong, message, why] of faults) if (isWrong) throw new Failure('usage', message, { why });
}

/** The reservations that the words mean, one after the other. If a word means no reservation, the failure also says that nothing was deleted. */
async function eachMeant(
  words: readonly string[],
  meantBy: (word: string) => Promise<MeantReservation | undefined>,
): Promise<MeantReservation[]> {
  const meant: MeantReservation[] = [];
  for (const word of words) {
    const one = await meantBy(word).catch((error: unknown) => {
      // For exit code 7 the report of the failure says so itself.
      if (!(error instanceof Failure) || words.length === 1 || EXIT_CODE_OF[error.code] === 7) throw error;
      throw error.with({ why: inOneText(error.facts.why, DECLINED) });
    });
    if (one) meant.push(one);
  }
  return meant;
}

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

/** Asks once about all of them. @param about of each its id, words, and by whom it was booked where that is said */
async function ask(
  context: Context,
  { zone }: TimeContext,
  about: readonly (readonly [id: string, words: string, by: string])[],
): Promise<void> {
  const [[id, words, by] = [], another] = about;
  const short = shortIds(about.map(([one]) => one));
  if (another) {
    context.output.prompt(`To be deleted (times in ${zone}):`);
    for (const [one, what, whose] of about) context.output.prompt(`  ${short.get(one)}  ${what}${whose}`);
  }
  const question = another
    ? `Delete these ${about.length} reservations?`
    : `Delete ${words} ${zone} (${id})${by}?`;
  await confirm(context, question, { unasked: UNASKED, declined: DECLINED });
}

/** The id that an administrator names: names and parts of ids are those of one's own experiments. */
async function namedByAdministrator(context: Context, session: Session, word: string): Promise<string> {
  if (idKind(word) === 'reservation') return word;
  const meant = await findReservation(context, session, word).catch((error: unknown) => {
    // Several that fit are listed with their ids.
    if (!(error instanceof Failure) || error.code === 'usage' || EXIT_CODE_OF[error.code] === 7) throw error;
    return undefined;
  });
  if (meant) return meant.id;
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
