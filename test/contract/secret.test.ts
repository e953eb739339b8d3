import { format, inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { Secret, withoutTokens } from '../../src/contract/secret.ts';
import { processorTime } from '../fixtures/processor-time.ts';

const CANARY = 'canary-7d1f';
const secret = new Secret(CANARY);
const nested = { tokens: [secret], map: new Map([['user', { secret }]]), set: new Set([secret]) };

describe('an accidentally printed secret', () => {
  test.each<[string, () => string]>([
    ['String()', () => String(secret)],
    ['a template', () => `token ${secret}`],
    ['a sum of texts', () => ['token', secret].join(' ')],
    ['JSON.stringify', () => JSON.stringify(secret)],
    ['JSON.stringify, nested', () => JSON.stringify({ tokens: [secret], secret })],
    ['util.inspect', () => inspect(secret)],
    ['util.inspect, nested', () => inspect(nested, { depth: 9, showHidden: true })],
    ['console: an argument', () => format('token', secret)],
    ['console: %s', () => format('%s', secret)],
    ['console: %o', () => format('%o', secret)],
    ['console: %O, nested', () => format('%O', nested)],
    ['console: %j', () => format('%j', { secret })],
    ['an error message', () => new Error(`refused: ${secret}`).message],
    ['an error with a cause, inspected', () => inspect(new Error('refused', { cause: { secret } }))],
  ])('%s shows that it is a secret, without its text', (_, print) => {
    const printed = print();
    expect(printed).toContain('[secret]');
    expect(printed).not.toContain(CANARY);
  });

  test.each<[string, () => unknown]>([
    ['Object.keys', () => Object.keys(secret)],
    ['all own names', () => Reflect.ownKeys(secret)],
    ['spread', () => Object.entries({ ...secret })],
    ['Object.assign', () => Object.entries(Object.assign({}, secret))],
    ['structuredClone', () => Object.entries(structuredClone(secret))],
  ])('%s finds no text in it', (_, look) => {
    expect(look()).toEqual([]);
  });

  test('without its custom inspection, its private field is still hidden', () => {
    expect(inspect(secret, { customInspect: false, showHidden: true })).not.toContain(CANARY);
  });
});

test('reveal() gives the text', () => {
  expect(secret.reveal()).toBe(CANARY);
});

describe('row 54: text that looks like a token is removed from any text', () => {
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
  ])('%s', (text, shown) => {
    expect(withoutTokens(text)).toBe(shown);
  });

  test.each([
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
  ])('%s stays', (text) => {
    expect(withoutTokens(text)).toBe(text);
  });

  test('a quarter of a megabyte of any text is read in linear time', () => {
    for (const piece of ['eyJ', 'a.', '.', 'aA0', '-', 'a..', 'eyJ.']) {
      const began = processorTime();
      withoutTokens(piece.repeat(250_000 / piece.length));
      expect(processorTime() - began).toBeLessThan(1250);
    }
  });
});
