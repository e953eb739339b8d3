import { formatBandwidth } from '../../contract/amounts.ts';
import { Failure } from '../../contract/failure.ts';
import { idKind } from '../../contract/fields.ts';
import { Sentence, type Times } from '../../contract/said.ts';
import { type KnownReservation, knownRequest, nameOf, shortIds } from '../../session/reservations/known.ts';
import type { Session } from '../../session/session.ts';
import { linkName } from '../../words/links.ts';
import type { Context } from '../context.ts';
import { missingFailure, pick } from '../questions.ts';
import { shortTimes, type TimeContext } from '../times.ts';
import { reservationWord } from '../values.ts';

/** The reservation that is meant, with what is known of it; for a full id nothing is looked up. */
export type MeantReservation = KnownReservation | { id: string };

/** The most candidates that are listed for an ambiguous text. */
const MOST_LISTED = 10;

/**
 * The reservation that a command with one ID argument is about, and a session that acts in its experiment.
 *
 * @param typed the argument; undefined where it is missing, so that a person chooses
 * @param verb completes "Which reservation do you want to …?"
 * @param command the command's name
 * @throws Failure, see {@link requireReservation} and {@link pickedReservation}
 */
export async function reservationArgument(
  context: Context,
  typed: string | undefined,
  verb: string,
  command = verb,
): Promise<{ session: Session; id: string }> {
  if (typed === undefined) {
    checkPerson(context, command);
    const session = await context.session();
    return { session, id: (await pickedReservation(context, session, verb)).id };
  }
  const word = reservationWord(typed);
  const session = await context.session();
  return { session, id: (await requireReservation(context, session, word)).id };
}

/**
 * The reservation that a checked ID argument means (cli/README.md, "Commands"): the one with this id, else
 * the only one with this name, else the only one that has the text in the last section of its id. From now on
 * the session acts in its experiment, where the ledger knows it.
 *
 * @throws Failure `not_found` when none fits, `usage` when several do
 */
export async function requireReservation(
  context: Context,
  session: Session,
  word: string,
): Promise<MeantReservation> {
  const meant = await findReservation(context, session, word);
  if (meant) return meant;
  const what = word.startsWith('…')
    ? `has an id that ends in ${word}`
    : `is named ${word} or has it in its id`;
  throw new Failure('not_found', `No reservation that is known ${what}.`, {
    why:
      word.length < 4
        ? 'Of an id, four characters or more are needed.'
        : "Known are the experiment's reservations, and those that this machine asked for.",
    fix: 'slices-conn list --all',
  });
}

/** The same; undefined when none fits. */
export async function findReservation(
  { clock: { times } }: Context,
  session: Session,
  word: string,
): Promise<MeantReservation | undefined> {
  const meant = idKind(word) === 'reservation' ? { id: word } : await onlyOne(session, word, times);
  if (meant) await session.actFor(meant.id);
  return meant;
}

async function onlyOne(
  session: Session,
  word: string,
  times: Context['clock']['times'],
): Promise<KnownReservation | undefined> {
  const part = word.replace('…', '');
  const fits = ({ id }: KnownReservation): boolean =>
    part === word || id.toLowerCase().endsWith(part.toLowerCase());
  const known = (await session.reservationsWith(part)).filter(fits);
  const [only, another] = known;
  if (!only || !another) return only;
  const { now } = await times();
  const more = known.length - MOST_LISTED;
  const isName = nameOf(only) === word;
  const isElsewhere = isName && new Set(known.map(({ entry }) => entry?.experiment)).size > 1;
  const apart = isElsewhere
    ? 'They are of several experiments: --experiment tells them apart, or the id.'
    : isName
      ? 'The id tells them apart.'
      : 'More characters of the id tell them apart.';
  const lines = known
    .slice(0, MOST_LISTED)
    .map((item) => new Sentence((said) => `${item.id}  ${linkAndPeriodIn(item, said, now)}`));
  throw new Failure('usage', `${word} ${isName ? 'is the name of' : 'fits'} ${known.length} reservations.`, {
    why: apart,
    lines: [...lines, ...(more > 0 ? [`and ${more} more`] : [])],
    fix: 'slices-conn list --all',
  });
}

/**
 * The reservation that a command without an ID argument is about: a person chooses it from those of the
 * experiment that have not ended.
 *
 * @param verb completes "Which reservation do you want to …?"
 * @throws Failure `usage` without a terminal, or when there is none; Declined when none is chosen
 */
export async function pickedReservation(
  context: Context,
  session: Session,
  verb: string,
): Promise<KnownReservation> {
  const { items: known } = await session.currentReservations();
  if (known.length === 0) {
    throw new Failure('usage', 'No reservation is scheduled or active.', { fix: 'slices-conn list --all' });
  }
  const times = await context.clock.times();
  const title = `Which reservation do you want to ${verb}? (Times in ${times.zone})`;
  const short = shortIds(known.map(({ id }) => id));
  const picked = await pick(context, title, known, (item) => {
    const state = item.state === 'scheduled' ? '' : `, ${item.state}`;
    return `${short.get(item.id)}  ${linkAndPeriod(item, times)}${state}`;
  });
  await session.actFor(picked.id);
  return picked;
}

/**
 * Checks that a person can be asked for a missing ID argument.
 *
 * @param command its name
 * @throws Failure `usage` without a terminal
 */
export function checkPerson({ terminal: { ask } }: Context, command: string): void {
  if (ask) return;
  throw missingFailure(`slices-conn ${command}`, ['<id>']).with({
    why: 'Without a terminal, the reservation must be named: by its name, its id, or a part of the id, such as wk6x4q.',
    fix: 'slices-conn list',
  });
}

/**
 * A reservation in a few words: name, link, bandwidth, and period in the context's zone, which is not named.
 */
export function linkAndPeriod(
  item: Pick<KnownReservation, 'reservation' | 'requested'>,
  times: TimeContext,
): string {
  return linkAndPeriodIn(item, shortTimes(times, true), times.now);
}

/** The same with times as they are written. @param now milliseconds */
function linkAndPeriodIn(
  item: Pick<KnownReservation, 'reservation' | 'requested'>,
  times: Times,
  now: number,
): string {
  const known = knownRequest(item);
  if (!known) return 'a link that is not known here';
  const { bandwidth, end } = known;
  const period = times.ends(known.start === 'now' ? now : known.start, end).join(' to ');
  const rate = bandwidth === undefined ? 'as fast as the link allows' : formatBandwidth(bandwidth);
  const name = known.name ?? item.requested?.name;
  return `${name === undefined ? '' : `${name}: `}${linkName(known)}, ${rate}, ${period}`;
}
