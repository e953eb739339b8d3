import { expect, test, vi } from 'vitest';
import { PATIENCE } from '../fixtures/patience.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { openPostgres } from './opened-store.ts';
import { describeStore } from './store-suite.ts';

const postgres = usePostgres();

describeStore('PostgreSQL', async () => openPostgres(await postgres.emptied()));

test('a link whose row is made while a transaction waits for another link is locked by it all the same', async () => {
  const url = await postgres.emptied();
  const [one, two, three] = await Promise.all([openPostgres(url), openPostgres(url), openPostgres(url)]);
  const [hasA, hasB] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const [leaveA, leaveB] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const order: string[] = [];
  const waitsForALock = () =>
    vi.waitFor(
      async () => {
        expect(order.length + (await postgres.waiting(url))).toBe(1);
      },
      { timeout: PATIENCE, interval: 20 },
    );
  // That one has a row.
  await one.store.changeLinks({ links: ['a'] }, async () => undefined);
  const first = one.store.changeLinks({ links: ['a'] }, async () => {
    hasA.resolve();
    await leaveA.promise;
  });
  await hasA.promise;
  const both = two.store.changeLinks({ links: ['b', 'a'] }, async () => void order.push('a and b'));
  await waitsForALock();
  const second = three.store.changeLinks({ links: ['b'] }, async () => {
    hasB.resolve();
    await leaveB.promise;
    order.push('b');
  });
  await hasB.promise;
  leaveA.resolve();
  await first;
  await waitsForALock();
  leaveB.resolve();
  await Promise.all([both, second]);
  expect(order).toEqual(['b', 'a and b']);
  await Promise.all([one, two, three].map(({ close }) => close()));
});
