import { BookingForm } from './booking-form.ts';
import { draftOf, picked, startedAt } from './draft.ts';
import type { Page } from './page-props.ts';
import { type NetworkFacts, Unanswered } from './service.ts';
import { focusReservation } from './sights.ts';
import { whenChanged } from './signals.ts';
import {
  draftRoute,
  formParts,
  linkRows,
  mayDo,
  readForm,
  routeParts,
  type Selected,
  type State,
  timelineTerms,
} from './state.ts';
import { remembered } from './store.ts';
import { Timeline } from './timeline/timeline.ts';

let views: ReturnType<typeof make> | undefined;
export const flushed = () => views;
export const oldViews = (page: Page, network: NetworkFacts) => (views ??= make(page, network));

function make(page: Page, { links }: NetworkFacts) {
  const { store, booking, service, login, begin, move } = page;
  const routeOfDraft = remembered(routeParts, draftRoute);
  const select = (selected: Selected | undefined): void =>
    store.dispatch({ type: 'learnt', facts: { selected } });
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
      booking.fill({ ...draftOf(own), start, ending: { at: end }, isDragged: true });
    },
  });
  const form = new BookingForm({
    ...{ booking, links, onUse: begin, forget: page.forget },
    onClear() {
      move({ type: 'cleared' });
      select(undefined);
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
    (state) => ({
      ...formParts(state),
      ...{ isChecked: state.isChecked, isLeft: state.isLeft, isSending: state.isSending },
      ...{ login: state.login, hasEnded: state.hasEnded, sent: state.sent },
      route: routeOfDraft(state),
    }),
    (parts) => form.show(parts),
  );
  whenChanged(
    store,
    ({ stale }) => ({ stale }),
    ({ stale }) => timeline.refresh(linkRows(store.state, stale)),
  );
  return { timeline, form };
}
