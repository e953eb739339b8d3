import { describe, expect, test } from 'vitest';
import type { ReservationRequest } from '../../src/contract/reservation-request.ts';
import { createService, Refused, Unanswered } from '../../src/page/service.ts';
import { RESERVATION } from '../fixtures/tokens.ts';

interface Request {
  path: string;
  method: string;
  headers: Headers;
  body: unknown;
}
type Answer = Response | Error;

/** A service whose server gives these answers, one after the other. */
function asking(...answers: readonly Answer[]) {
  const requests: Request[] = [];
  const secret: { kept: string | null } = { kept: null };
  const service = createService({
    base: new URL('https://conn.example.org/lab/ui/'),
    secret: () => secret.kept,
    async fetch(url, { method = 'GET', headers, body, signal }) {
      const path = decodeURIComponent(`${url.pathname}${url.search}`);
      requests.push({ path, method, headers: new Headers(headers), body });
      signal?.throwIfAborted();
      const answer = answers[requests.length - 1];
      if (!(answer instanceof Response)) throw answer ?? new Error('not asked for');
      return answer;
    },
  });
  return { service, requests, secret };
}

const problem = (status: number, code: string): Response =>
  Response.json({ code, detail: [{ loc: [], msg: `It is ${code}.`, type: 'NotValid' }] }, { status });
const list = (nextCursor: string | null = null): Response =>
  Response.json({ items: [RESERVATION], nextCursor }, { headers: { etag: '"1"' } });
const REQUEST: ReservationRequest = {
  ...{ site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 1000, start: 'now', end: Date.UTC(2026, 11, 1) },
};
const ASKED = { request: REQUEST, key: 'key-1' };

test('an unchanged list costs nothing, and is the same as before', async () => {
  const unchanged = () => new Response(null, { status: 304, headers: { etag: '"1"' } });
  const { service, requests } = asking(list(), list(), unchanged(), unchanged());
  const before = await service.live('exp_demo');
  const after = await service.live('exp_demo');
  expect(requests.map(({ headers }) => headers.get('if-none-match'))).toEqual([null, null, '"1"', '"1"']);
  expect(requests[0]?.path).toBe('/lab/ui/api/connectivity?state=active&limit=1000');
  expect(requests[0]?.headers.get('slices-experiment')).toBe('exp_demo');
  // In both lists, since it started meanwhile.
  expect(before.map(({ id }) => id)).toEqual([RESERVATION.id]);
  expect(after[0]).toBe(before[0]);
  expect(before[0]).toMatchObject({ ...RESERVATION, start: Date.parse(RESERVATION.start_date) });
});

test('a list is read to its end', async () => {
  const { service, requests } = asking(list('con_x'), list());
  await service.ended('exp_demo');
  expect(requests.map(({ path }) => path.split('?')[1])).toEqual([
    ...['state=ended&limit=1000', 'state=ended&limit=1000&cursor=con_x'],
  ]);
});

test('a dry run carries no key; a request does, and the header that only this page can send', async () => {
  const reply = () => Response.json(RESERVATION);
  const { service, requests } = asking(reply(), reply(), reply(), new Response(null, { status: 204 }));
  await service.dryRun('exp_demo', ASKED, new AbortController().signal);
  await service.send('exp_demo', ASKED);
  await service.send('exp_demo', { id: 'con_x', request: { ...REQUEST, start: 0 } });
  await service.delete('exp_demo', 'con_x');
  expect(requests.map(({ method, path }) => `${method} ${path.slice('/lab/ui/api'.length)}`)).toEqual([
    ...['POST /connectivity?start_now=true&dry_run=true', 'POST /connectivity?start_now=true'],
    ...['PUT /connectivity/con_x', 'DELETE /connectivity/con_x'],
  ]);
  expect(requests.map(({ headers }) => headers.get('idempotency-key')).slice(0, 2)).toEqual([null, 'key-1']);
  expect(requests.every(({ headers }) => headers.get('x-slices-conn') === 'ui')).toBe(true);
});

test('a dry run that is refused says why: its answer is 200, so that browsers write no error', async () => {
  const refused = await problem(422, 'bandwidth_unavailable').json();
  const { service } = asking(Response.json({ ok: false, problem: refused }));
  await expect(service.dryRun('exp_demo', ASKED, new AbortController().signal)).rejects.toMatchObject({
    name: 'Refused',
    facts: { status: 422, code: 'bandwidth_unavailable', details: [{ msg: 'It is bandwidth_unavailable.' }] },
  });
});

test('the use of links is asked for by the names of their sites; without links, of all', async () => {
  const reply = () => Response.json({ items: [], nextCursor: null });
  const { service, requests } = asking(reply(), reply());
  const window = { start: Date.UTC(2026, 11, 1), end: Date.UTC(2026, 11, 2) };
  const links = [
    { site1: 'be-gent1', site2: 'pl-poznan1' },
    { site1: 'fr-lille', site2: 'be-gent1' },
  ];
  await service.use(window, 24);
  await service.use(window, 24, undefined, links);
  const [all, some] = requests.map(({ path }) => path);
  expect(some).toBe(`${all}&link=be-gent1,pl-poznan1&link=fr-lille,be-gent1`);
});

test('a login is begun and ended by this page alone; every request carries the half of the secret that is kept then', async () => {
  const begun = { address: 'https://login.example.org/?state=s', begun: 'time.random' };
  const { service, requests, secret } = asking(
    ...[
      Response.json(begun),
      Response.json({ session: 'half' }),
      list(),
      new Response(null, { status: 204 }),
    ],
  );
  expect(await service.beginLogin()).toEqual(begun);
  secret.kept = await service.endLogin('?code=c&state=s', begun.begun);
  await service.ended('exp_demo');
  await service.logOut();
  expect(requests.map(({ method, path }) => `${method} ${path.slice('/lab/ui'.length)}`)).toEqual([
    ...['POST /login', 'POST /session?code=c&state=s'],
    ...['GET /api/connectivity?state=ended&limit=1000', 'POST /logout'],
  ]);
  expect(requests.map(({ headers }) => headers.get('x-slices-conn'))).toEqual(['ui', 'ui', null, 'ui']);
  expect(requests.map(({ headers }) => headers.get('slices-login'))).toEqual([
    null,
    'time.random',
    null,
    null,
  ]);
  expect(requests.map(({ headers }) => headers.get('slices-session'))).toEqual([null, null, 'half', 'half']);
});

describe('what is not a success', () => {
  test('a refusal says why', async () => {
    const { service } = asking(problem(422, 'date_past'));
    const error = await service.token('exp_demo', 'con_x').catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(Refused);
    expect(error).toMatchObject({
      isLoggedOut: false,
      facts: { code: 'date_past', details: [{ msg: 'It is date_past.' }] },
    });
    const { service: other } = asking(problem(403, 'token_missing'));
    await expect(other.session()).rejects.toMatchObject({ isLoggedOut: true });
  });

  test.each<[string, Answer]>([
    ['no connection', new TypeError('fetch failed')],
    ['a proxy whose server is away', new Response('<h1>Bad gateway</h1>', { status: 502 })],
    ['a database that may have committed', problem(503, 'outcome_unknown')],
    ['a bug', problem(500, 'internal')],
  ])('%s is no answer', async (_, answer) => {
    await expect(asking(answer).service.send('exp_demo', ASKED)).rejects.toBeInstanceOf(Unanswered);
  });

  test('a server that is busy has done nothing', async () => {
    await expect(asking(problem(503, 'unavailable')).service.send('exp_demo', ASKED)).rejects.toBeInstanceOf(
      Refused,
    );
  });

  test('what was given up is neither', async () => {
    const { service } = asking();
    await expect(service.live('exp_demo', AbortSignal.abort())).rejects.toMatchObject({ name: 'AbortError' });
  });
});
