import {
  type Draft,
  type DraftTerms,
  EMPTY_DRAFT,
  type Field,
  isSameDraft,
  readDraft,
  readKept,
  type Wish,
} from './draft.ts';
import {
  type Column,
  type RefusalFacts,
  Refused,
  type ReservationAsked,
  type Reserved,
  type Service,
  Unanswered,
} from './service.ts';

/** What is known of the draft: what a dry run said, or what became of the request. */
export type Answer =
  /** Nothing is known: something is missing. */
  | { kind: 'none' }
  /** A dry run is under way. */
  | { kind: 'asking' }
  /** What is free then, where the service says so. */
  | { kind: 'fits'; wish: Wish; free: Column | undefined }
  /** `isSent`: the request itself was refused, not only its dry run. */
  | { kind: 'refused'; wish: Wish; facts: RefusalFacts; isSent: boolean }
  /** The dry run had no answer. */
  | { kind: 'away' }
  /** The request itself had no answer: it may have been done. */
  | { kind: 'unanswered' };

/** What the form shows. */
export interface BookingView {
  draft: Draft;
  /** What is wrong with each field; empty sentences for fields that are empty. */
  problems: ReadonlyMap<Field, string>;
  /** Whether empty fields are to be named: the form was sent. */
  isChecked: boolean;
  answer: Answer;
  isSending: boolean;
}

/** What {@link createBooking} is made of. */
export interface BookingOptions {
  service: Pick<Service, 'dryRun' | 'columns' | 'send'>;
  /** The chosen experiment and what a draft is read with; undefined where none is chosen. */
  terms(): (DraftTerms & { experiment: string }) | undefined;
  /** Runs something later. @returns what calls it off */
  later(milliseconds: number, run: () => void): () => void;
  /** A text that was never used before. */
  newKey(): string;
  /** Keeps a text for this tab until it is closed; null forgets it. */
  keep(text: string | null): void;
  /** What was kept. */
  kept: string | null;
  show(view: BookingView): void;
  done(reservation: Reserved, isNew: boolean): void;
  /** Nobody answered what a person asked for: the server is away. */
  unanswered?(): void;
  /** The login has ended, or nothing can be sent without one. */
  loggedOut(): void;
  failed(error: unknown): void;
}

/** The form's state: a draft, what a dry run says of it while it is typed, and the one request that it becomes. */
export interface Booking {
  readonly view: BookingView;
  /** The draft as it is typed: the dry run waits for a pause. */
  type(draft: Draft): void;
  /** The form filled by a click: the dry run is sent at once. */
  fill(draft: Draft): void;
  /** Sends the request. Until it is answered, nothing else is sent; without an answer, the same is sent again. */
  send(): Promise<void>;
  /** Goes back to the draft of a new reservation. */
  reset(): void;
  /** Asks again whether the draft fits: others may have booked. */
  refresh(): void;
}

/** How long nothing is typed before a dry run, in milliseconds. */
export const PAUSE = 300;

/** What is kept for this tab. It holds no token. */
interface Kept {
  draft: Draft;
  /** The request that had no answer, and whose it was. */
  sent?: { experiment: string; asked: ReservationAsked };
}

/** See {@link Booking}. */
export function createBooking(options: BookingOptions): Booking {
  const { service } = options;
  const before = readBefore(options.kept);
  let draft = before?.draft ?? EMPTY_DRAFT;
  /** A request that was sent and not answered. It is sent again as it was, so that it can't be done twice. */
  let sent = before?.sent;
  /** What stood in the form before a reservation was to be changed. */
  let aside = EMPTY_DRAFT;
  let answer: Answer = sent ? { kind: 'unanswered' } : { kind: 'none' };
  let [isChecked, isSending] = [false, false];
  let callOff = (): void => {};
  let question = new AbortController();

  function problems(): ReadonlyMap<Field, string> {
    const terms = options.terms();
    const read = terms ? readDraft(draft, terms) : { problems: new Map<Field, string>() };
    if ('problems' in read) return read.problems;
    const isTaken = answer.kind === 'refused' && answer.facts.code === 'name_taken';
    return new Map(isTaken ? [['name', 'This name is taken.']] : []);
  }

  const view = (): BookingView => ({ draft, problems: problems(), isChecked, answer, isSending });
  const show = (): void => options.show(view());

  function keep(): void {
    const isEmpty = isSameDraft(draft, EMPTY_DRAFT) && !sent;
    const kept: Kept = { draft, sent };
    options.keep(isEmpty ? null : JSON.stringify(kept));
  }

  /** Forgets a dry run that is planned or under way: the last one wins. */
  function drop(): AbortSignal {
    callOff();
    question.abort();
    question = new AbortController();
    return question.signal;
  }

  async function ask(isQuiet: boolean): Promise<void> {
    const signal = drop();
    const terms = options.terms();
    const read = terms && readDraft(draft, terms);
    if (!terms || !read || !('wish' in read)) {
      answer = { kind: 'none' };
      show();
      return;
    }
    const { wish } = read;
    // Asked again by itself, it is still the same request that was refused.
    const isSent = isQuiet && answer.kind === 'refused' && answer.isSent;
    if (!isQuiet) {
      answer = { kind: 'asking' };
      show();
    }
    try {
      await service.dryRun(terms.experiment, wish.asked, signal);
      const [free] = await service.columns(wish.link, wish.period, 1, signal).catch((error: unknown) => {
        if (error instanceof Refused) return [];
        throw error;
      });
      answer = { kind: 'fits', wish, free };
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused) {
        if (error.isLoggedOut) options.loggedOut();
        answer = { kind: 'refused', wish, facts: error.facts, isSent };
      } else if (error instanceof Unanswered) {
        answer = { kind: 'away' };
        if (!isQuiet) options.unanswered?.();
      } else options.failed(error);
    }
    if (!signal.aborted) show();
  }

  function put(next: Draft): void {
    if (next.id !== undefined && draft.id === undefined) aside = draft;
    draft = next;
    [sent, isChecked] = [undefined, false];
    keep();
  }

  /** Empties the form, so that a second click can't book the same again. */
  function reset(): void {
    drop();
    const next = draft.id === undefined ? EMPTY_DRAFT : aside;
    aside = EMPTY_DRAFT;
    answer = { kind: 'none' };
    put(next);
    if (isSameDraft(next, EMPTY_DRAFT)) show();
    else void ask(false);
  }

  async function send(): Promise<void> {
    const terms = options.terms();
    if (isSending) return;
    if (!terms) {
      options.loggedOut();
      return;
    }
    const read = readDraft(draft, terms);
    if (!('wish' in read) && !sent) {
      isChecked = true;
      show();
      return;
    }
    drop();
    const isSame = sent?.experiment === terms.experiment;
    if ('wish' in read && !(sent && isSame)) {
      const key = draft.id === undefined ? { key: options.newKey() } : {};
      sent = { experiment: terms.experiment, asked: { ...read.wish.asked, ...key } };
    }
    if (!sent) return;
    isSending = true;
    // Kept before it is sent: the page may be closed before the answer is there.
    keep();
    show();
    try {
      const reservation = await service.send(sent.experiment, sent.asked);
      isSending = false;
      const isNew = draft.id === undefined;
      sent = undefined;
      reset();
      options.done(reservation, isNew);
    } catch (error) {
      isSending = false;
      if (error instanceof Unanswered) {
        answer = { kind: 'unanswered' };
        options.unanswered?.();
      } else if (error instanceof Refused) {
        sent = undefined;
        if (error.isLoggedOut) options.loggedOut();
        if ('wish' in read) answer = { kind: 'refused', wish: read.wish, facts: error.facts, isSent: true };
        else answer = { kind: 'none' };
      } else options.failed(error);
      keep();
      show();
    }
  }

  return {
    get view() {
      return view();
    },
    type(next) {
      if (isSending) return;
      put(next);
      drop();
      answer = { kind: 'none' };
      callOff = options.later(PAUSE, () => void ask(false));
      show();
    },
    fill(next) {
      if (isSending) return;
      put(next);
      void ask(false);
    },
    send,
    reset() {
      if (!isSending) reset();
    },
    refresh() {
      const { kind } = answer;
      // A request that had no answer is the person's to send again.
      if (isSending || kind === 'asking' || kind === 'unanswered') return;
      void ask(kind !== 'none');
    },
  };
}

function readBefore(text: string | null): Kept | undefined {
  if (text === null) return undefined;
  try {
    const kept: Partial<Kept> = JSON.parse(text);
    const draft = readKept(JSON.stringify(kept.draft ?? null));
    if (!draft) return undefined;
    const { experiment, asked } = kept.sent ?? {};
    const isWhole = typeof experiment === 'string' && typeof asked?.body === 'string';
    return { draft, ...(isWhole ? { sent: { experiment, asked } } : {}) };
  } catch {
    return undefined;
  }
}
