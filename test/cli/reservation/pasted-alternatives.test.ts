import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ReferenceServer } from '../../../src/reference-server.ts';
import { reportOf } from '../../e2e/command.ts';
import { type CommandWorld, offlineWorld } from '../../fixtures/command-world.ts';

/** How many links are made; on each, four commands are typed. `PROVE_PASTED` asks for more, with another seed each time. */
const { PROVE_PASTED } = process.env;
const CASES = Number(PROVE_PASTED ?? 8);
const SITES = ['be-gent1', 'se-kth'];

let world: CommandWorld & { server: ReferenceServer };
const run: CommandWorld['run'] = (...args) => world.run('--offline', ...args);

const hours = (most: number) => fc.integer({ min: 1, max: most });
const period = fc.record({ start: hours(12), lasting: hours(8), rate: hours(10) });
/** The flags of a command's period. */
const typed = fc
  .tuple(period, fc.constantFrom('now', 'start', 'relative', 'earliest', 'volume', 'past'), fc.boolean())
  .map(([{ start, lasting, rate }, kind, byEnd]) => {
    const at = (hour: number) => new Date(Date.UTC(2026, 10, 1, 12 + hour)).toISOString();
    const bandwidth = ['--bandwidth', `${rate}G`];
    const length = byEnd ? ['--end', at(start + lasting)] : ['--for', `${lasting}h`];
    if (kind === 'now') return [...bandwidth, '--start-now', ...length];
    if (kind === 'relative') return [...bandwidth, '--start', `+${start}h`, ...length];
    if (kind === 'past') return [...bandwidth, `--start=${at(-start)}`, '--end', at(lasting)];
    if (kind === 'earliest') {
      return [...bandwidth, '--earliest', '--for', `${lasting}h`, '--end', at(start + lasting)];
    }
    if (kind === 'volume') return ['--volume', `${rate * lasting * 450}G`, '--end', at(lasting)];
    return [...bandwidth, '--start', at(start), ...length];
  });

test('every alternative of a refused command, pasted, is accepted, and gives what was said', async () => {
  const kinds = new Set<unknown>();
  await fc.assert(
    fc.asyncProperty(
      fc.array(period, { minLength: 1, maxLength: 4 }),
      fc.array(typed, { minLength: 4, maxLength: 4 }),
      async (taken, commands) => {
        world = await offlineWorld();
        for (const { start, lasting, rate } of taken) {
          const flags = ['--bandwidth', `${rate}G`, '--start', `+${start}h`, '--for', `${lasting}h`];
          await run('reserve', ...SITES, ...flags);
        }
        for (const flags of commands) {
          const refused = await run('--json', 'reserve', ...SITES, ...flags, '--dry-run');
          if (refused.exitCode === 0) continue;
          const { exitCode, fix, alternatives } = reportOf(refused);
          expect([flags, exitCode]).toEqual([flags, 6]);
          const offers = alternatives as Record<string, string>[];
          expect(fix).toBe(offers[0]?.['command'] ?? fix);
          for (const { kind, command = '', bandwidth, start_date, start_now, end_date } of offers) {
            kinds.add(kind);
            const pasted = await world.run(...command.split(' ').slice(1));
            expect([command, pasted.exitCode, pasted.stderr]).toEqual([command, 0, '']);
            const { reservation } = JSON.parse(pasted.stdout);
            // Of rates that finish a volume at the same time, any will do.
            if (!/--volume/.test(command))
              expect([command, reservation.bandwidth]).toEqual([command, bandwidth]);
            // A search may find an earlier time than the alternative names; else it is that time.
            const isSearch = /--earliest|--volume/.test(command);
            if (!isSearch && !start_now) expect(reservation.start_date).toBe(start_date);
            expect(Date.parse(reservation.end_date)).toBeLessThanOrEqual(Date.parse(end_date ?? '') + 1000);
          }
        }
        await world.server.close();
      },
    ),
    { numRuns: CASES, endOnFailure: true, ...(PROVE_PASTED === undefined ? { seed: 13 } : {}) },
  );
  expect([...kinds].toSorted()).toEqual(['earliest', 'longest', 'most_bandwidth']);
});
