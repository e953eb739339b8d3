import { draftOf, picked, startedAt } from './draft.ts';
import type { Page } from './page-props.ts';
import { type NetworkFacts, Unanswered } from './service.ts';
import { focusReservation } from './sights.ts';
import { whenChanged } from './signals.ts';
import { linkRows, mayDo, readForm, type State, timelineTerms } from './state.ts';
import { remembered } from './store.ts';
import { Timeline } from './timeline/timeline.ts';

let views: ReturnType<typeof make> | undefined;
export const oldViews = (page: Page, network: NetworkFacts) => (views ??= make(page, network));

function make(page: Page, { links }: NetworkFacts) {
  const { store, booking, service, login, move } = page;
  const timeline = new Timeline({
    links,
    async columns(ends, window, points, signal) {
      login.visit.throwIfAborted();
      if (!store.state.login?.user) throw new Unanswered('No user is logged in.');
      return service.columns(ends, window, points, AbortSignal.any([signal, login.visit]));
    },
    dispatch: move,
    onStart(link, start) {
      const { period } = readForm(store.state);
      page.pick(link, startedAt(store.state.draft, link, start, period));
    },
    onPick: (link, period) => page.pick(link, picked(store.state.draft, link, period)),
    onOwn({ id }) {
      store.dispatch({ type: 'learnt', facts: { marked: id } });
      focusReservation(id);
    },
    onResize(own, { start, end }) {
      if (!mayDo(store.state, 'update')) return;
      booking.fill({ ...draftOf(own), start, ending: end, isDragged: true });
    },
  });
  const own = remembered(
    ({ ended, live }: State) => ({ ended, live }),
    ({ ended = [], live = [] }) => [...ended, ...live],
  );
  whenChanged(
    store,
    (state) => ({
      ...timelineTerms(state),
      ...{ state: state.timeline, zone: state.zone, own: own(state), marked: state.marked },
    }),
    (parts) => timeline.show(parts),
  );
  whenChanged(
    store,
    ({ stale }) => ({ stale }),
    ({ stale }) => timeline.refresh(linkRows(store.state, stale)),
  );
  return { timeline };
}
