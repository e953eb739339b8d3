import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { getListFromStatusListJWT } from '@sd-jwt/jwt-status-list';
import { createLocalJWKSet, decodeJwt, jwtVerify } from 'jose';
import * as v from 'valibot';
import { expect, test, vi } from 'vitest';
import { STATUSES_IN_LIST, StatusClaim } from '../../src/contract/claims.ts';
import { KEY_SET_PATH } from '../../src/contract/routes.ts';
import { backUp } from '../../src/store/sqlite/backup.ts';
import { readKeySet } from '../../src/tokens/key-set.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import {
  booking,
  type Caller,
  CONNECTIVITY,
  hours,
  NOW,
  openService,
  openWithLead,
  outcome,
  SECOND,
  SIGNED,
  type TestService,
} from '../fixtures/service.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

/** Where the status of a token stands. */
function placeOf(token: unknown) {
  return v.parse(StatusClaim, decodeJwt(String(token))['status']).status_list;
}

/** The status of a token as others read it: `jose` verifies the list, `@sd-jwt/jwt-status-list` reads it. */
async function statusOf(service: TestService, token: unknown): Promise<number> {
  // What was looked at a second ago is looked at again.
  service.moveTo(service.now() - NOW + SECOND);
  const { idx, uri } = placeOf(token);
  const list = await service.send('GET', uri);
  expect([list.status, list.headers.get('content-type')]).toEqual([200, 'application/statuslist+jwt']);
  const keys = createLocalJWKSet(readKeySet((await service.send('GET', KEY_SET_PATH)).body));
  const currentDate = new Date(service.now());
  const { payload } = await jwtVerify(list.text, keys, { typ: 'statuslist+jwt', subject: uri, currentDate });
  expect(payload).toMatchObject({ ttl: 60, exp: Number(payload.iat) + 3600 });
  return getListFromStatusListJWT(list.text).getStatus(idx);
}

const idOf = (token: unknown): string => String(decodeJwt(String(token)).sub);

async function book(lead: Caller, from = 1, sites: Record<string, string> = {}): Promise<string> {
  const reply = await lead.book(booking({ ...hours(from, from + 1), ...sites }), '', SIGNED);
  expect(reply.status).toBe(201);
  return reply.text;
}

test('a token is valid until its reservation is changed or deleted, as others read the list', async () => {
  const { service, lead } = await openWithLead();
  const [first, second] = [await book(lead), await book(lead, 3)];
  expect([placeOf(first).idx, placeOf(second).idx]).toEqual([1, 2]);
  expect(placeOf(first).uri).toBe(`${service.base}/status/be-gent1~pl-poznan1/0`);
  expect(await statusOf(service, first)).toBe(0);

  const updated = await lead.update(idOf(first), { bandwidth: '5' }, '', SIGNED);
  expect(await statusOf(service, first)).toBe(1);
  expect(await statusOf(service, updated.text)).toBe(0);
  // What is read later is the same place.
  expect(placeOf((await lead.read(idOf(first), SIGNED)).text)).toEqual(placeOf(updated.text));

  expect((await lead.delete(idOf(second))).status).toBe(204);
  expect(await statusOf(service, second)).toBe(1);
  expect(await statusOf(service, updated.text)).toBe(0);
});

test('over a route, in a batch and in a replay a token has the place of its own row', async () => {
  const { service, lead } = await openWithLead();
  const route = await book(lead, 1, { site1: 'be-gent1', site2: 'gr-uth' });
  const items = [
    { action: 'create', ...booking(hours(5, 6)) },
    { action: 'update', id: idOf(route), bandwidth: '7' },
    { action: 'create', ...booking(hours(7, 8)) },
  ];
  const headers = { 'idempotency-key': 'once' };
  const batch = () => lead.send('POST', `${CONNECTIVITY}:batch`, { body: { items, tokens: [] }, headers });
  const Answered = v.object({ items: v.array(v.object({ token: v.string() })) });
  const [made, again] = [await batch(), await batch()].map((reply) =>
    v.parse(Answered, reply.body).items.map(({ token }) => token),
  );
  expect(again?.map(placeOf)).toEqual(made?.map(placeOf));
  for (const token of made ?? []) expect(await statusOf(service, token)).toBe(0);
  expect(await statusOf(service, route)).toBe(1);
  for (const token of made ?? []) await lead.delete(idOf(token));
  for (const token of made ?? []) expect(await statusOf(service, token)).toBe(1);
});

test('a token is not dead in a list from before it, and a list is the same until its link changes', async () => {
  const { service, lead } = await openWithLead();
  const { uri } = placeOf(await book(lead));
  const before = await service.send('GET', uri);
  expect(before.headers.get('cache-control')).toBe('public, max-age=60');
  expect(before.headers.get('access-control-allow-origin')).toBe('*');
  const { idx } = placeOf(await book(lead, 3));
  expect(getListFromStatusListJWT(before.text).getStatus(idx)).toBe(0);

  service.moveTo(SECOND);
  const etag = (await service.send('GET', uri)).headers.get('etag') ?? '';
  service.moveTo(20 * SECOND);
  const conditional = { headers: { 'if-none-match': etag } };
  expect((await service.send('GET', uri, conditional)).status).toBe(304);
  await lead.book(booking(hours(5, 6)));
  service.moveTo(21 * SECOND);
  expect((await service.send('GET', uri, conditional)).status).toBe(200);
});

test.each(['/status/be-gent1~pl-poznan1/1', '/status/be-gent1~pl-poznan1/00', '/status/a~b/0'])(
  '%s is no list: 404',
  async (path) => {
    const service = await openService();
    expect(outcome(await service.send('GET', path))).toBe('404 not_found');
  },
);

test('so many made-up links are looked for in a second, and no more (THREATS.md 120)', async () => {
  const service = await openService();
  const answers = new Set<string>();
  for (let index = 0; index < 100; index += 1) {
    answers.add(outcome(await service.send('GET', `/status/a~b${index}/0`)));
  }
  expect([...answers]).toEqual(['404 not_found', '429 too_many_requests']);
  expect((await service.send('GET', '/status/be-gent1~pl-poznan1/0')).status).toBe(200);
});

test('a restored database gives no version out again: what it lost stays dead (THREATS.md 121)', async () => {
  const { service, lead } = await openWithLead();
  const kept = await book(lead);
  const copy = join(temporaryFolder(), 'copy.sqlite');
  backUp(service.file, copy);
  const lost = await book(lead, 3);
  // The same copy is restored twice: the second time, what was booked the first time is lost.
  const lostToo: string[] = [];
  for (const name of ['one', 'two']) {
    // A list is numbered by the second in which its history began.
    const second = Math.floor(Date.now() / 1000);
    if (name === 'two') await vi.waitUntil(() => Date.now() / 1000 >= second + 1, PATIENCE);
    const file = join(temporaryFolder(), name);
    copyFileSync(copy, file);
    const { service: restored, lead: leadThere } = await openWithLead({ database: file, random: undefined });
    const others = [];
    for (let from = 11; from < 14; from += 1) others.push(await book(leadThere, from));
    for (const token of [lost, ...lostToo]) expect(await statusOf(restored, token)).toBe(1);
    for (const token of [kept, ...others]) expect(await statusOf(restored, token)).toBe(0);
    expect(placeOf(others[0]).idx % STATUSES_IN_LIST).toBe(1);
    lostToo.push(...others);
  }
});
