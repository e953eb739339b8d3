import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { CommitUnknownError, StoreUnavailableError } from '../../src/allocator/store.ts';
import { createReferenceServer } from '../../src/reference-server.ts';
import { answerReservation, signReservation } from '../../src/server/connectivity/reservation-reply.ts';
import { createKeyRing, type KeyStore } from '../../src/server/keys/key-ring.ts';
import { createServiceIssuer } from '../../src/server/keys/service-issuer.ts';
import { jsonLog, noLog } from '../../src/server/log.ts';
import { problemOf, problemReply, refusal } from '../../src/server/problem-error.ts';
import { openStores } from '../../src/store/stores.ts';
import { atEndOfFile } from '../fixtures/end-of-file.ts';
import { addressOf, booking, DAY, NOW, openService, SIGNED } from '../fixtures/service.ts';
import { oneHop } from '../store/one-link.ts';

/** A clear screen as one C1 character, text turned around, an invisible character, and a tag beyond 16 bits. */
const HOSTILE = 'a\u009b2J\u202eb\u200bc\u{e0041}';
const ESCAPED = 'a\\u009b2J\\u202eb\\u200bc\\udb40\\udc41';

test('a log record has C1 and bidi characters as escapes, of the same value (THREATS.md 111)', () => {
  const lines: string[] = [];
  jsonLog(
    (line) => lines.push(line),
    () => NOW,
  )('error', 'refused', { reason: HOSTILE, count: 1 });
  expect(lines).toEqual([expect.stringContaining(ESCAPED)]);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ reason: HOSTILE, count: 1 });
});

test('a reply has C1 and bidi characters as escapes, of the same value (THREATS.md 111)', async () => {
  const lead = await (await openService()).as('lead');
  const { text } = await lead.book(booking({ site1: HOSTILE }));
  expect(text).toContain(ESCAPED);
  expect(JSON.parse(text).detail[0].msg).toContain(HOSTILE);
});

const lasting = { expires_at: '2030-01-01T00:00:00Z', members: { lead: 'lead' } } as const;
const server = await createReferenceServer({
  now: () => NOW,
  directory: {
    users: [{ name: 'lead' }],
    projects: [{ name: 'demo', ...lasting }],
    // So many that their list is above 1 KiB.
    experiments: Array.from({ length: 20 }, (_, at) => ({ name: `e${at}`, project: 'demo', ...lasting })),
  },
});
atEndOfFile(() => server.close());
const { connectivity } = server.addresses;
const authorization = `Bearer ${await server.signIn('lead')}`;
const TILE = `${addressOf('linkAvailability')}?points=64`;

async function get(
  path: string,
  headers: Readonly<Record<string, string>> = { 'accept-encoding': 'gzip, br' },
) {
  const reply = await server.fetch(
    new Request(connectivity + path, {
      headers: { authorization, ...headers },
    }),
  );
  const body = Buffer.from(await reply.arrayBuffer());
  const isPacked = reply.headers.get('content-encoding') === 'gzip';
  return { reply, bytes: body.length, isPacked, text: (isPacked ? gunzipSync(body) : body).toString() };
}

describe('the answers of questions are compressed for who accepts it', () => {
  test.each([TILE, addressOf('listLinks'), '/api-spec', '/ui/api/network'])('%s', async (path) => {
    const [plain, packed] = [await get(path, {}), await get(path)];
    expect([plain.isPacked, packed.isPacked, packed.text]).toEqual([false, true, plain.text]);
    expect(packed.bytes).toBeLessThan(plain.bytes / 2);
    expect(packed.reply.headers.get('content-length')).toBe(String(packed.bytes));
    for (const { reply } of [plain, packed]) expect(reply.headers.get('vary')).toMatch(/accept-encoding/i);
    expect((await get(path, { 'accept-encoding': 'gzip;q=0' })).isPacked).toBe(false);
  });

  test('both forms have one weak ETag, and a 304 varies as they do', async () => {
    const tags = await Promise.all([get(TILE, {}), get(TILE)]);
    const [tag = '', other] = tags.map(({ reply }) => reply.headers.get('etag') ?? '');
    expect([tag, tag.startsWith('W/"')]).toEqual([other, true]);
    const { reply } = await get(TILE, { 'if-none-match': tag, 'accept-encoding': 'gzip' });
    expect([reply.status, reply.headers.get('vary')]).toEqual([304, 'accept-encoding']);
  });
});

test.each([
  ['a short answer', `${addressOf('linkAvailability')}?points=1`],
  ['the portal', addressOf('listExperiments')],
])('%s stays as it is (THREATS.md 114)', async (_, path) => {
  const { reply, isPacked } = await get(path);
  expect([reply.status, isPacked]).toEqual([200, false]);
});

const lost = new CommitUnknownError('The database was lost while it made the change.');
const away = new StoreUnavailableError("The database can't be reached.");
/** An error of the identity provider's library. */
const told = (cause?: Error): Error =>
  Object.assign(new Error('temporarily_unavailable', { cause }), { error: 'temporarily_unavailable' });

/** The thrown error, the method, status and code, the message, and Retry-After. */
test.each<[string, unknown, string, string, RegExp, string | null]>([
  ['a commit that was lost', lost, 'POST', '503 outcome_unknown', /may have been made or not/, null],
  ['a commit that was lost', lost, 'PUT', '503 outcome_unknown', /may have been made or not/, null],
  ['a commit that was lost', lost, 'DELETE', '503 outcome_unknown', /may have been made or not/, null],
  ['a commit that was lost', lost, 'GET', '503 unavailable', /Nothing was changed/, '5'],
  ['a database that is away', away, 'POST', '503 unavailable', /Nothing was changed/, '5'],
  ['a database that is away', away, 'GET', '503 unavailable', /Nothing was changed/, '5'],
  ['a commit that the library met', told(lost), 'POST', '503 outcome_unknown', /may have been made/, null],
  ['what the library met', told(away), 'POST', '503 unavailable', /Nothing was changed/, '5'],
  ['what the library says by itself', told(), 'POST', '503 unavailable', /Nothing was changed/, '5'],
  ['a refusal', refusal('not_found', 'It is gone.'), 'POST', '404 not_found', /gone/, null],
  ['a bug', new TypeError('secret'), 'POST', '500 internal', /^(?!.*(?:secret|Nothing was changed))/, null],
])('row 43: %s, thrown at %s', async (_, error, method, said, words, retryAfter) => {
  const reply = problemReply(problemOf(error, method, { log: () => undefined }));
  const { code, detail } = (await reply.json()) as { code: string; detail: { msg: string }[] };
  expect(`${reply.status} ${code}`).toBe(said);
  expect(detail[0]?.msg).toMatch(words);
  expect(reply.headers.get('retry-after')).toBe(retryAfter);
});

const RECORD = oneHop({
  id: 'con_conn.example.org_1',
  link: 'be-gent1~pl-poznan1',
  start: NOW,
  end: NOW + DAY,
  bandwidth: 100,
  tags: { site1_s_tag: 1, site1_c_tag: 2, site2_s_tag: 3, site2_c_tag: 4 },
  experiment: 'exp_conn.example.org_1',
  tenant: 'proj_conn.example.org_1',
  createdBy: 'user_conn.example.org_1',
  createdAt: NOW,
});

test('a database that fails after a booking, before the expiry is stored: the reply does not say that nothing was changed', async () => {
  const stores = await openStores(':memory:');
  const store: KeyStore = {
    ...stores.keys,
    note: async () => {
      throw new StoreUnavailableError('away');
    },
  };
  const ring = createKeyRing({ service: 'connectivity', store, now: () => NOW, log: noLog });
  const issuer = createServiceIssuer('https://conn.example.org', ring, () => NOW);
  const options = { issuer, now: () => NOW };
  const signed = new Request('https://conn.example.org/', { headers: SIGNED });

  await expect(answerReservation(signed, RECORD, options, { committed: true })).rejects.toThrow(
    CommitUnknownError,
  );
  await expect(answerReservation(signed, RECORD, options)).rejects.not.toThrow(CommitUnknownError);
  await expect(signReservation(RECORD, options)).rejects.toThrow(CommitUnknownError);
  // What is not signed needs no note.
  const plain = await answerReservation(new Request('https://conn.example.org/'), RECORD, options, {
    committed: true,
  });
  expect(await plain.json()).toMatchObject({ id: RECORD.id });
  await stores.close();
});
