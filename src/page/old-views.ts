import { MINUTE } from '../contract/durations.ts';
import { BookingForm } from './booking-form.ts';
import { picked } from './draft.ts';
import { createMap } from './map/map.ts';
import type { Page } from './page-props.ts';
import { createReservationList } from './reservation-list.ts';
import type { NetworkFacts } from './service.ts';
import { whenChanged } from './signals.ts';
import { draftRoute, formParts, routeParts, type Selected, type State, shownRoute, useAt } from './state.ts';
import { remembered } from './store.ts';

let views: ReturnType<typeof make> | undefined;
export const flushed = () => views;
export const oldViews = (page: Page, network: NetworkFacts) => (views ??= make(page, network));

function make(page: Page, { sites, links }: NetworkFacts) {
  const { store, booking, begin, move } = page;
  const routeOf = remembered(routeParts, shownRoute);
  const routeOfDraft = remembered(routeParts, draftRoute);
  const select = (selected: Selected | undefined): void =>
    store.dispatch({ type: 'learnt', facts: { selected } });
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
  const form = new BookingForm({
    ...{ booking, links, onUse: begin, forget: page.forget },
    onClear() {
      move({ type: 'cleared' });
      select(undefined);
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
    (state) => ({
      ...formParts(state),
      ...{ isChecked: state.isChecked, isLeft: state.isLeft, isSending: state.isSending },
      ...{ login: state.login, hasEnded: state.hasEnded, sent: state.sent },
      route: routeOfDraft(state),
    }),
    (parts) => form.show(parts),
  );
  return { map, form, list };
}
