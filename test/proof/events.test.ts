import { expect, test } from 'vitest';
import { usePostgres } from '../fixtures/postgres.ts';
import { amiss } from './event-readers.ts';
import { tellReaders } from './events.ts';
import { expectNothingFound } from './nothing-found.ts';

const postgres = usePostgres();
const until = { rounds: 2, kills: 1 };

test('row 133: on SQLite readers know what the rows say, wherever their connections are cut', async () => {
  expectNothingFound(await tellReaders({ until, seed: 1 }), until);
});

test('row 133: and those of two replicas on PostgreSQL, wherever they come back', async () => {
  expectNothingFound(await tellReaders({ until, seed: 1, postgres: await postgres.withTables() }), until);
});

test.each([
  ['an event is lost', { standings: [], told: [] }, ['lost']],
  ['a change is lost', { standings: [['a', 'before']], told: [] }, ['lost']],
  ['a deletion is lost', { standings: [['a', 'now'], ['b', 'now']], told: [] }, ['lost']], // biome-ignore format: one case, one line
  ['an event is invented', { standings: [['a', 'now']], told: ['a never'] }, ['doubled']],
  ['all is well', { standings: [['a', 'now']], told: ['a now'] }, []],
] as const)('it is seen where %s', (_, { standings, told }, kinds) => {
  const reader = { standings: new Map(standings), told: new Set<string>(told) };
  const found = amiss(reader, new Map([['a', 'now']]), { has: (change) => change === 'a now' });
  expect(found.map(({ kind }) => kind)).toEqual(kinds);
});
