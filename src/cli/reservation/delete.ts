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
import type { CommandDeclaration } from '../command.ts';
import type { Context } from '../context.ts';
import { EXIT_CODE_OF } from '../exit-codes.ts';
import { continued } from '../print/folded.ts';
import { escapeText } from '../print/output.ts';
import { checkConfirmable, confirm } from '../questions.ts';
import { reservationWord } from '../values.ts';
import { againIn } from './again.ts';
import {
  checkPerson,
  findReservation,
  linkAndPeriod,
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

/** A reservation that is to be deleted, and what becomes of it. */
interface Target {
  readonly id: string;
  /** As the list or the ledger knows it: it is not read once more. */
  readonly known?: KnownReservation;
  reservation?: Reservation | undefined;
  /** With `--if-exists`: it is gone, or not known. */
  isAbsent?: boolean;
  failure?: Failure | undefined;
  /** The command that books it again. */
  again?: string | undefined;
}

/** Deletes reservations, one after the other, after asking. */
export async function run(context: Context, args: readonly string[], flags: Flags): Promise<void> {
  const words = [...new Set(args.map(reservationWord))];
  if (words.length === 0 && !flags.all && !flags.asAdministrator) checkPerson(context, 'delete');
  checkFlags(words, flags);
  if (flags.all) checkConfirmable(context, UNASKED);
  const reason = flags.asAdministrator ? checkedReason(flags.reason) : undefined;
  const session = await context.session();
  const { administration, reservations } = session;
  const targets = await targetsOf(context, session, words, flags);
  const left = (): Target[] => targets.filter(({ isAbsent }) => !isAbsent);
  /** Does the work for each that is there. @throws Failure for those with which it failed */
  const each = async (isTried: boolean, work: (target: Target) => Promise<unknown>): Promise<void> => {
    for (const target of left()) {
      await work(target).catch((error: unknown) => {
        if (flags.ifExists && isGone(error)) target.isAbsent = true;
        else target.failure = failureOrThrow(error);
      });
    }
    if (targets.some(({ failure }) => failure)) throw summary(targets, isTried);
  };
  if (reason !== undefined || !context.flags.yes) {
    await each(false, async (target) => {
      const { id, known } = target;
      if (known) return;
      if (reason === undefined) await session.actFor(id);
      const shown =
        reason === undefined ? reservations.show(id, { allowUnsigned: true }) : administration.show(id);
      target.reservation = (await shown).reservation;
    });
    if (left().length > 0 && !context.flags.yes) await ask(context, left(), reason !== undefined);
  }
  await each(true, async (target) => {
    const { id } = target;
    if (reason !== undefined) {
      await administration.change([{ action: 'delete', id, reason }]);
      return;
    }
    await session.actFor(id);
    target.reservation ??= await lastSeen(session, id);
    const { reservation: before } = target;
    await reservations.change([{ action: 'delete', id }], { before });
    // This may ask the portal, so it comes after the deletion, and its failure is ignored.
    const again = before && (await commandFor(context, session, before).catch(failureOrThrow));
    if (typeof again === 'string') target.again = again;
  });
  const items = targets.map(({ id, isAbsent = false, again = null, reservation }) => {
    return { id, deleted: !isAbsent, ...(reason === undefined ? { again } : { reason, reservation }) };
  });
  await context.output.result({ items }, ({ paint, columns = Number.POSITIVE_INFINITY }) => {
    if (items.length === 0) {
      const none = flags.everyone ? 'The experiment has no reservation' : 'You have no reservation here';
      return `${none} that is scheduled or active.\n`;
    }
    const lines = targets.map(({ id, isAbsent, again, reservation }) => {
      if (isAbsent) return `${id} is not there.\n`;
      const done = `${paint.green('Deleted')} ${id}\n`;
      if (reason !== undefined) {
        return `${done}  ${escapeText(`booked by ${reservation?.created_by}; reason: ${reason}`)}\n`;
      }
      if (again === undefined) return done;
      const line = `  To book it again: ${escapeText(context.output.advised(again))}`;
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
  { clock: { now } }: Context,
  session: Session,
  reservation: Reservation,
): Promise<string | undefined> {
  const { id, token } = await session.access();
  const role = readRole(claimedRole(token.reveal()) ?? '');
  if (role !== undefined && !may(role, 'create')) return undefined;
  return againIn(session, id, reservation, now());
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

/** The reservations that the command means. If a word means none, the failure also says that nothing was deleted. */
async function targetsOf(
  context: Context,
  session: Session,
  words: readonly string[],
  flags: Flags,
): Promise<Target[]> {
  const known = (item: KnownReservation): Target => ({
    ...{ id: item.id, known: item, reservation: item.reservation ?? undefined },
  });
  if (flags.all) return (await undeleted(context, session, flags.everyone === true)).map(known);
  if (words.length === 0) return [known(await pickedReservation(context, session, 'delete'))];
  const find = flags.asAdministrator
    ? namedByAdministrator
    : flags.ifExists
      ? findReservation
      : requireReservation;
  const targets = new Map<string, Target>();
  for (const word of words) {
    const meant = await find(context, session, word).catch((error: unknown) => {
      // For exit code 7 the report of the failure says so itself.
      if (!(error instanceof Failure) || words.length === 1 || EXIT_CODE_OF[error.code] === 7) throw error;
      throw error.with({ why: inOneText(error.facts.why, DECLINED) });
    });
    const target = !meant ? { id: word, isAbsent: true } : 'state' in meant ? known(meant) : meant;
    targets.set(target.id, target);
  }
  return [...targets.values()];
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

/** Asks once about all of them. @param isOther whether they may be other people's: then it says whose */
async function ask(context: Context, targets: readonly Target[], isOther: boolean): Promise<void> {
  const times = await context.clock.times();
  const about = targets.map(({ id, known, reservation = null }) => {
    const { created_by, experiment_id } = reservation ?? {};
    return {
      id,
      words: linkAndPeriod(known ?? { reservation, requested: null }, times),
      by: isOther ? `, booked by ${created_by} for ${experiment_id}` : '',
    };
  });
  const [only, another] = about;
  const short = shortIds(about.map(({ id }) => id));
  if (another) {
    context.output.prompt(`To be deleted (times in ${times.zone}):`);
    for (const { id, words, by } of about) context.output.prompt(`  ${short.get(id)}  ${words}${by}`);
  }
  const question = another
    ? `Delete these ${about.length} reservations?`
    : `Delete ${only?.words} ${times.zone} (${only?.id})${only?.by}?`;
  await confirm(context, question, { unasked: UNASKED, declined: DECLINED });
}

/** The id that an administrator names: names and parts of ids are those of one's own experiments. */
async function namedByAdministrator(_: Context, _session: Session, id: string): Promise<{ id: string }> {
  if (idKind(id) === 'reservation') return { id };
  throw new Failure('not_found', 'An administrator gives the whole id of a reservation.', {
    why: `${id} is a name or a part of an id. The ids of all are in the audit of the server.`,
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
 * @param targets one at least has a failure
 * @param isTried false: none was deleted, since some could not be read
 */
export function summary(targets: readonly Target[], isTried = true): Failure {
  const failed = targets.flatMap(({ id, failure }) => (failure ? [{ id, failure }] : []));
  const failures = failed.map(({ failure }) => failure);
  const [first] = failures;
  if (!first) throw new RangeError('A summary needs a failure.');
  if (targets.length === 1) return first;
  const why = inOneText(
    ...failed.map(({ id, failure: { message, says } }) =>
      message.includes(id) ? says : sentence`${id}: ${says}`,
    ),
  );
  const isAlike = failures.every(({ code }) => EXIT_CODE_OF[code] === EXIT_CODE_OF[first.code]);
  const items = targets.map(({ id, failure, isAbsent = false }) => ({
    id,
    deleted: isTried && !failure && !isAbsent,
  }));
  const deleted = items.filter((item) => item.deleted).map(({ id }) => id);
  const maybeDone = failures.some(({ facts }) => facts.maybeDone);
  const facts: FailureFacts = { why, items, ...(maybeDone ? { maybeDone, retryable: false } : {}) };
  const message = `${targets.length - deleted.length} of ${targets.length} reservations were not deleted${deleted.length > 0 ? `; deleted: ${deleted.join(', ')}` : ''}.`;
  return isAlike && deleted.length === 0 && !targets.some(({ isAbsent }) => isAbsent)
    ? new Failure(first.code, message, { ...first.facts, ...facts })
    : new Failure('partly_done', message, { ...facts, fix: 'slices-conn list' });
}
