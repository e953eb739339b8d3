import { deflateSync } from 'node:zlib';
import { StatusList } from '@sd-jwt/jwt-status-list';
import { expect, test } from 'vitest';
import type { Outgoing } from '../../src/contract/sending.ts';
import { createIssuer } from '../../src/tokens/issuer.ts';
import { localKeySet } from '../../src/tokens/key-set.ts';
import { generateSigningKey, importSigningKey } from '../../src/tokens/signing-key.ts';
import { statusLists } from '../../src/tokens/status-list.ts';
import { createVerifier } from '../../src/tokens/verifier.ts';
import { faultOf, IDS, ISSUER, NOW, RESERVATION, SECONDS } from '../fixtures/tokens.ts';

const URI = `${ISSUER}/status/a~b/0`;
const key = await importSigningKey(await generateSigningKey());
const issuer = createIssuer({ issuer: ISSUER, key, now: () => NOW });
const TRUST = { issuers: new Map([[ISSUER, localKeySet(issuer.keySet)]]) };
const LIST = new StatusList([0, 1, 0, 0, 0, 0, 0, 1], 1);

/** A list as it is signed. */
interface Forged {
  list?: StatusList;
  /** In place of the list. */
  lst?: string;
  claims?: Record<string, unknown>;
  typ?: string;
  by?: typeof issuer;
  at?: number;
}

function listToken({ list = LIST, typ = 'statuslist+jwt', by = issuer, ...rest }: Forged = {}) {
  const { lst = list.compressStatusList(), claims = {}, at = NOW } = rest;
  const exp = at / 1000 + 3600;
  const status_list = { bits: list.getBitsPerStatus(), lst };
  return by.issue({ sub: URI, ttl: 60, exp, status_list, ...claims }, { typ, at });
}

/** Asks about a place of the list, and notes what was sent. */
function asking(answer: () => Promise<string> | Response, now = () => NOW) {
  const sent: Outgoing[] = [];
  const ask = statusLists({
    send: async (request) => {
      sent.push(request);
      const answered = await answer();
      return answered instanceof Response ? answered : new Response(answered);
    },
    timeout: 60_000,
    now,
  });
  return {
    sent,
    ask: (idx = 0, uri = URI, iat = SECONDS) =>
      ask({ iss: ISSUER, iat, status: { status_list: { idx, uri } } }, TRUST),
  };
}

test.each<[bits: 1 | 2 | 4 | 8]>([[1], [2], [4], [8]])(
  'a list of others with %i bits is read',
  async (bits) => {
    const statuses = Array.from({ length: 24 }, (_, index) => (index % 3 === 1 ? 2 ** bits - 1 : 0));
    const { ask } = asking(() => listToken({ list: new StatusList(statuses, bits) }));
    const stand = await Promise.all(statuses.map(async (_, idx) => (await ask(idx))?.stands));
    expect(stand).toEqual(statuses.map((status) => status === 0));
  },
);

test('a list is used as long as it says, and asked for anew where it is older than the token', async () => {
  let clock = NOW;
  const { ask, sent } = asking(
    () => listToken({ at: clock }),
    () => clock,
  );
  expect(await ask(1)).toEqual({ stands: false, at: NOW });
  clock += 59_000;
  expect(await ask(0)).toEqual({ stands: true, at: NOW });
  expect(sent).toHaveLength(1);
  // The token is from now, and the list from before.
  expect(await ask(0, URI, clock / 1000)).toEqual({ stands: true, at: clock });
  expect(sent.map(({ cache }) => cache)).toEqual([undefined, 'no-cache']);
  clock += 60_000;
  await ask(0);
  expect(sent).toHaveLength(3);
});

test.each([
  ['another origin', 'https://elsewhere.example.org/status/0'],
  ['no address', '0'],
])('a list at %s is not asked for (THREATS.md 122)', async (_, uri) => {
  const { ask, sent } = asking(() => listToken());
  expect(await ask(0, uri)).toBeUndefined();
  expect(sent).toEqual([]);
});

const other = createIssuer({
  issuer: ISSUER,
  key: await importSigningKey(await generateSigningKey('other')),
});

test.each<[what: string, fault: string, forged: Forged]>([
  ['another key signed', 'key_unknown', { by: other }],
  ['is about another address', 'claims', { claims: { sub: `${URI}1` } }],
  ['has expired', 'expired', { at: NOW - 3_700_000 }],
  ['is a token of another type', 'kind', { typ: 'JWT' }],
  ['has no such place', 'claims', { list: new StatusList([], 1) }],
  ['is not compressed', 'malformed', { lst: 'AAAA' }],
  ['is 32 MiB within 32 KiB', 'malformed', { lst: deflateSync(Buffer.alloc(2 ** 25)).toString('base64url') }],
])('a list that %s says nothing: %s (THREATS.md 122)', async (_, fault, forged) => {
  expect(await faultOf(asking(() => listToken(forged)).ask())).toBe(fault);
});

test('a list that can’t be had says nothing', async () => {
  expect(await faultOf(asking(() => new Response(null, { status: 404 })).ask())).toBe('keys_unreachable');
  expect(await faultOf(asking(() => new Response('x'.repeat(70_000))).ask())).toBe('malformed');
});

test('no list is taken for a token, and a verifier that was told to asks', async () => {
  const now = () => NOW;
  let answer = () => listToken();
  const fetch = async () => new Response(await answer());
  const issuers = { [ISSUER]: issuer.keySet };
  const usual = createVerifier({ issuers, fetch, now });
  const asks = createVerifier({ issuers, fetch, now, status: true });
  const token = (idx: number) =>
    issuer.issue({
      sub: IDS.reservation,
      connectivity: RESERVATION,
      status: { status_list: { idx, uri: URI } },
    });
  expect(await faultOf(usual.verify(await listToken()))).toBe('kind');
  expect(await usual.verify(await token(1))).not.toHaveProperty('status');
  expect(await asks.verify(await token(0))).toMatchObject({ status: { stands: true, at: NOW } });
  expect(await faultOf(asks.verify(await token(1)))).toBe('revoked');
  answer = async () => '';
  expect(
    await createVerifier({ issuers, fetch, now, status: true }).verify(await token(1)),
  ).not.toHaveProperty('status');
});
