import type { News } from '../../client/events.ts';
import type { ProofOptions, ProvenReservation } from '../../client/proof.ts';
import { formatBandwidth } from '../../contract/amounts.ts';
import { durationWord, formatDuration, MINUTE } from '../../contract/durations.ts';
import { Failure, isGone, mayBeRepeated, ownCommand } from '../../contract/failure.ts';
import { LAST_INSTANT } from '../../contract/instants.ts';
import type { EventType, ReservationEvent } from '../../contract/reservation.ts';
import { asUpdate, periodOf, type ReservationRequest } from '../../contract/reservation-request.ts';
import { inOneText, instant, inTimes, type Said, sentence } from '../../contract/said.ts';
import type { Session } from '../../session/session.ts';
import { claimedExperimentExpiry, claimedExpiry } from '../../tokens/claimed.ts';
import { linkName, viaAside } from '../../words/links.ts';
import type { Context, Pipe } from '../context.ts';
import { reservationResult } from '../print/cards.ts';
import { jsonText } from '../print/output.ts';
import { distanceIn, formatDistance, shortTime, timesIn } from '../times.ts';
import { surelyFree } from './alternatives.ts';
import { NOTHING_LEFT, type Unfinished } from './guardian.ts';
import { rateAndTagChanges } from './looks.ts';

/** How often the reservation is looked at, at least (cli/README.md, "Output"), and how soon after a look that failed. */
const [LOOK_EVERY, LOOK_AGAIN] = [MINUTE, 5000];

/** The first expiry, in milliseconds, of the tokens that are never renewed, and where that token is from; undefined where none names one. */
async function givenToken(session: Session): Promise<{ expiry: number; where: string } | undefined> {
  const { userToken, experimentToken: given } = session.connection;
  // A flag may name another experiment than the given token's.
  const isUsed = given && (await session.access()).where === given.where;
  const fixed = [userToken, ...(isUsed ? [given] : [])].filter(({ isFixed }) => isFixed);
  const tokens = await Promise.all(
    fixed.map(async ({ where, get }) => ({ where, expiry: claimedExpiry((await get()).reveal()) })),
  );
  return tokens
    .flatMap(({ where, expiry }) => (expiry === undefined ? [] : [{ where, expiry }]))
    .toSorted((one, other) => one.expiry - other.expiry)[0];
}

/**
 * Checks that tokens from the environment last as long as the reservation: after that it could not be deleted.
 *
 * @param end of the reservation, in milliseconds
 * @throws Failure `usage`
 */
export async function checkGivenTokens(session: Session, end: number, now: number): Promise<void> {
  const given = await givenToken(session);
  if (!given || given.expiry >= end) return;
  const fitting = durationWord(surelyFree(given.expiry, now));
  throw new Failure('usage', `The token in ${given.where} expires before the reservation would end.`, {
    why: sentence`It expires at ${instant(given.expiry)}, the reservation would end at ${instant(end)}, and without a token it can't be deleted. A token from the environment is not renewed; a login is, and so is SLICES_CONN_REFRESH_TOKEN.`,
    fix: fitting === undefined ? 'slices-conn login' : { for: fitting },
  });
}

/** When a reservation must have ended at the latest, in milliseconds: with the experiment, or with a token that is never renewed. */
export async function lastEnd(session: Session): Promise<{ last: number; because: string }> {
  const { token } = await session.access();
  const expiry = claimedExperimentExpiry(token.reveal()) ?? LAST_INSTANT;
  const given = await givenToken(session);
  if (!given || given.expiry >= expiry) return { last: expiry, because: 'the experiment ends' };
  return { last: given.expiry, because: `the token in ${given.where} expires` };
}

/** The events after which it is looked at. */
const CHANGES: ReadonlySet<EventType> = new Set<EventType>(['updated', 'deleted']);

/** One `run`. */
interface Run {
  context: Context;
  session: Session;
  /** How much the reservation is extended by, in milliseconds. */
  duration: number;
  /** Whether unsigned answers are accepted. */
  proof: ProofOptions;
}

/**
 * The reservation of one run, from its creation to its deletion. Its guardian knows at each moment what would be left
 * behind, and a file has its token.
 */
export class RunReservation {
  readonly #run: Run;
  readonly #guardian: Pipe;
  #left: Unfinished;
  #proven: ProvenReservation;
  /** When it is looked at next, and when it is extended; milliseconds. */
  #lookAt: number;
  #extendAt = 0;
  #isSeen = true;
  #isDeleted = false;
  readonly #news: News<ReservationEvent>;
  readonly #stopListening = (): void => this.#news.close();

  private constructor(run: Run, guardian: Pipe, left: Unfinished, proven: ProvenReservation) {
    this.#run = run;
    this.#guardian = guardian;
    this.#left = left;
    this.#proven = proven;
    this.#lookAt = run.context.clock.now() + LOOK_EVERY;
    this.#news = run.session.connectivity.news();
  }

  /**
   * Creates it, after its guardian was started.
   *
   * @throws Failure as `Reservations.change`. An invalid answer's reservation is deleted; one whose outcome is
   *   unknown is left to the guardian.
   */
  static async create(run: Run, request: ReservationRequest): Promise<RunReservation> {
    const { context, session } = run;
    const { processes, files, output } = context;
    const key = context.env.newKey();
    const { id: experiment = '' } = await session.access();
    const file = await files.privatePath(`${key}.jwt`);
    const guardian = await processes.startGuardian(await guardianFlags(run));
    context.processes.ifStopped({ why: 'A reservation that was made is deleted in the background.' });
    const left: Unfinished = { experiment, key, request, id: null, end: request.end, file, command: null };
    await guardian.tell(JSON.stringify(left));
    const [proven] = await session.reservations
      .change([{ action: 'create', request }], { ...run.proof, idempotencyKey: key })
      .catch(async (error: unknown) => {
        throw await undone(session, guardian, error);
      });
    const created = new RunReservation(run, guardian, left, proven);
    try {
      await created.#keep(proven);
      if (output.json) output.prompt(jsonText(reservationResult(proven)));
      else await created.#sayReserved(proven);
      return created;
    } catch (error) {
      await created.delete();
      throw error;
    }
  }

  /** The variables that the command finds in its environment (cli/README.md, "Values"). */
  get variables(): Readonly<Record<string, string>> {
    const { reservation } = this.#proven;
    const { id, site1, site2, bandwidth, end_date } = reservation;
    return {
      SLICES_CONN_RESERVATION_ID: id,
      // Nothing that is not signed stands in that file.
      ...(this.#proven.token === null ? {} : { SLICES_CONN_RESERVATION_FILE: this.#left.file }),
      SLICES_CONN_SITE1: site1,
      SLICES_CONN_SITE2: site2,
      SLICES_CONN_SITE1_S_TAG: String(reservation.site1_s_tag),
      SLICES_CONN_SITE1_C_TAG: String(reservation.site1_c_tag),
      SLICES_CONN_SITE2_S_TAG: String(reservation.site2_s_tag),
      SLICES_CONN_SITE2_C_TAG: String(reservation.site2_c_tag),
      SLICES_CONN_BANDWIDTH: String(bandwidth),
      SLICES_CONN_END: end_date,
    };
  }

  /**
   * Waits until it has started, where the earliest time that fits is later; it is looked at meanwhile.
   *
   * @throws Failure `not_found` where it was lost before
   */
  async waitForStart(): Promise<void> {
    const { clock, output } = this.#run.context;
    if (this.#start <= clock.now()) return;
    const times = await clock.times();
    const loss = await output.waitFor(
      `the link to start at ${shortTime(this.#start, times)} ${times.zone}`,
      () => this.untilLost(new AbortController().signal, { isUntilStart: true }),
    );
    if (loss !== undefined) throw new Failure('not_found', loss, { why: 'The command was not started.' });
  }

  /**
   * Looks at it each minute, as soon as the service tells that it has changed, and when it is to be extended.
   *
   * @param signal ends that
   * @param options `extend`: whether it is extended when it is time to; `isUntilStart`: ends when it has started
   * @returns how it was lost, as a sentence; undefined where it is there, as far as is known
   */
  async untilLost(
    signal: AbortSignal,
    { extend = false, isUntilStart = false }: { extend?: boolean; isUntilStart?: boolean },
  ): Promise<Said | undefined> {
    const { now, sleep } = this.#run.context.clock;
    const pause = (milliseconds: number, also = signal): Promise<void> =>
      sleep(milliseconds, AbortSignal.any([signal, also])).catch(() => undefined);
    // A stream that does not begin would be waited for.
    signal.addEventListener('abort', this.#stopListening, { once: true });
    while (!signal.aborted) {
      const extendAt = extend && this.#isSeen ? this.#extendAt : Number.POSITIVE_INFINITY;
      const start = isUntilStart ? this.#start : Number.POSITIVE_INFINITY;
      if (start <= now()) return undefined;
      const lookAt = Math.min(this.#end, this.#lookAt, extendAt);
      // What changed before is not told.
      let isDue = await this.#news.mark();
      if (!isDue && lookAt > now()) {
        const told = (await this.#news.wait(Math.min(lookAt, start) - now(), pause)) ?? [];
        isDue = told.some(({ type, reservation: { id } }) => id === this.#id && CHANGES.has(type));
      }
      if (signal.aborted || (!isDue && lookAt > now())) continue;
      const loss = await this.#look(extend);
      if (loss !== undefined && !signal.aborted) return loss;
    }
    return undefined;
  }

  /** Says which process ends with the link, where `run` is killed; null once it has ended, so that no other one is taken for it. */
  async guardCommand(pid: number | null): Promise<void> {
    this.#left = { ...this.#left, command: pid };
    await this.#guardian.tell(JSON.stringify(this.#left));
  }

  /** Prints a notice, with times in the person's zone. */
  async say(said: Said): Promise<void> {
    const { output, clock } = this.#run.context;
    output.notice(inTimes(said, timesIn(await clock.times())));
  }

  /** Deletes it, and ends its guardian. A deletion that fails is reported, and left to the guardian to try again. */
  async delete(): Promise<void> {
    const { context, session } = this.#run;
    const guardian = this.#guardian;
    this.#news.close();
    try {
      if (!this.#isDeleted) {
        await session.reservations.change([{ action: 'delete', id: this.#id }]);
        await this.say(`Deleted ${this.#id}`);
      }
      await guardian.tell(NOTHING_LEFT);
    } catch (error) {
      if (isGone(error)) await guardian.tell(NOTHING_LEFT);
      else await this.#reportUndeleted(error);
    } finally {
      guardian.close();
      await context.files.remove(this.#left.file).catch(() => undefined);
    }
  }

  get #id(): string {
    return this.#proven.reservation.id;
  }

  get #start(): number {
    return periodOf(this.#proven.reservation).start;
  }

  get #end(): number {
    return periodOf(this.#proven.reservation).end;
  }

  /** Looks at it, and extends it when it is time to. @returns how it was lost, as a sentence */
  async #look(extend: boolean): Promise<Said | undefined> {
    const { context, session } = this.#run;
    const { now } = context.clock;
    try {
      await this.#observe(await session.reservations.show(this.#id, this.#run.proof));
      if (extend && now() >= this.#extendAt && now() < this.#end) await this.#extend();
      this.#isSeen = true;
    } catch (error) {
      this.#isDeleted = isGone(error);
      if (this.#isDeleted) return `The reservation ${this.#id} was deleted.`;
      if (this.#isSeen) await this.say(sentence`warning: The link can't be looked at: ${saidOf(error)}`);
      this.#isSeen = false;
    }
    this.#lookAt = now() + (this.#isSeen ? LOOK_EVERY : LOOK_AGAIN);
    return now() < this.#end ? undefined : sentence`The link ended at ${instant(this.#end)}.`;
  }

  async #sayReserved({ reservation }: ProvenReservation): Promise<void> {
    const now = this.#run.context.clock.now();
    const ahead = sentence`from ${instant(this.#start)} (${formatDistance(this.#start, now)}) `;
    const what = `${linkName(reservation)}${viaAside(reservation)}, ${formatBandwidth(reservation.bandwidth)}`;
    await this.say(
      sentence`Reserved ${what}, ${this.#start > now ? ahead : ''}until ${this.#until}: ${this.#id}`,
    );
  }

  get #until(): Said {
    const { context, duration } = this.#run;
    const typed = { now: context.clock.now(), typedDurations: new Map([[this.#end, duration]]) };
    return sentence`${instant(this.#end)} (${distanceIn(this.#end, typed)})`;
  }

  /** Keeps the reservation as the service has shown it. */
  async #keep(proven: ProvenReservation): Promise<void> {
    this.#proven = proven;
    this.#left = { ...this.#left, id: this.#id, end: this.#end };
    this.#extendAt = this.#end - this.#run.duration / 3;
    await this.#guardian.tell(JSON.stringify(this.#left));
    const { token } = proven;
    if (token !== null) await this.#run.context.files.writePrivate(this.#left.file, `${token}\n`);
  }

  /** Keeps it where it has changed, and says so where that matters to the command. */
  async #observe(proven: ProvenReservation): Promise<void> {
    const [before, after] = [this.#proven.reservation, proven.reservation];
    if (JSON.stringify(before) === JSON.stringify(after)) return;
    await this.#keep(proven);
    if (before.end_date !== after.end_date) await this.say(sentence`The link lasts until ${this.#until}.`);
    const changes = rateAndTagChanges(before, after);
    if (changes.length === 0) return;
    const names = 'SLICES_CONN_RESERVATION_FILE has the new values, the variables of the command have not.';
    await this.say(`warning: The reservation was changed: ${changes.join(', ')}. ${names}`);
  }

  /** Extends it by its duration, not beyond the end of the experiment or of a token; says how long is left otherwise. */
  async #extend(): Promise<void> {
    const { session, duration, context } = this.#run;
    const { now } = context.clock;
    const { reservation } = this.#proven;
    const left = sentence`It ends at ${this.#until}.`;
    const { last, because } = await lastEnd(session);
    const end = Math.min(this.#end + duration, last);
    if (end <= this.#end) {
      this.#extendAt = Number.POSITIVE_INFINITY;
      return this.say(sentence`warning: The link can't be extended: ${because} then. ${left}`);
    }
    try {
      const item = { action: 'update', id: this.#id, request: { ...asUpdate(reservation), end } } as const;
      const [extended] = await session.reservations.change([item], this.#run.proof);
      await this.#observe(extended);
    } catch (error) {
      // Others may delete theirs, and a service may come back: asked for again at two thirds of what is left.
      this.#extendAt = Math.max(now() + ((this.#end - now()) * 2) / 3, now() + LOOK_AGAIN);
      const more = formatDuration(end - this.#end);
      await this.say(sentence`warning: The link was not extended by ${more}: ${saidOf(error)} ${left}`);
      const update = ownCommand('update', this.#id, '--extend', durationWord(end - this.#end) ?? '1m');
      context.output.notice(`  try: ${update}`);
    }
  }

  async #reportUndeleted(error: unknown): Promise<void> {
    const { clock, output } = this.#run.context;
    const goesOn = mayBeRepeated(error);
    const next = goesOn
      ? 'The deletion is tried again in the background until that works, or the link ends'
      : 'It ends';
    const what = sentence`${this.#id} ${goesOn ? 'is not deleted yet' : 'was not deleted'}: ${saidOf(error)}`;
    // Not a notice, which --quiet would leave out.
    output.prompt(sentence`warning: ${what} ${next} at ${this.#until}.`.in(timesIn(await clock.times())));
    if (!goesOn) output.prompt(`  try: ${ownCommand('delete', '--yes', this.#id)}`);
  }
}

/**
 * The flags of the guardian, which acts as this command does, whatever profile and experiment are chosen by then.
 * None is a secret.
 */
async function guardianFlags({ context: { flags }, session }: Run): Promise<string[]> {
  const { profile } = session;
  const { origin, id } = await session.access();
  // A token command may not know ids; a given token names its experiment itself.
  const byCommand = origin === 'command' ? profile.experiment : undefined;
  const known = origin === 'environment' || origin === 'file' ? undefined : id;
  const { project, caFile, timeout } = flags;
  const experiment = flags.experiment ?? byCommand ?? known;
  const values = { profile: profile.name, experiment, project, 'ca-file': caFile, timeout };
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  return given.map(([name, value]) => `--${name}=${value}`);
}

/**
 * Undoes a creation that failed: a reservation that an answer names is deleted, and the guardian is told when nothing is
 * left.
 *
 * @returns the failure to report
 */
async function undone(session: Session, guardian: Pipe, error: unknown): Promise<unknown> {
  try {
    if (!(error instanceof Failure)) return error;
    const { reservation, isOther, maybeDone = false, why } = error.facts;
    if (reservation === undefined || isOther) {
      if (maybeDone)
        return error.with({ why: inOneText(why, 'What was booked is deleted in the background.') });
      await guardian.tell(NOTHING_LEFT);
      return error;
    }
    await session.reservations.change([{ action: 'delete', id: reservation }]);
    await guardian.tell(NOTHING_LEFT);
    return error.with({
      why: inOneText(why, 'The reservation was deleted.'),
      fix: 'slices-conn list',
      maybeDone: false,
    });
  } catch {
    return error;
  } finally {
    guardian.close();
  }
}

function saidOf(error: unknown): Said {
  return error instanceof Failure ? (inOneText(error.says, error.facts.why) ?? '') : String(error);
}
