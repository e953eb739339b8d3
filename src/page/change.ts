import { stateAt } from '../contract/instants.ts';
import { type Draft, EMPTY_DRAFT, fixed, isSameDraft, isSameWish } from './draft.ts';
import type { ExperimentChoice, Login, OwnReservation, Told } from './service.ts';
import {
  type Action,
  type Answer,
  isTyped,
  openState,
  readForm,
  type State,
  timelineTerms,
} from './state.ts';
import { changeTimeline } from './timeline/model.ts';

/** The next state. Pure: the time is the state's own. Its answer is about the wish that its draft means. */
export function change(state: State, action: Action): State {
  const next = changed(state, action);
  const { answer } = next;
  if (!('wish' in answer) || action.type === 'timeline') return next;
  const { wish } = readForm(next);
  return wish && isSameWish(answer.wish, wish) ? next : { ...next, answer: { kind: 'moved' } };
}

function changed(state: State, action: Action): State {
  switch (action.type) {
    case 'tick':
      return state;
    case 'learnt': {
      // Other sites are looked at, and no reservation is.
      const marked = 'selected' in action.facts ? undefined : state.marked;
      return { ...state, marked, ...action.facts };
    }
    case 'zoned':
      return zoned(state, action.zone);
    case 'logged-in':
      return loggedIn(state, action);
    case 'logged-out':
      return loggedOut(state);
    case 'login-ended':
      return loginEnded(state);
    case 'chosen':
      return chosen(state, action.experiment);
    case 'listed':
      return listed(state, action.live);
    case 'told':
      return action.told.reduce(told, state);
    case 'busy': {
      const others = [...state.busy].filter((id) => id !== action.id);
      return { ...state, busy: new Set(action.isBusy ? [...others, action.id] : others) };
    }
    case 'changed': {
      const { reservation, experiment } = action;
      if (experiment !== state.chosen?.id) return state;
      return { ...state, live: [...without(state.live, reservation.id), reservation] };
    }
    case 'deleted': {
      // A change of it that had no answer is settled by that.
      const sent = state.sent?.wish.id === action.id && !state.isSending ? undefined : state.sent;
      const next = { ...state, sent, live: without(state.live, action.id) };
      return state.draft.id === action.id && !state.isSending ? reset(next) : next;
    }
    case 'drafted':
      return state.isSending ? state : drafted(unsaid(state, 'begun'), action.draft);
    case 'reset':
      return state.isSending ? state : reset(unsaid(state, 'begun'));
    case 'checked':
      return { ...state, isChecked: true };
    case 'answered':
      return { ...state, answer: action.answer };
    case 'sent':
      return { ...unsaid(state, 'begun'), sent: action.sent, isSending: true };
    case 'settled':
      return settled({ ...state, isSending: false }, action.as);
    case 'said':
      return { ...state, notice: action.notice };
    case 'unsaid':
      return unsaid(state, action.since);
    case 'timeline':
      return { ...state, timeline: changeTimeline(state.timeline, action.action, timelineTerms(state)) };
  }
}

function unsaid(state: State, since: Extract<Action, { type: 'unsaid' }>['since']): State {
  const stays = { begun: state.hasEnded, closed: false, passed: state.notice?.isDone === false };
  return stays[since] ? state : { ...state, notice: undefined };
}

const without = (list: State['live'], id: string): OwnReservation[] =>
  (list ?? []).filter((one) => one.id !== id);

/** The experiment that was chosen before; else the only experiment that has not expired. */
function usual({ experiments }: Login, state: State, wanted: string | null): ExperimentChoice | undefined {
  const active = experiments.filter(({ expires_at }) => Date.parse(expires_at) > state.now);
  return (
    experiments.find(({ id }) => id === (state.chosen?.id ?? wanted)) ??
    (active.length === 1 ? active[0] : undefined)
  );
}

function chosen(state: State, experiment: ExperimentChoice | undefined): State {
  if (experiment?.id === state.chosen?.id) return { ...state, chosen: experiment };
  const answer: Answer = 'wish' in state.answer ? { kind: 'moved' } : state.answer;
  const next = {
    ...state,
    chosen: experiment,
    answer,
    live: undefined,
    ended: undefined,
    filter: '',
    hidden: undefined,
  };
  return state.draft.id === undefined || state.isSending ? next : reset(next);
}

/** Of what another user typed and sent in this tab nothing is kept. */
function loggedIn(state: State, { login, wanted }: Extract<Action, { type: 'logged-in' }>): State {
  const { owner, login: before, sent } = state;
  const { id = '', name = '' } = login.user ?? {};
  const next: State = {
    ...{ ...state, login, owner: id, hasEnded: false },
    notice: state.hasEnded ? undefined : state.notice,
  };
  if (owner === undefined || owner === id) return chosen(next, usual(login, state, wanted));
  const isLost = sent !== undefined || isTyped(state);
  const text = `You are now logged in as ${name}.${isLost ? ' What another user had typed here is gone.' : ''}`;
  const other = {
    ...openState(state.now, state.zone),
    ...{ isDoubted: state.isDoubted, ahead: state.ahead },
  };
  const { network, reach, use, timeline } = state;
  return chosen(
    {
      ...{ ...other, network, reach, use, timeline, login, owner: id },
      notice: isLost || before?.user ? { text, at: 'page', isDone: false } : next.notice,
    },
    usual(login, other, wanted),
  );
}

function loggedOut(state: State): State {
  const isNews = Boolean(state.login?.user);
  return {
    ...{ ...state, use: [], login: { user: null, experiments: [] } },
    ...{ chosen: undefined, live: undefined, ended: undefined },
    selected: isNews ? undefined : state.selected,
  };
}

function loginEnded(state: State): State {
  if (state.hasEnded) return state;
  const kept = !isTyped(state) && !state.sent ? '' : '; what you typed is kept';
  const text = `Your login has ended. Log in again${kept}.`;
  return { ...state, hasEnded: true, notice: { text, at: 'form', isDone: false } };
}

/** Reservations that have ended meanwhile move to the list of ended ones. */
function listed(state: State, live: readonly OwnReservation[]): State {
  const over = (state.live ?? []).filter(
    (one) => stateAt(state.now, one) === 'ended' && !live.some(({ id }) => id === one.id),
  );
  return { ...state, live, ended: state.ended && [...state.ended, ...over] };
}

/** When one has started or ended is the server's to say: its clock may be ahead of what is known of it. */
function told(state: State, event: Told): State {
  if (!('reservation' in event) || !state.live) return state;
  const { type, reservation } = event;
  const live = without(state.live, reservation.id);
  if (type === 'deleted') return { ...state, live };
  if (type === 'ended')
    return { ...state, live, ended: state.ended && [...without(state.ended, reservation.id), reservation] };
  return { ...state, live: [...live, reservation] };
}

function drafted(state: State, draft: Draft): State {
  const aside = draft.id !== undefined && state.draft.id === undefined ? state.draft : state.aside;
  const selected = selectedBy(draft, state);
  const marked = draft.id === state.marked ? state.marked : undefined;
  const next: State = {
    ...{ ...state, draft, aside, selected, marked },
    ...{ answer: { kind: 'none' }, isChecked: false, isLeft: false },
  };
  const isMoved = draft.id !== state.draft.id || draft.start !== state.draft.start;
  const redrafted = { type: 'redrafted', isMoved } as const;
  return { ...next, timeline: changeTimeline(state.timeline, redrafted, timelineTerms(next)) };
}

/** The sites that a draft names are looked at, once they are others than before. */
function selectedBy({ id, site1, site2 }: Draft, { draft, selected }: State): State['selected'] {
  if (`${site1}${site2}` === '' || (id === draft.id && site1 === draft.site1 && site2 === draft.site2))
    return selected;
  if (site1 === '' || site2 === '') return { site1: site1 || site2, site2: '' };
  return { site1, site2 };
}

/** What is typed means the same instants in another zone. */
function zoned(state: State, zone: string): State {
  const { draft, aside, sent } = state;
  const inZone = (one: Draft): Draft => fixed(one, readForm({ ...state, draft: one }));
  const next = { ...state, zone, draft: inZone(draft), aside: inZone(aside) };
  return sent && isSameDraft(sent.draft, draft) ? { ...next, sent: { ...sent, draft: next.draft } } : next;
}

/** Empties the form, or gives it back what stood in it before a change. */
function reset(state: State): State {
  const draft = state.draft.id === undefined ? EMPTY_DRAFT : state.aside;
  return { ...drafted(state, draft), aside: EMPTY_DRAFT };
}

function settled(state: State, as: Extract<Action, { type: 'settled' }>['as']): State {
  const { sent } = state;
  if (as === 'failed' || as === 'unanswered') return { ...state, answer: { kind: 'none' } };
  const next = { ...state, sent: undefined };
  // What was typed since it was sent is another draft.
  if (as === 'forgotten' || !sent || !isSameDraft(state.draft, sent.draft)) return next;
  if (as !== 'accepted') return { ...next, answer: as };
  if (sent.draft.id !== undefined) return reset(next);
  // Its sites are looked at, and stay. A second click can't book the same again.
  const { site1, site2 } = sent.draft;
  return { ...drafted(next, { ...EMPTY_DRAFT, site1, site2 }), isLeft: true };
}
