import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createReferenceServer } from '../../src/reference-server.ts';
import { jsonLog } from '../../src/server/log.ts';
import { atEndOfFile } from '../fixtures/end-of-file.ts';
import { addressOf, booking, NOW, openService } from '../fixtures/service.ts';

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
