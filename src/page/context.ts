import { Refused, type Service, Unanswered } from './service.ts';
import { type Action, calendarOf, type State, type Subject } from './state.ts';
import type { PageStorage } from './storage.ts';
import type { Store } from './store.ts';
import { refusalText } from './words.ts';

/** The means of everything that is done on the page. */
export interface PageContext {
  store: Store<State, Action>;
  service: Service;
  /** The address below which the page's files lie: `…/ui/`. */
  base: URL;
  /** The storage of all tabs, and that of this tab until it is closed. */
  lasting: PageStorage;
  passing: PageStorage;
  /** Asks for news at once. */
  look(): void;
  /** A request had no answer: says so at once, and asks for news. */
  lost(): void;
  /** A bug shows up in the console, and the page says so. */
  failed(error: unknown): void;
}

/** Says what became of an action, beside its subject. A notice of something that is done goes by itself. */
export function say({ store }: Pick<PageContext, 'store'>, text: string, at: Subject, isDone = false): void {
  store.dispatch({ type: 'said', notice: { text, at, isDone } });
}

/**
 * Says why something was refused. That a login has ended is no notice of its own: another tab may have logged in since the
 * request was sent, and then the next look takes it back.
 */
export function tellRefusal({ store }: Pick<PageContext, 'store'>, refused: Refused, at: Subject): void {
  if (refused.isLoggedOut) store.dispatch({ type: 'login-ended' });
  else say({ store }, refusalText(refused.facts, calendarOf(store.state)), at);
}

/** Says why something could not be done. */
export function tell(context: PageContext, error: unknown, at: Subject): void {
  const { store } = context;
  if (error instanceof Refused) {
    tellRefusal(context, error, at);
    if (error.isLoggedOut) store.dispatch({ type: 'learnt', facts: { isDoubted: true } });
    context.look();
  } else if (error instanceof Unanswered) {
    say(context, 'No answer came. It may be done or not: the list shows it once the server answers.', at);
    context.lost();
  } else context.failed(error);
}
