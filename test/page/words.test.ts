import { describe, expect, test } from 'vitest';
import type { Alternative, Limit } from '../../src/contract/problems.ts';
import type { RefusedReply } from '../../src/page/service.ts';
import {
  awayText,
  clockText,
  extensionText,
  fitText,
  forgetText,
  foundIn,
  lengthText,
  offerText,
  openText,
  readWall,
  refusalText,
  roleText,
  routeNote,
  tagsText,
  titleOf,
  wallText,
} from '../../src/page/words.ts';
import { createClock } from '../../src/words/civil-time.ts';

import { RESERVATION } from '../fixtures/tokens.ts';

const HOUR = 3_600_000;
const NOW = Date.parse('2026-11-22T10:00:00Z');
const clock = createClock('Europe/Brussels');
const CALENDAR = { clock, now: NOW };
const PERIOD = { start: NOW, end: NOW + 2 * HOUR };
const WISH = {
  request: { site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 9000, ...PERIOD },
  ...{ bandwidth: 9000, period: PERIOD, at: NOW },
};
const REFUSED: RefusedReply = { status: 422, code: '', details: [], limits: [], free: [], alternatives: [] };
const LIMIT: Limit = {
  ...{ limit: 'bandwidth', site: null, layer: null, capacity: 10_000, free: 6000 },
  ...{ start_date: '2026-11-22T10:30:00.000Z', end_date: '2026-11-22T11:00:00.000Z' },
};
const OFFER: Alternative = {
  ...{ kind: 'longest', start_now: false, bandwidth: 9000 },
  ...{ start_date: '2026-11-22T10:00:00.000Z', end_date: '2026-11-22T11:30:00.000Z' },
};

test('of an extension that is refused it is said until when there can be one', () => {
  const own = { id: 'con_x', name: 'training', bandwidth: 9000, end: NOW + HOUR };
  expect(extensionText(own, HOUR, { alternatives: [OFFER] }, CALENDAR)).toBe(
    'training can’t last 1 h longer. It can last until Sun 22 Nov 12:30.',
  );
  for (const alternatives of [[], [{ ...OFFER, end_date: '2026-11-22T11:00:00.000Z' }]]) {
    expect(extensionText(own, HOUR, { alternatives }, CALENDAR)).toBe(
      'training can’t last 1 h longer. With 9 Gbps it can’t last longer at all.',
    );
  }
});

test('a clock is said to be wrong from half a minute on, and a length that differs by so much', () => {
  expect([30_000, -30_000].map(clockText)).toEqual(['', '']);
  const rest = 'the server’s. Times here follow the server.';
  expect(clockText(HOUR)).toBe(`This computer’s clock is 1 h ahead of ${rest}`);
  expect(clockText(-60_000)).toBe(`This computer’s clock is 1 min behind ${rest}`);
  expect(lengthText(PERIOD, { start: NOW + 6000, end: PERIOD.end })).toBe('');
  expect(lengthText(PERIOD, { start: NOW - HOUR, end: PERIOD.end })).toBe(
    'It lasts 3 h, not the 2 h that were asked for. ',
  );
});

test('of a request without an answer it is said what it was, and what the list has of it', () => {
  const named = { ...WISH, request: { ...WISH.request, name: 'night' } };
  const what = 'be-gent1 – pl-poznan1, 9 Gbps, Sun 22 Nov 11:00 to 13:00';
  expect(openText({ wish: named, at: NOW }, undefined, CALENDAR)).toBe(
    `No answer came to this request to book: night, ${what}, sent Sun 22 Nov 11:00. It may be booked or not. Sent again, it is never booked twice.`,
  );
  expect(openText({ wish: { ...WISH, id: 'con_x' }, at: NOW }, 'demo', CALENDAR)).toBe(
    `No answer came to this request to change: ${what} in demo, sent Sun 22 Nov 11:00. It may be changed or not. Sent again, it is never changed twice.`,
  );
  expect(forgetText(WISH, undefined, CALENDAR)).toBe(
    `The list has nothing like it now: ${what}. What is still under way may come later.`,
  );
  const own = { ...PERIOD, ...WISH.request, id: 'con_123456', name: 'night', bandwidth: 9000 };
  expect(forgetText(WISH, own, CALENDAR)).toBe(`The list has it, or one like it: night, ${what}.`);
  expect(forgetText(WISH, 'No.', CALENDAR)).toBe('The list can’t be seen: No.');
});

test('a role is said in words, in whatever letters it comes', () => {
  expect(roleText('viewer')).toBe('viewer: may look, not book');
  expect(roleText('Leader')).toMatch(/^lead: may book/);
  expect(roleText('owner')).toBe('owner: this page does not know what this role may do');
});

describe('why something was refused', () => {
  const detail = (code: string, facts?: object) => ({
    loc: [],
    msg: 'No.',
    type: 'NotValid',
    code,
    facts: { ...facts },
  });

  test('in local times', () => {
    const code = 'bandwidth_unavailable';
    const facts = { ...REFUSED, code, details: [detail(code, { bandwidth: 9000 })], limits: [LIMIT] };
    expect(refusalText(facts, CALENDAR)).toBe(
      '6 of the 9 Gbps asked for are free from Sun 22 Nov 11:30 to 12:00.',
    );
  });

  test.each([
    ['token_missing', 'Your login has ended. Log in again; what you typed is kept.'],
    ['role_not_allowed', 'No. Ask a lead of the experiment, or choose another experiment.'],
    ['idempotency_key_reused', 'No.'],
    [
      'search_given_up',
      'The search was given up, since it took too long. More may fit than it found. Ask for a later time, or for a shorter one.',
    ],
  ])('%s, with the next step', (code, text) => {
    expect(refusalText({ ...REFUSED, code, details: [detail(code), detail(code)] }, CALENDAR)).toBe(text);
  });
});

test('since when the server is away, with the day where it is another', () => {
  expect(awayText(CALENDAR.now - 60_000, CALENDAR)).toMatch(/ since \d\d:\d\d; trying again every 5 s\.$/);
  expect(awayText(CALENDAR.now - 2 * 86_400_000, CALENDAR)).toMatch(/ since \w+ \d+ \w+ \d\d:\d\d; /);
});

test('that it fits, with what is free where that is known', () => {
  const free = { ...PERIOD, free: 9500, freeMax: 10_000, vlans: 996 };
  const when = 'Sun 22 Nov 11:00 to 13:00';
  const route = { sites: ['be-gent1', 'pl-poznan1'], bandwidth: 10_000 };
  const fits = { kind: 'fits', wish: WISH, route, free } as const;
  expect(fitText(fits, CALENDAR)).toBe(`It fits, ${when}: 9.5 of 10 Gbps and 996 VLANs are free.`);
  const over = { sites: ['be-gent1', 'pl-poznan1', 'hu-sztaki', 'gr-uth'], bandwidth: 1000 };
  expect(fitText({ ...fits, route: over }, CALENDAR)).toContain(`${when} over pl-poznan1 and hu-sztaki: `);
  expect(fitText({ ...fits, free: undefined }, CALENDAR)).toBe(`It fits: ${when}.`);
  expect(fitText({ ...fits, isEarliest: true }, CALENDAR)).toMatch(/^This is the earliest\. It fits, /);
  const now = { ...WISH, request: { ...WISH.request, start: 'now' } } as const;
  expect(fitText({ ...fits, wish: now, isEarliest: true }, CALENDAR)).toMatch(
    /^Now is the earliest\. It fits, /,
  );
  expect([undefined, route, over].map(routeNote)).toEqual([
    ...['', 'A link of 10 Gbps.', '3 hops over pl-poznan1 and hu-sztaki, 1 Gbps at most.'],
  ]);
});

test('an alternative says what differs, in local times', () => {
  const text = (offer: Partial<Alternative>) => offerText({ ...OFFER, ...offer }, WISH, CALENDAR);
  const start_date = '2026-11-22T10:30:00.000Z';
  expect(text({ kind: 'earliest', start_date })).toBe('9 Gbps from Sun 22 Nov 11:30 for 1 h');
  expect(text({ kind: 'earliest', start_now: true, start_date: null })).toBe(
    '9 Gbps from now for 1 h 30 min',
  );
});

test('reservations: what they are called, and their tags as they are copied', () => {
  expect([titleOf({ id: 'con_x_0123456789', name: 'mine' }), titleOf({ id: 'con_x_0123456789' })]).toEqual([
    ...['mine', '…456789'],
  ]);
  expect(tagsText({ ...RESERVATION, ...PERIOD })).toBe(
    'be-gent1: S-tag 100, C-tag 101\npl-poznan1: S-tag 200, C-tag 201',
  );
});

test('reservations are found by the words of their name, id, sites and state', () => {
  const own = (id: string, name: string | undefined, start: number) => ({
    ...{ ...RESERVATION, id, name, start: NOW + start, end: NOW + start + HOUR },
  });
  const list = [own('con_a', 'night-run', 0), own('con_b', undefined, HOUR)];
  const ids = (words: string) => foundIn(list, words, NOW).map(({ id }) => id);
  expect([ids(''), ids('NIGHT gent1 active'), ids('con_b'), ids('scheduled night'), ids('poznan ')]).toEqual([
    ...[['con_a', 'con_b'], ['con_a'], ['con_b'], [], ['con_a', 'con_b']],
  ]);
});

test('a field for date and time holds the zone’s own time', () => {
  expect(wallText(NOW + 12_345, clock)).toBe('2026-11-22T11:00');
  expect(readWall('2026-11-22T11:00', clock)).toBe(NOW);
  expect(readWall('', clock)).toBe(null);
});
