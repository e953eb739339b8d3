import { type PageContext, say, tell } from './context.ts';
import type { PageLogin } from './login.ts';
import { Refused } from './service.ts';
import { calendarOf } from './state.ts';
import { maySee, refusalText } from './words.ts';

/** The questions that are asked again and again, or when something is opened. */
export interface Loading {
  /** Asks for everything that may have changed. @throws Unanswered where the server is away */
  askForNews(): Promise<void>;
  /** Asks for the reservations that have ended. */
  loadEnded(): Promise<void>;
}

/** How long the map's use looks ahead, in milliseconds: a request for it stays the same so long, and costs nothing. */
const NOW_LASTS = 300_000;

/** Makes {@link Loading}. @param refresh asks again for what the views of a user show */
export function createLoading(context: PageContext, login: PageLogin, refresh: () => void): Loading {
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

  /** The use of each link now, for the map. */
  async function loadUse(): Promise<void> {
    const { now, network } = store.state;
    const start = Math.floor(now / NOW_LASTS) * NOW_LASTS;
    const asked = (network?.links ?? []).map(async (link) => {
      const [column] = await service.columns(link, { start, end: start + NOW_LASTS }, 1, login.visit);
      const share = column ? 1 - column.free / link.bandwidth : null;
      const { use } = store.state;
      if (use.get(link) !== share)
        store.dispatch({ type: 'learnt', facts: { use: new Map([...use, [link, share]]) } });
    });
    await Promise.all(asked);
  }

  return {
    async askForNews() {
      try {
        if (!store.state.network)
          store.dispatch({ type: 'learnt', facts: { network: await service.network() } });
        if (store.state.isDoubted) {
          // Doubted again by what another tab does meanwhile.
          store.dispatch({ type: 'learnt', facts: { isDoubted: false } });
          await login.load();
        }
        await loadReservations();
        if (!store.state.login?.user) return;
        refresh();
        await loadUse();
      } catch (error) {
        // Refused to a user whose role or login has changed: the next question finds out.
        store.dispatch({ type: 'learnt', facts: { isDoubted: true } });
        if (error instanceof Refused) say(context, refusalText(error.facts, calendarOf(store.state)), 'page');
        else if (!(error instanceof DOMException && error.name === 'AbortError')) throw error;
      }
    },
    async loadEnded() {
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
