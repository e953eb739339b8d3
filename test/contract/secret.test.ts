import { format, inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../src/contract/secret.ts';

const CANARY = 'canary-7d1f';
const secret = new Secret(CANARY);
const nested = { tokens: [secret], map: new Map([['user', { secret }]]), set: new Set([secret]) };

describe('a secret that is printed by accident', () => {
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
  ])('%s shows that there is one, and not which', (_, print) => {
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
  ])('%s finds nothing in it', (_, look) => {
    expect(look()).toEqual([]);
  });

  test('without its own inspection, its private field is hidden still', () => {
    expect(inspect(secret, { customInspect: false, showHidden: true })).not.toContain(CANARY);
  });
});

test('who says so gets the text', () => {
  expect(secret.reveal()).toBe(CANARY);
});
