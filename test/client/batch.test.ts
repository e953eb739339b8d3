import { http } from 'msw';
import { describe, expect, test } from 'vitest';
import type { ChangeOptions } from '../../src/client/changes.ts';
import { MAX_ITEMS, type Reservation } from '../../src/contract/reservation.ts';
import { asRequest, type ChangeItem } from '../../src/contract/reservation-request.ts';
import { failureOf } from '../fixtures/failures.ts';
import { IDS, RESERVATION } from '../fixtures/tokens.ts';
import { type Answer, BASE, clientOf, described, signed } from './answers.ts';
import { html, json, jwt } from './replies.ts';

const BATCH = /connectivity:batch/;
const HOUR = 3_600_000;
const period = { start: Date.parse(RESERVATION.start_date), end: Date.parse(RESERVATION.end_date) };
const { site1, site2, bandwidth } = RESERVATION;
const OTHER_ID = `${IDS.reservation}x`;
const SECOND: Reservation = { ...RESERVATION, id: OTHER_ID, bandwidth: 5 };

const REQUEST = { site1, site2, bandwidth, ...period };
const CREATE = { action: 'create', request: REQUEST } as const;
const UPDATE = { action: 'update', id: OTHER_ID, request: asRequest(SECOND) } as const;
const DELETE = { action: 'delete', id: IDS.reservation } as const;
const ITEMS: ChangeItem[] = [CREATE, UPDATE, DELETE];

const proven = (connectivity: Reservation) => ({ connectivity, token: signed(connectivity) });
const GONE = { connectivity: null, token: null };

function service(answer: Answer, spec: Answer = described) {
  const { client, sent } = clientOf([
    http.get(`${BASE}/api-spec`, spec),
    http.post(BATCH, answer),
    http.get(/connectivity\//, () => jwt(signed(SECOND))),
  ]);
  const run = (options: ChangeOptions = {}, items = ITEMS) => client.change(items, options);
  return { run, sent };
}
const answering = (...items: unknown[]) => service(() => json({ items }));

describe('a batch', () => {
  test('an answer without a token is read again for one', async () => {
    const { run, sent } = answering(proven(RESERVATION), { connectivity: SECOND, token: null }, GONE);
    expect((await run())[1]).toMatchObject({ verified: true });
    expect(sent.map(({ method }) => method)).toEqual(['GET', 'POST', 'GET']);
  });

  test('a dry run sends no key, and proves nothing', async () => {
    const plain = (connectivity: Reservation) => ({ connectivity, token: null });
    const { run, sent } = answering(plain(RESERVATION), plain(SECOND), GONE);
    const results = await run({ dryRun: true, idempotencyKey: 'k' });
    expect(results).toMatchObject([{ verified: false, token: null }, { verified: false }, null]);
    expect(sent[1]?.url).toMatch(/\?dry_run=true$/);
    expect(sent[1]?.headers.has('idempotency-key')).toBe(false);
    const lie = await failureOf(() => answering(plain(SECOND), plain(SECOND), GONE).run({ dryRun: true }));
    expect(lie).toMatchObject({ code: 'unverified' });
    expect([lie.facts.maybeDone, lie.facts.reservations]).toEqual([undefined, undefined]);
  });
});

describe('answers that do not verify: the failure has the ids of all, and they may be there', () => {
  const shifted = (by: number, more: Partial<Reservation> = {}): Reservation => ({
    ...RESERVATION,
    start_date: new Date(period.start + by).toISOString(),
    end_date: new Date(period.end + by).toISOString(),
    ...more,
  });
  test.each<[string, unknown[]]>([
    ['another bandwidth', [proven({ ...RESERVATION, bandwidth: 1 }), proven(SECOND), GONE]],
    ['another id for an update', [proven(RESERVATION), proven({ ...SECOND, id: `${OTHER_ID}y` }), GONE]],
    [
      'a token of another reservation',
      [{ ...proven(RESERVATION), token: signed(SECOND) }, proven(SECOND), GONE],
    ],
    ['a broken token', [{ ...proven(RESERVATION), token: `${signed(RESERVATION)}x` }, proven(SECOND), GONE]],
    ['later than asked', [proven(shifted(HOUR)), proven(SECOND), GONE]],
  ])('%s', async (_, items) => {
    const failure = await failureOf(() => answering(...items).run());
    expect(failure).toMatchObject({ code: 'unverified', facts: { maybeDone: true, retryable: false } });
    const ids = items.map((item) => (item as { connectivity: Reservation | null }).connectivity?.id ?? null);
    expect(failure.facts.reservations).toEqual(ids);
  });

  test.each<[string, Answer, unknown]>([
    [
      'one item too few',
      () => json({ items: [proven(RESERVATION), proven(SECOND)] }),
      [RESERVATION.id, OTHER_ID, null],
    ],
    [
      'a create without an answer',
      () => json({ items: [GONE, proven(SECOND), GONE] }),
      [null, OTHER_ID, null],
    ],
    ['no items', () => json({}), undefined],
    ['a page', () => html(), undefined],
  ])('%s is reply_invalid', async (_, answer, ids) => {
    const failure = await failureOf(() => service(answer).run());
    expect(failure).toMatchObject({ code: 'reply_invalid', facts: { maybeDone: true } });
    expect(failure.facts.reservations).toEqual(ids);
  });

  test('an answer that can’t be read whole: the ids in it are kept', async () => {
    const { bandwidth: _none, ...broken } = RESERVATION;
    const failure = await failureOf(() =>
      answering({ connectivity: broken, token: null }, proven(SECOND), GONE).run(),
    );
    expect(failure.facts.reservations).toEqual([RESERVATION.id, OTHER_ID, null]);
  });

  const both: ChangeItem[] = [CREATE, { ...CREATE, request: { ...REQUEST, bandwidth: 5 } }];
  test.each<[string, number, number, boolean]>([
    ['by one offset', HOUR, HOUR, true],
    ['not at all', 0, 0, true],
    ['by two offsets', HOUR, 2 * HOUR, false],
    ['to an earlier time', -HOUR, -HOUR, false],
  ])('earliest, moved %s', async (_, first, second, isSound) => {
    const { run } = answering(
      proven(shifted(first)),
      proven(shifted(second, { id: OTHER_ID, bandwidth: 5 })),
    );
    const ended = await run({ earliest: true }, both).then(
      () => true,
      (error: { code: string }) => error.code,
    );
    expect(ended).toBe(isSound || 'unverified');
  });
});

test('a refusal names the items', async () => {
  const detail = [
    { loc: ['Bandwidth'], msg: 'Too much.', type: 'NotValid', item: 2 },
    { loc: [], msg: 'Gone.', type: 'NotValid', item: 'x' },
  ];
  const { run } = service(() => json({ code: 'bandwidth_unavailable', detail }, 422));
  const { code, facts } = await failureOf(() => run());
  expect(code).toBe('bandwidth_unavailable');
  expect(facts.details?.map(({ item }) => item)).toEqual([2, undefined]);
  expect(facts.maybeDone).toBeUndefined();
});

describe('nothing is sent', () => {
  test('to a service without batches', async () => {
    const { run, sent } = service(
      () => json({}),
      () => json({ paths: { '/apis/v1alpha1/connectivity': { post: {} } } }),
    );
    expect((await failureOf(() => run())).code).toBe('not_supported');
    expect(sent.map(({ method }) => method)).toEqual(['GET']);
  });

  test.each<[string, ChangeItem[]]>([
    ['no items', []],
    ['too many', Array.from({ length: MAX_ITEMS + 1 }, () => DELETE)],
    ['a search', [{ action: 'create', request: { ...REQUEST, duration: HOUR } }, DELETE]],
    ['a volume', [{ action: 'create', request: { ...REQUEST, volume: 5 } }, DELETE]],
  ])('for %s', async (_, items) => {
    const { run, sent } = answering();
    expect((await failureOf(() => run({}, items))).code).toBe('usage');
    expect(sent).toEqual([]);
  });
});
