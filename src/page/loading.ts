import type { News } from '../client/events.ts';
import { HOUR, MINUTE } from '../contract/durations.ts';
import { type PageContext, tell, tellRefusal } from './context.ts';
import type { PageLogin } from './login.ts';
import { type Ends, Refused, type Told } from './service.ts';
import { calendarOf } from './state.ts';
import { maySee, refusalText } from './words.ts';

/** The map's use is asked for in columns of five minutes, for two hours from a full hour on: each is asked for once. */
const [USE_COLUMN, USE_WINDOW] = [5 * MINUTE, 2 * HOUR];

/**
 * The questions that are asked when something may have changed, or when something is opened.
 *
 * @param refresh asks again for what the views of a user show of some links; of none where none has changed
 */
export function createLoading(
  context: PageContext,
  login: PageLogin,
  refresh: (links: readonly Ends[]) => void,
) {
  const { store, service } = context;

  /** A login that has ended is noticed here. */
  async function loadReservations(): Promise<void> {
    const { chosen } = store.state;
    if (!chosen) return;
    const hidden = maySee(chosen.role) ? undefined : 'Your role does not let you see them.';
    store.dispatch({ type: 'learnt', facts: { hidden } });
    if (hidden !== undefined) return;
    try {
      const live = await service.live(chosen.id, login.visit);
      if (store.state.chosen?.id === chosen.id) store.dispatch({ type: 'listed', live });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (error.isLoggedOut) await login.load();
      else
        store.dispatch({
          type: 'learnt',
          facts: { hidden: refusalText(error.facts, calendarOf(store.state)) },
        });
    }
  }

  /** Asks for the use of the links, for the map. @returns whether any link has changed since */
  async function loadUse(): Promise<boolean> {
    const { now, use: before } = store.state;
    const start = Math.floor(now / HOUR) * HOUR;
    const window = { start, end: start + USE_WINDOW };
    const use = await service.use(window, USE_WINDOW / USE_COLUMN, login.visit);
    if (use !== before) store.dispatch({ type: 'learnt', facts: { use } });
    return use !== before;
  }

  /** Runs questions that a user may be refused, whose role or login has changed: the next question finds out. */
  async function asUser(run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      store.dispatch({ type: 'learnt', facts: { isDoubted: true } });
      if (error instanceof Refused) tellRefusal(context, error, 'page');
      else if (!(error instanceof DOMException && error.name === 'AbortError')) throw error;
    }
  }

  return {
    /** Asks for the network, and who looks, where that is not known. @returns whose news are told: see `NewsOptions` */
    async identify(): Promise<string | undefined> {
      await asUser(async () => {
        if (!store.state.network)
          store.dispatch({ type: 'learnt', facts: { network: await service.network() } });
        if (!store.state.isDoubted) return;
        // Doubted again by what another tab does meanwhile.
        store.dispatch({ type: 'learnt', facts: { isDoubted: false } });
        await login.load();
      });
      const { login: known, chosen } = store.state;
      return known?.user ? `${known.user.id} ${chosen && maySee(chosen.role) ? chosen.id : ''}` : undefined;
    },
    /** Opens the stream of news. @param cursor where an earlier one has stopped */
    open(whose: string, cursor: string | undefined): News<Told> {
      const [, experiment] = whose.split(' ');
      return service.news(experiment || undefined, () => login.visit, cursor);
    },
    /** Asks for everything that may have changed. @throws Unanswered where the server is away */
    askForNews: (): Promise<void> =>
      asUser(async () => {
        await loadReservations();
        const { login: known, network, use: before } = store.state;
        if (!known?.user) return;
        // At first nothing is shown that could have changed.
        const isChanged = (await loadUse()) && before.length > 0;
        refresh(isChanged ? (network?.links ?? []) : []);
      }),
    /** Takes what was told, and asks again for the use of the links that it names. @throws Unanswered */
    tell: (told: readonly Told[]): Promise<void> =>
      asUser(async () => {
        store.dispatch({ type: 'told', told });
        const links = told.filter((one) => 'version' in one);
        if (links.length === 0) return;
        refresh(links);
        await loadUse();
      }),

    /** Asks for the reservations that have ended. */
    async loadEnded(): Promise<void> {
      const { chosen, hidden } = store.state;
      if (!chosen || hidden !== undefined) return;
      try {
        const ended = await service.ended(chosen.id);
        if (store.state.chosen?.id === chosen.id) store.dispatch({ type: 'learnt', facts: { ended } });
      } catch (error) {
        tell(context, error, 'page');
      }
    },
  };
}
