import { type Draft, EMPTY_DRAFT, isSameDraft, readKept } from './draft.ts';
import { type Column, Refused, type Service, Unanswered } from './service.ts';
import { type Action, readForm, type SentRequest, type State } from './state.ts';
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
  done(reservation: Awaited<ReturnType<Service['send']>>, isNew: boolean): void;
  /** A request of a person had no answer: the server is away. */
  unanswered(): void;
  /** The login has ended, or nothing can be sent without one. */
  loggedOut(): void;
  failed(error: unknown): void;
}

/** The questions and requests that a draft becomes. All that is known of them is in the state. */
export interface Booking {
  /** Puts a draft into the form as it is typed: the dry run waits for a pause. */
  type(draft: Draft): void;
  /** Puts a draft into the form by a click: the dry run is sent at once. */
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

/** See {@link Booking}. */
export function createBooking(options: BookingOptions): Booking {
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

  async function ask(isQuiet: boolean): Promise<void> {
    const signal = drop();
    const { chosen, answer: before } = store.state;
    const { wish } = readForm(store.state);
    if (!chosen || !wish) {
      store.dispatch({ type: 'answered', answer: { kind: 'none' } });
      return;
    }
    // Asked again by itself, it is still the same request that was refused.
    const isSent = isQuiet && before.kind === 'refused' && before.isSent;
    if (!isQuiet) store.dispatch({ type: 'answered', answer: { kind: 'asking' } });
    try {
      await service.dryRun(chosen.id, wish, signal);
      const columns = service.columns(wish.link, wish.period, 1, signal);
      const [free] = await columns.catch((error: unknown): readonly Column[] => {
        if (error instanceof Refused) return [];
        throw error;
      });
      if (!signal.aborted) store.dispatch({ type: 'answered', answer: { kind: 'fits', wish, free } });
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused) {
        if (error.isLoggedOut) options.loggedOut();
        const answer = { kind: 'refused', wish, facts: error.facts, isSent } as const;
        store.dispatch({ type: 'answered', answer });
      } else if (error instanceof Unanswered) {
        store.dispatch({ type: 'answered', answer: { kind: 'away' } });
        if (!isQuiet) options.unanswered();
      } else options.failed(error);
    }
  }

  /** Asks whether the draft fits that came back into the form. */
  function goOn(): void {
    drop();
    if (!isSameDraft(store.state.draft, EMPTY_DRAFT)) void ask(false);
  }

  /** The request to send: the one that had no answer, else that of the draft. */
  function requestToSend(experiment: string): SentRequest | undefined {
    const { sent, draft } = store.state;
    const { wish } = readForm(store.state);
    if (sent && (sent.experiment === experiment || !wish)) return sent;
    if (!wish) return undefined;
    const { id, request } = wish;
    return { experiment, asked: { id, request, key: draft.id === undefined ? options.newKey() : undefined } };
  }

  async function send(): Promise<void> {
    const { chosen, isSending } = store.state;
    if (isSending) return;
    if (!chosen) {
      options.loggedOut();
      return;
    }
    const sent = requestToSend(chosen.id);
    if (!sent) {
      store.dispatch({ type: 'checked' });
      return;
    }
    drop();
    const { wish } = readForm(store.state);
    // It is kept before it is sent: the page may be closed before the answer is there.
    store.dispatch({ type: 'sent', sent });
    try {
      const reservation = await service.send(sent.experiment, sent.asked);
      store.dispatch({ type: 'settled', as: 'accepted' });
      goOn();
      options.done(reservation, sent.asked.id === undefined);
    } catch (error) {
      if (error instanceof Unanswered) {
        store.dispatch({ type: 'settled', as: 'unanswered' });
        options.unanswered();
      } else if (error instanceof Refused) {
        if (error.isLoggedOut) options.loggedOut();
        const refused = { kind: 'refused', facts: error.facts, isSent: true } as const;
        store.dispatch({ type: 'settled', as: wish ? { ...refused, wish } : { kind: 'none' } });
      } else {
        store.dispatch({ type: 'settled', as: 'failed' });
        options.failed(error);
      }
    }
  }

  return {
    type(draft) {
      if (store.state.isSending) return;
      store.dispatch({ type: 'drafted', draft });
      drop();
      callOff = options.later(PAUSE, () => void ask(false));
    },
    fill(draft) {
      if (store.state.isSending) return;
      store.dispatch({ type: 'drafted', draft });
      void ask(false);
    },
    send,
    reset() {
      store.dispatch({ type: 'reset' });
      goOn();
    },
    refresh() {
      const { isSending, answer } = store.state;
      // A request that had no answer is the person's to send again.
      if (isSending || answer.kind === 'asking' || answer.kind === 'unanswered') return;
      void ask(answer.kind !== 'none');
    },
  };
}

/** The form as it is kept for this tab; null where nothing is worth keeping. It holds no token. */
export function keptForm({ draft, sent }: Pick<State, 'draft' | 'sent'>): string | null {
  return isSameDraft(draft, EMPTY_DRAFT) && !sent ? null : JSON.stringify({ draft, sent });
}

/** The reverse of {@link keptForm}; empty for any other text. */
export function readKeptForm(text: string | null): { draft?: Draft; sent?: SentRequest } {
  try {
    const kept: ReturnType<typeof readKeptForm> = JSON.parse(text ?? '{}');
    const draft = readKept(JSON.stringify(kept.draft ?? null));
    if (!draft) return {};
    const { experiment, asked } = kept.sent ?? {};
    const isWhole = typeof experiment === 'string' && typeof asked?.request.end === 'number';
    return { draft, sent: isWhole ? { experiment, asked } : undefined };
  } catch {
    return {};
  }
}
