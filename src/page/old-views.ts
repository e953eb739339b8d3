import { MINUTE } from '../contract/durations.ts';
import { draftOf, picked, startedAt } from './draft.ts';
import { createMap } from './map/map.ts';
import type { Page } from './page-props.ts';
import { createReservationList } from './reservation-list.ts';
import { type NetworkFacts, Unanswered } from './service.ts';
import { whenChanged } from './signals.ts';
import {
  linkRows,
  mayDo,
  readForm,
  routeParts,
  type State,
  shownRoute,
  timelineTerms,
  useAt,
} from './state.ts';
import { remembered } from './store.ts';
import { Timeline } from './timeline/timeline.ts';

let views: ReturnType<typeof make> | undefined;
export const flushed = () => views;
export const oldViews = (page: Page, network: NetworkFacts) => (views ??= make(page, network));

function make(page: Page, { sites, links }: NetworkFacts) {
  const { store, booking, service, login, begin, move } = page;
  const routeOf = remembered(routeParts, shownRoute);
  const list = createReservationList({
    act: page.act,
    filter: (filter) => store.dispatch({ type: 'learnt', facts: { filter } }),
    wantEnded: page.loadEnded,
  });
  const map = createMap({
    ...{ sites, links },
    onSelect(selected) {
      begin();
      page.pick(selected, picked(store.state.draft, selected));
    },
  });
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
      list.focus(id);
    },
    onResize(own, { start, end }) {
      if (!mayDo(store.state, 'update')) return;
      booking.fill({ ...draftOf(own), start, ending: end, isDragged: true });
    },
  });
  const use = remembered(
    ({ use: known, network: facts, now }: State) => ({ known, facts, at: now - (now % MINUTE) }),
    ({ known, facts, at }) => useAt(at, { use: known, network: facts }),
  );
  whenChanged(
    store,
    (state) => ({ use: use(state), selected: state.selected, route: routeOf(state) }),
    map.show,
  );
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
    ({ login: known, chosen, live, ended, filter, hidden, marked, busy, now, zone: shown }) => ({
      ...{ known, chosen, live, ended, filter, hidden, marked, busy, now: now - (now % 1000), zone: shown },
    }),
    ({ known, ...parts }) => {
      list.element.hidden = !known?.user || !parts.chosen;
      if (parts.chosen) list.show(parts);
    },
  );
  whenChanged(
    store,
    ({ stale }) => ({ stale }),
    ({ stale }) => timeline.refresh(linkRows(store.state, stale)),
  );
  return { map, timeline, list };
}
