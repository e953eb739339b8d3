import { DAY, SECOND } from '../contract/durations.ts';
import type { ProblemCode } from '../contract/problems.ts';
import {
  type Draft,
  EMPTY_DRAFT,
  isLength,
  isSameDraft,
  isSameWish,
  ON_THE_WAY,
  readKept,
  type Wish,
} from './draft.ts';
import { isSamePair, type Route, routeOver } from './route.ts';
import { type Column, type OwnReservation, Refused, type Service, Unanswered } from './service.ts';
import {
  type Action,
  isTyped,
  type KeptForm,
  openRequest,
  readForm,
  type SentRequest,
  type State,
} from './state.ts';
import type { Store } from './store.ts';

/** Options of {@link createBooking}. */
export interface BookingOptions {
  store: Pick<Store<State, Action>, 'state' | 'dispatch'>;
  service: Pick<Service, 'dryRun' | 'columns' | 'send'>;
  /** Runs something later. @returns what calls it off */
  later(milliseconds: number, run: () => void): () => void;
  /** Makes a text that was never used before. */
  newKey(): string;
  /** A request of the form was accepted. */
  done(sent: SentRequest, reservation: OwnReservation): void;
  /** A request was refused, and the form can't show why: another draft is in it, or the request may have been done before. */
  refused(sent: SentRequest, refusal: Refused, isSettled: boolean): void;
  /** A request of a person had no answer: the server is away. */
  unanswered(): void;
  /** The login has ended, or nothing can be sent without one. */
  loggedOut(): void;
  failed(error: unknown): void;
}

/** See {@link createBooking}. */
export type Booking = ReturnType<typeof createBooking>;

/** How long nothing is typed before a dry run, in milliseconds. */
export const PAUSE = 300;

/** How far ahead the earliest start is looked for, in milliseconds. */
const SEARCHED = 366 * DAY;

/** The questions about the draft. The last one wins. */
function createQuestions(options: BookingOptions) {
  const { store, service } = options;
  let callOff = (): void => {};
  let question = new AbortController();

  /** Forgets a dry run that is planned or under way: the last one wins. */
  function drop(): AbortSignal {
    callOff();
    question.abort();
    question = new AbortController();
    return question.signal;
  }

  /**
   * @param isQuiet whether nothing is shown until the answer is there, as where it is asked again by itself
   * @param isFirst whether no earlier start was found
   */
  async function ask({ isQuiet = false, isFirst = false } = {}): Promise<void> {
    const signal = drop();
    const { chosen, answer: before } = store.state;
    const { wish } = readForm(store.state);
    // What is free can't be said while a request may or may not have taken it.
    if (!chosen || !wish || store.state.sent || store.state.isLeft) {
      store.dispatch({ type: 'answered', answer: { kind: 'none' } });
      return;
    }
    // Asked again by itself, it is still the same request that was refused.
    const isSent = isQuiet && before.kind === 'refused' && before.isSent;
    if (!isQuiet) store.dispatch({ type: 'answered', answer: { kind: 'asking', wish } });
    try {
      const found = await service.dryRun(chosen.id, wish, signal);
      const route = routeOver(store.state.network?.links ?? [], found);
      const free = wish.id === undefined ? await freeThen(service, wish, route, signal) : undefined;
      // What begins now has no earlier start later on either.
      const isKept = isQuiet && before.kind === 'fits' && before.isEarliest && wish.request.start === 'now';
      const isEarliest = isFirst || isKept;
      if (!signal.aborted)
        store.dispatch({ type: 'answered', answer: { kind: 'fits', wish, route, free, isEarliest } });
    } catch (error) {
      if (!signal.aborted) failed(error, wish, { isSent, isQuiet });
    }
  }

  function failed(error: unknown, wish: Wish, { isSent = false, isQuiet = false }): void {
    if (error instanceof Refused) {
      if (error.isLoggedOut) options.loggedOut();
      store.dispatch({ type: 'answered', answer: { kind: 'refused', wish, facts: error.facts, isSent } });
    } else if (error instanceof Unanswered) {
      store.dispatch({ type: 'answered', answer: { kind: 'away', wish } });
      if (!isQuiet) options.unanswered();
    } else options.failed(error);
  }

  /** @returns the draft with the first start at which all of it fits; undefined where that is not known */
  async function askEarliest(): Promise<Draft | undefined> {
    const { chosen, draft, now, sent } = store.state;
    if (!chosen || sent || draft.id !== undefined) return undefined;
    const { times, wish: asked } = readForm(store.state);
    const from = draft.start !== 'now' && times.start && times.start > now ? times.start : 'now';
    const { wish } = readForm({ ...store.state, draft: { ...draft, start: from } });
    if (!wish) {
      store.dispatch({ type: 'checked' });
      return undefined;
    }
    const signal = drop();
    const { start, end } = wish.period;
    const duration = Math.round((end - start) / SECOND) * SECOND;
    const request = {
      ...wish.request,
      duration,
      end: Math.min(start + SEARCHED, Date.parse(chosen.expires_at)),
    };
    if (asked) store.dispatch({ type: 'answered', answer: { kind: 'asking', wish: asked } });
    try {
      const found = await service.dryRun(chosen.id, { request }, signal);
      if (signal.aborted) return undefined;
      const isNow = from === 'now' && found.start <= store.state.now + ON_THE_WAY;
      const ending = isLength(draft) ? draft.ending : found.end;
      return { ...draft, start: isNow ? 'now' : found.start, ending };
    } catch (error) {
      if (!signal.aborted) failed(error, asked ?? wish, {});
      return undefined;
    }
  }

  return {
    ask,
    drop,
    askEarliest,
    /** Asks once nothing is typed for a while. */
    askLater(): void {
      drop();
      callOff = options.later(PAUSE, () => void ask());
    },
  };
}

/** The questions and requests that a draft becomes. All that is known of them is in the state. */
export function createBooking(options: BookingOptions) {
  const { store, service } = options;
  const { ask, drop, askLater, askEarliest } = createQuestions(options);

  /** Asks whether the draft fits that came back into the form. */
  function goOn(): void {
    drop();
    if (isTyped(store.state)) void ask();
  }

  /** Sends the request. Until it is settled nothing else is sent; without an answer, the same is sent again. */
  async function send(): Promise<void> {
    const { chosen, isSending, sent: before, answer } = store.state;
    if (isSending || answer.kind === 'moved') return;
    if (!chosen && !before) {
      options.loggedOut();
      return;
    }
    const sent = before ?? newRequest(store.state, options.newKey);
    if (!sent) {
      store.dispatch({ type: 'checked' });
      return;
    }
    drop();
    // It is kept before it is sent: the page may be closed before the answer is there.
    store.dispatch({ type: 'sent', sent });
    try {
      const reservation = await service.send(sent.experiment, { ...sent.wish, key: sent.key });
      store.dispatch({ type: 'settled', as: 'accepted' });
      goOn();
      options.done(sent, reservation);
    } catch (error) {
      if (error instanceof Unanswered) {
        store.dispatch({ type: 'settled', as: 'unanswered' });
        options.unanswered();
      } else if (error instanceof Refused) refused(sent, error, before === undefined || isDecision(error));
      else {
        store.dispatch({ type: 'settled', as: 'failed' });
        options.failed(error);
      }
    }
  }

  function refused(sent: SentRequest, refusal: Refused, isSettled: boolean): void {
    const { facts, isLoggedOut } = refusal;
    const isShown = isSettled && isSameDraft(store.state.draft, sent.draft);
    const answer = { kind: 'refused', wish: sent.wish, facts, isSent: true } as const;
    store.dispatch({ type: 'settled', as: isSettled ? answer : 'unanswered' });
    if (isLoggedOut) options.loggedOut();
    else if (!isShown) options.refused(sent, refusal, isSettled);
    if (isSettled && !isShown) goOn();
  }

  /** Puts a draft into the form by a click: the dry run is sent at once. */
  function fill(draft: Draft): void {
    if (store.state.isSending) return;
    store.dispatch({ type: 'drafted', draft });
    void ask();
  }

  return {
    /** Puts a draft into the form as it is typed: the dry run waits for a pause. */
    type(draft: Draft): void {
      if (store.state.isSending) return;
      store.dispatch({ type: 'drafted', draft });
      askLater();
    },
    fill,
    /** Makes the start of the draft the first at which all of it fits; not before the start that it has. */
    async earliest(): Promise<void> {
      const found = await askEarliest();
      if (!found || store.state.sent) return;
      const [wish, next] = [store.state.draft, found].map(
        (draft) => readForm({ ...store.state, draft }).wish,
      );
      if (wish && next && isSameWish(wish, next)) void ask({ isFirst: true });
      else fill(found);
    },
    send,
    /** Gives up a request that had no answer. @param isDone whether it was found to be done: its draft goes too */
    forget(isDone: boolean): void {
      if (!openRequest(store.state)) return;
      store.dispatch({ type: 'settled', as: isDone ? 'accepted' : 'forgotten' });
      goOn();
    },
    /** Goes back to the draft of a new reservation. */
    reset(): void {
      store.dispatch({ type: 'reset' });
      goOn();
    },
    /** Asks again whether the draft fits: others may have booked. */
    refresh(): void {
      const { isSending, answer } = store.state;
      if (isSending || answer.kind === 'asking') return;
      void ask({ isQuiet: answer.kind !== 'none' });
    },
  };
}

/** The draft as a request; undefined where it can't be sent. */
function newRequest(state: State, newKey: () => string): SentRequest | undefined {
  const { draft, now: at, chosen: experiment, isLeft } = state;
  const { wish } = readForm(state);
  if (!wish || !experiment || isLeft) return undefined;
  return { experiment: experiment.id, key: wish.id === undefined ? newKey() : undefined, wish, draft, at };
}

/** The free capacity of a route while a request lasts; undefined where the service does not say. */
async function freeThen(
  service: Pick<Service, 'columns'>,
  { request, period }: Wish,
  { sites }: Route,
  signal: AbortSignal,
): Promise<Column | undefined> {
  const columns = service.columns(request, period, 1, signal);
  const [free] = await columns.catch((error: unknown): readonly Column[] => {
    if (error instanceof Refused) return [];
    throw error;
  });
  return free?.route && `${free.route}` !== `${sites}` ? undefined : free;
}

/** Whether the service decided about a request that is sent again. Refusals before that say nothing about the time before. */
function isDecision({ facts: { code, details } }: Refused): boolean {
  const known = [
    'name_taken',
    'idempotency_key_reused',
    'not_found',
    'search_given_up',
  ] satisfies ProblemCode[];
  return known.some((one) => one === code) || details.some(({ loc }) => loc.length > 0);
}

/** The reservation of a list that a request has made, or one like it. */
export function madeBy(
  { wish: { id, request } }: SentRequest,
  list: readonly OwnReservation[],
): OwnReservation | undefined {
  const { site1, site2, bandwidth, name, start, end } = request;
  return list.find(
    (own) =>
      (id === undefined ? own.name === name : own.id === id) &&
      (start === 'now' || own.start === start) &&
      own.bandwidth === bandwidth &&
      own.end === end &&
      isSamePair(own, { site1, site2 }),
  );
}

/** The form as it is kept for this tab; null where nothing is worth keeping. It holds no token. */
export function keptForm({ draft, sent, owner }: KeptForm & Pick<State, 'draft'>): string | null {
  return isSameDraft(draft, EMPTY_DRAFT) && !sent ? null : JSON.stringify({ draft, sent, owner });
}

/** The reverse of {@link keptForm}; empty for any other text. */
export function readKeptForm(text: string | null): KeptForm {
  try {
    const kept: KeptForm = JSON.parse(text ?? '{}');
    const draft = readKept(JSON.stringify(kept.draft ?? null));
    if (!draft) return {};
    const { sent, owner } = kept;
    const isWhole =
      sent &&
      [sent.wish.request.end, sent.wish.period.end, sent.at].every(Number.isFinite) &&
      readKept(JSON.stringify(sent.draft));
    return { draft, owner, sent: isWhole ? sent : undefined };
  } catch {
    return {};
  }
}
