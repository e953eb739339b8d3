import { describe, expect, test } from 'vitest';
import { change } from '../../src/page/change.ts';
import { type Draft, EMPTY_DRAFT } from '../../src/page/draft.ts';
import { pairOf } from '../../src/page/route.ts';
import type { Link, OwnReservation } from '../../src/page/service.ts';
import {
  type Action,
  isRepeatable,
  markOf,
  openRequest,
  openState,
  readForm,
  type SentRequest,
  type State,
  shownRoute,
  shownRows,
} from '../../src/page/state.ts';
import { RESERVATION } from '../fixtures/tokens.ts';

const NOW = Date.parse('2026-11-22T10:00:00Z');
const HOUR = 3_600_000;
const LINK: Link = { site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 100_000 };
const NETWORK = { name: null, base_url: '', login: true, sites: [], links: [LINK] };
const DRAFT: Draft = { ...EMPTY_DRAFT, site1: 'be-gent1', site2: 'pl-poznan1' };
const DRAFT_ENDS = { site1: 'be-gent1', site2: 'pl-poznan1' };
const OWN: OwnReservation = { ...RESERVATION, start: NOW, end: NOW + HOUR };
const experiment = (id: string, more = {}) => ({
  ...{ id, name: id, role: 'lead', expires_at: '2030-01-01T00:00:00Z', project: { id: '', name: '' } },
  ...more,
});
const logIn = (id: string, experiments = [experiment('exp_demo')], wanted: string | null = null): Action => ({
  ...{ type: 'logged-in', login: { user: { id, name: id }, experiments }, wanted },
});
const CHOSEN: Action = { type: 'chosen', experiment: experiment('exp_other') };
const typed = (draft: Draft): Action => ({ type: 'drafted', draft });
const after = (state: State, ...actions: readonly Action[]): State => actions.reduce(change, state);

/** A page on which a user has logged in. */
const opened = (kept = {}): State =>
  after({ ...openState(NOW, 'UTC', kept), network: NETWORK }, logIn('ann'));

/** The request of a state's draft. */
function sentOf(state: State): SentRequest {
  const { wish } = readForm(state);
  if (!wish) throw new Error('the draft can not be sent');
  return { experiment: state.chosen?.id ?? '', key: 'k', wish, draft: state.draft, at: state.now };
}

/** A state whose request had no answer. */
function unanswered(draft = DRAFT): State & { sent: SentRequest } {
  const state = after(opened(), typed(draft));
  const sent = sentOf(state);
  return { ...after(state, { type: 'sent', sent }, { type: 'settled', as: 'unanswered' }), sent };
}

describe('a request without an answer', () => {
  test.each<[string, readonly Action[]]>([
    ['typing', [typed({ ...DRAFT, name: 'x' })]],
    ['an emptied form', [{ type: 'reset' }]],
    ['a change of another reservation', [typed({ ...DRAFT, id: 'con_x' }), { type: 'reset' }]],
    ['another experiment', [CHOSEN]],
    ['an answer to a dry run', [{ type: 'answered', answer: { kind: 'none' } }]],
    ['news', [{ type: 'listed', live: [] }]],
    ['a deleted reservation', [{ type: 'deleted', id: 'con_x' }]],
    ['a logout, and a login of the same user', [{ type: 'logged-out' }, logIn('ann')]],
    ['a login that ended', [{ type: 'login-ended' }, { type: 'logged-out' }]],
    ['another failure', [{ type: 'settled', as: 'unanswered' }]],
  ])('outlasts %s', (_, actions) => {
    const state = unanswered();
    expect(openRequest(after(state, ...actions))).toBe(state.sent);
  });

  test('is not open while it is under way, and nothing can be typed then', () => {
    const state = unanswered();
    const sending = change(state, { type: 'sent', sent: state.sent });
    expect([openRequest(sending), change(sending, typed({ ...DRAFT, name: 'x' })).draft]).toEqual([
      undefined,
      DRAFT,
    ]);
  });

  test('takes its draft with it where it is accepted, but for the sites that are looked at, and no other draft', () => {
    const state = unanswered({ ...DRAFT, bandwidth: '2G', name: 'x' });
    const accepted: Action = { type: 'settled', as: 'accepted' };
    const left = change(state, accepted);
    expect(left).toMatchObject({ draft: DRAFT, selected: DRAFT_ENDS, isLeft: true, sent: undefined });
    expect(change(left, typed({ ...DRAFT, bandwidth: '3G' })).isLeft).toBe(false);
    const other = { ...DRAFT, name: 'x' };
    expect(after(state, typed(other), accepted)).toMatchObject({ draft: other, sent: undefined });
  });

  test('is sent again only while the service knows its key; a change needs none', () => {
    const { sent } = unanswered();
    expect([22, 24].map((hours) => isRepeatable(sent, NOW + hours * HOUR))).toEqual([true, false]);
    expect(isRepeatable({ at: NOW }, NOW + 48 * HOUR)).toBe(true);
  });

  test('of a change is settled by the deletion of its reservation', () => {
    const state = unanswered({ ...DRAFT, id: 'con_x' });
    expect(change(state, { type: 'deleted', id: 'con_x' }).sent).toBeUndefined();
  });

  test('and its draft are the same user’s after a reload', () => {
    const { sent, draft, owner } = unanswered();
    expect(opened({ sent, draft, owner })).toMatchObject({ sent, draft, owner: 'ann' });
  });
});

describe('another user', () => {
  test('finds nothing of what the first one typed, sent, chose and saw, and is told', () => {
    const known = after(unanswered(), { type: 'listed', live: [OWN] });
    const state = change(
      { ...known, selected: { site1: 'be-gent1', site2: '' }, busy: new Set(['con_x']) },
      logIn('bob', []),
    );
    expect(state).toMatchObject({ draft: EMPTY_DRAFT, aside: EMPTY_DRAFT, owner: 'bob', network: NETWORK });
    const { sent, chosen, live, selected, busy, notice } = state;
    expect([sent, chosen, live, selected, busy.size]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      0,
    ]);
    expect(notice).toMatchObject({ at: 'page', isDone: false });
    expect(notice?.text).toContain('bob');
  });

  test('finds nothing of a closed tab either, nor an answer that comes late', () => {
    const { sent, draft, owner } = unanswered();
    const state = after(openState(NOW, 'UTC', { sent, draft, owner }), logIn('bob'));
    expect(state).toMatchObject({ draft: EMPTY_DRAFT, sent: undefined });
    const mine = after({ ...state, network: NETWORK }, typed(DRAFT), { type: 'settled', as: 'accepted' });
    expect(mine.draft).toBe(DRAFT);
    expect(change(mine, { type: 'changed', experiment: 'exp_old', reservation: OWN }).live).toBeUndefined();
  });

  test('who logs in where nothing was typed is told nothing', () => {
    expect(after(opened(), { type: 'logged-out' }, logIn('bob')).notice).toBeUndefined();
  });
});

describe('the experiment', () => {
  test('is the one of the address or of before, or the only one that has not expired', () => {
    const over = experiment('exp_over', { expires_at: '2020-01-01T00:00:00Z' });
    const [one, two] = [experiment('exp_1'), experiment('exp_2')];
    const chosenOf = (all: (typeof one)[], wanted: string | null) =>
      change(openState(NOW, 'UTC'), logIn('ann', all, wanted)).chosen?.id;
    expect(chosenOf([one, two], null)).toBeUndefined();
    expect(chosenOf([one, two], 'exp_2')).toBe('exp_2');
    expect(chosenOf([one, over], null)).toBe('exp_1');
    expect(chosenOf([over], null)).toBeUndefined();
  });
});

describe('what is looked at', () => {
  const links = [
    LINK,
    { site1: 'gr-uth', site2: 'pl-poznan1', bandwidth: 1000 },
    { site1: 'gr-uth', site2: 'se-kth', bandwidth: 10_000 },
    { site1: 'be-gent1', site2: 'se-kth', bandwidth: 10_000 },
  ];
  const known = { ...opened(), network: { ...NETWORK, links } };
  const sitesOf = (state: State) => shownRoute(state)?.sites;
  const far: Draft = { ...DRAFT, site2: 'gr-uth' };

  test('is what the draft names, one site or two, and stays when the form is empty', () => {
    const one = change(known, typed({ ...DRAFT, site2: '' }));
    expect([one.selected, sitesOf(one)]).toEqual([{ site1: 'be-gent1', site2: '' }, undefined]);
    const two = change(one, typed(far));
    expect(sitesOf(two)).toEqual(['be-gent1', 'se-kth', 'gr-uth']);
    expect(sitesOf(change(two, { type: 'reset' }))).toEqual(['be-gent1', 'se-kth', 'gr-uth']);
  });

  test('is on the route that the service answered, or that a reservation has', () => {
    const state = change(known, typed(far));
    const { wish } = readForm(state);
    if (!wish) throw new Error('the draft can not be sent');
    const route = { sites: ['be-gent1', 'pl-poznan1', 'gr-uth'], bandwidth: 1000 };
    const answered = change(state, {
      type: 'answered',
      answer: { kind: 'fits', wish, route, free: undefined },
    });
    expect(sitesOf(answered)).toEqual(route.sites);
    expect(shownRows(answered)).toEqual([4, 0, 1]);
    expect(markOf(answered)?.rows).toEqual([4, 0, 1]);
    expect(sitesOf(change(answered, typed({ ...far, bandwidth: '2G' })))).toContain('se-kth');
    const own = { ...OWN, id: 'con_x', site2: 'gr-uth', via: ['pl-poznan1'] };
    const changed = after(known, { type: 'listed', live: [own] }, typed({ ...far, id: 'con_x' }));
    expect(sitesOf(changed)).toEqual(route.sites);
  });

  test('has a row of its own where no link connects the two', () => {
    expect(shownRows(change(known, typed(DRAFT)))).toEqual([0]);
    const links = known.network?.links ?? [];
    expect(pairOf(links, DRAFT)).toBeUndefined();
    expect(pairOf(links, { ...far, site2: '' })).toBeUndefined();
    expect(pairOf(links, far)).toEqual({ site1: 'be-gent1', site2: 'gr-uth', bandwidth: 10_000 });
  });
});

test('a reservation is looked at until something else is', () => {
  const marked = after(opened(), { type: 'learnt', facts: { marked: 'con_x' } });
  const selected = { site1: 'be-gent1', site2: '' };
  const kept = after(marked, { type: 'tick' }, typed({ ...DRAFT, id: 'con_x' }));
  expect(kept.marked).toBe('con_x');
  expect(change(marked, typed(DRAFT)).marked).toBeUndefined();
  expect(change(marked, { type: 'learnt', facts: { selected } }).marked).toBeUndefined();
  const shown = change(marked, { type: 'learnt', facts: { selected, marked: 'con_y' } });
  expect(shown.marked).toBe('con_y');
});

describe('the draft', () => {
  test('is the mark, for who may book it', () => {
    const state = after(opened(), typed(DRAFT));
    expect(markOf(state)).toEqual({ rows: [0], ...readForm(state).period });
    const viewer = experiment('exp_demo', { role: 'viewer' });
    expect(markOf({ ...state, chosen: viewer })).toBeUndefined();
  });

  test('takes away what was said of another one, but not that the login has ended', () => {
    const said: Action = { type: 'said', notice: { text: 'x', at: 'form', isDone: true } };
    expect(after(opened(), said, typed(DRAFT)).notice).toBeUndefined();
    expect(after(opened(), { type: 'login-ended' }, typed(DRAFT)).notice?.text).toContain('has ended');
  });

  test('of a new reservation stands aside while one is changed', () => {
    const state = after(opened(), typed(DRAFT), typed({ ...DRAFT, id: 'con_x' }));
    expect(change(state, { type: 'reset' }).draft).toBe(DRAFT);
    expect(change(state, { type: 'deleted', id: 'con_x' }).draft).toBe(DRAFT);
    expect(change(state, CHOSEN).draft).toBe(DRAFT);
  });
});

describe('an answer is about what the draft means', () => {
  const times = (start: string, end: string): Draft => ({ ...DRAFT, start, ending: end });
  /** A draft that fits. */
  function fitting(draft: Draft, zone = 'Europe/Brussels'): State {
    const state = after({ ...opened(), zone }, typed(draft));
    const { wish } = readForm(state);
    if (!wish) throw new Error('the draft can not be sent');
    const route = { sites: ['be-gent1', 'pl-poznan1'], bandwidth: 1000 };
    return change(state, { type: 'answered', answer: { kind: 'fits', wish, route, free: undefined } });
  }

  test('in another zone the times that were typed mean the same instants, here and in the draft that stands aside', () => {
    const state = fitting(times('tomorrow 09:00', 'sat 5 dec 2026'));
    const { request } = readForm(state).wish ?? {};
    const zoned = change(state, { type: 'zoned', zone: 'America/Los_Angeles' });
    expect([readForm(zoned).wish?.request, zoned.answer]).toEqual([request, state.answer]);
    expect(request).toMatchObject({ start: Date.parse('2026-11-23T08:00:00Z') });
    const changing = after(state, typed({ ...DRAFT, id: 'con_x' }), { type: 'zoned', zone: 'UTC' });
    expect(readForm(change(changing, { type: 'reset' })).wish?.request).toEqual(request);
    const unread = after(opened(), typed(times('soon', '')), { type: 'zoned', zone: 'Asia/Tokyo' });
    expect(unread.draft).toEqual(times('soon', ''));
  });

  test('in another zone an open request is still that of its draft', () => {
    const state = unanswered(times('tomorrow 09:00', 'tomorrow 10:00'));
    const zoned = change(state, { type: 'zoned', zone: 'Asia/Tokyo' });
    expect(zoned.sent).toMatchObject({ key: 'k', wish: state.sent.wish, draft: zoned.draft });
  });

  test('it outlasts time that passes, and is moved once a typed time means another day, or for another experiment', () => {
    const later = (state: State, hours: number): State =>
      change({ ...state, now: state.now + hours * HOUR }, { type: 'tick' });
    expect(later(fitting(DRAFT), 1).answer.kind).toBe('fits');
    expect(later(fitting(times('+2h', '+3h')), 1).answer.kind).toBe('fits');
    const tomorrow = fitting(times('tomorrow 09:00', '16:00'));
    expect([11, 14].map((hours) => later(tomorrow, hours).answer.kind)).toEqual(['fits', 'moved']);
    expect(change(tomorrow, CHOSEN).answer.kind).toBe('moved');
  });
});

test('a reservation that ended since the last news is among those that ended', () => {
  const state = { ...opened(), ended: [], live: [OWN], now: OWN.end };
  expect(change(state, { type: 'listed', live: [] })).toMatchObject({ live: [], ended: [OWN] });
});
