import { format, inspect } from 'node:util';
import { expect, test } from 'vitest';
import { Secret, withoutTokens } from '../../src/contract/secret.ts';
import { processorTime } from '../fixtures/processor-time.ts';

const CANARY = 'canary-7d1f';
const secret = new Secret(CANARY);
const nested = { tokens: [secret], map: new Map([['user', { secret }]]), set: new Set([secret]) };

test('an accidentally printed secret shows that it is one, without its text', () => {
  const printed = [
    ...[String(secret), `token ${secret}`, new Error(`refused: ${secret}`).message],
    ...[JSON.stringify(secret), JSON.stringify({ tokens: [secret], secret })],
    ...[inspect(secret), inspect(nested, { depth: 9, showHidden: true })],
    ...[format('token', secret), format('%s', secret), format('%o', secret), format('%O', nested)],
    ...[format('%j', { secret }), inspect(new Error('refused', { cause: { secret } }))],
  ];
  for (const text of printed)
    expect([text.includes('[secret]'), text.includes(CANARY)]).toEqual([true, false]);
  expect(inspect(secret, { customInspect: false, showHidden: true })).not.toContain(CANARY);
  const copies = [{ ...secret }, Object.assign({}, secret), structuredClone(secret)];
  for (const one of [secret, ...copies]) expect(Reflect.ownKeys(one)).toEqual([]);
  expect(secret.reveal()).toBe(CANARY);
});

const JWT = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2ln';
const REFRESH = 'nOt7Zq3vXkW_1mB-8sLpD4yRcT6hJgFa0EuIoQxVb2K';

test.each([
  [JWT, '[secret]'],
  [`There is no file ${JWT}.`, 'There is no file [secret].'],
  [`https://x.example.org/a/${JWT}?b=${JWT}`, 'https://x.example.org/a/[secret]?b=[secret]'],
  [`con_${JWT}`, 'con_[secret]'],
  [JWT.slice(0, 40), '[secret]'],
  [`"${REFRESH}" is no id.`, '"[secret]" is no id.'],
  [`/home/x/${REFRESH}.txt`, '/home/x/[secret].txt'],
])('row 54: text that looks like a token is removed from any text: %s', (text, shown) => {
  expect(withoutTokens(text)).toBe(shown);
});

test.each([
  `thumbprint ${REFRESH}`,
  'con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
  'exp_portal.example.org_nOt7Zq3vXkW1mB8sLpD4yRcT6hJgFa0EuIoQxVb2K',
  '2f1c9a7e-5b0d-4c3e-9f8a-1b2c3d4e5f60',
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  'Throughput-Test-BE-PL-2026-11-22-Run3',
  'MyExperimentForThroughput2026Nov',
  'connectivity-service.some-testbed.slices-sc.eu',
  'SLICES_CONN_EXPERIMENT_TOKEN_FILE',
  'experimentTokenCommand=["slices","experiment","jwt","{experiment}"]',
  '2026-12-01T10:00:00.000Z',
  'eyJ.txt',
])('row 54: %s stays', (text) => {
  expect(withoutTokens(text)).toBe(text);
});

test.each(['eyJ', 'a.', '.', 'aA0', '-', 'a..', 'eyJ.'])(
  'row 54: a quarter of a megabyte of %j is read in linear time',
  (piece) => {
    const began = processorTime();
    withoutTokens(piece.repeat(250_000 / piece.length));
    expect(processorTime() - began).toBeLessThan(1250);
  },
);
