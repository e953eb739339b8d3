import { describe, expect, test } from 'vitest';
import { createOwnership, type OwnerStore } from '../../src/server/ownership.ts';
import { openStores } from '../../src/store/stores.ts';
import { usePostgres } from '../fixtures/postgres.ts';

const postgres = usePostgres();

describe.each<[string, () => Promise<string>]>([
  ['SQLite', async () => ':memory:'],
  ['PostgreSQL', () => postgres.database()],
])('row 50: owners of ids on %s', (engine, database) => {
  test('the first of many at once stays the owner, and all are told which', async () => {
    const url = await database();
    // Two servers on one database, where there can be two.
    const stores = await Promise.all(
      [url, ...(engine === 'PostgreSQL' ? [url] : [])].map((each) => openStores(each)),
    );
    const owners = stores.map((each) => each.owners);
    const rivals = Array.from({ length: 20 }, (_, at) => `https://${at}.example.org`);
    const told = await Promise.all(
      rivals.map((rival, at) => owners[at % owners.length]?.register('exp_h_1', rival)),
    );
    expect(new Set(told).size).toBe(1);
    expect(rivals).toContain(told[0]);
    for (const each of owners) {
      expect(await each.register('exp_h_1', 'https://later.example.org')).toBe(told[0]);
      expect(await each.register('exp_h_2', 'https://a.example.org')).toBe('https://a.example.org');
    }
    for (const each of stores) await each.close();
  });
});

test('an owner that was read before the database was replaced is read again (THREATS.md 73)', async () => {
  const [before, after] = [await openStores(':memory:'), await openStores(':memory:')];
  let current = before;
  const owners: OwnerStore = { register: (...given) => current.owners.register(...given) };
  const check = createOwnership(owners, [], () => (current === before ? 'one' : 'two'));
  await check('experiment', 'exp_h_1', 'https://a.example.org');
  await after.owners.register('exp_h_1', 'https://b.example.org');
  await check('experiment', 'exp_h_1', 'https://a.example.org');
  current = after;
  await expect(check('experiment', 'exp_h_1', 'https://a.example.org')).rejects.toThrow('another issuer');
  await Promise.all([before.close(), after.close()]);
});
