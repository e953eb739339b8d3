import { expect, test } from 'vitest';
import type { LedgerDatabase } from '../../src/session/reservations/ledger.ts';
import { SqliteDatabase } from '../../src/store/sqlite/database.ts';
import { LEDGER_FORMAT } from '../../src/store/sqlite/format.ts';
import { type CommandWorld, offlineWorld } from '../fixtures/command-world.ts';
import { NOW, RESERVATION } from '../fixtures/tokens.ts';

/** A person's machine with an old ledger, and one reservation that was just made. */
async function worldWith(past: number): Promise<CommandWorld> {
  const database = await SqliteDatabase.open(':memory:', LEDGER_FORMAT);
  const openLedger = async (): Promise<LedgerDatabase> => ({
    transaction: (work) => database.transaction(work),
    close: async () => undefined,
  });
  const world = await offlineWorld({ openLedger });
  const booking = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '2h'];
  await world.run('--offline', ...booking);
  const ended = JSON.stringify({
    ...RESERVATION,
    start_date: new Date(NOW - 7_200_000).toISOString(),
    end_date: new Date(NOW - 3_600_000).toISOString(),
  });
  await database.transaction(async ({ run }) =>
    run(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $past)
       INSERT INTO attempt
         (service, experiment, key, asked, asked_ms, began_ms, outcome, reservation_id, reservation)
       SELECT service, experiment, printf('past %06d', i), asked, i, i,
         CASE i % 3 WHEN 0 THEN 'deleted' ELSE 'booked' END, printf('con_past_%06d', i), $ended
       FROM attempt, n`,
      { past, ended },
    ),
  );
  return world;
}

const COMMANDS = {
  list: ['--offline', 'list'],
  completion: ['__complete', '--', '--offline', 'show', ''],
};

test('row 66: with 100,000 past reservations list and completion take at most twice as long as with 100', async () => {
  const [few, many] = [await worldWith(100), await worldWith(100_000)];
  for (const args of Object.values(COMMANDS)) {
    const best = new Map<CommandWorld, number>();
    const isKept = (): boolean => (best.get(many) ?? Infinity) < 2 * (best.get(few) ?? 0);
    const said = new Set<string>();
    // Other processes disturb each round differently: the best of several rounds is the command's own time.
    for (let round = 0; round < 25 && !isKept(); round += 1) {
      for (const world of [few, many]) {
        const began = performance.now();
        const { stdout } = await world.run(...args);
        best.set(world, Math.min(best.get(world) ?? Infinity, performance.now() - began));
        said.add(stdout.replaceAll(/con_\S+/g, 'ID'));
      }
    }
    expect([...said]).toEqual([expect.stringContaining('ID')]);
    expect(isKept()).toBe(true);
  }
});

test('row 66: past reservations are archived, not lost', async () => {
  const world = await worldWith(30);
  const { stdout } = await world.run('--offline', '--json', 'list', '--all');
  expect(JSON.parse(stdout).items).toHaveLength(31);
});
