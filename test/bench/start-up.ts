import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Benchmark, Result } from './benchmark.ts';
import { alternate, median } from './measure.ts';
import { reserveAgainstBareNode } from './reserve-cpu.ts';

const CASES = [
  { name: '--version', args: ['--version'], limit: 1.3 },
  { name: '--help', args: ['--help'], limit: 2 },
  { name: '__complete', args: ['__complete', '--', 're'], limit: 2.5 },
] as const;

const program = new URL('../../bin/slices-conn.js', import.meta.url).pathname;

/** Start-up of the command line as a ratio to a bare Node (src/README.md, "Start-up"). */
export const startUp: Benchmark = {
  name: 'start-up',
  method:
    'alternating processes of the same Node, compile cache warm; wall clock, and for `reserve` processor time',
  async run({ quick }) {
    const rounds = quick ? 11 : 41;
    const home = mkdtempSync(join(tmpdir(), 'slices-conn-bench-'));
    const run = (args: readonly string[]) => (): number => {
      const began = performance.now();
      const { status } = spawnSync(process.execPath, args, {
        env: { PATH: process.env['PATH'], HOME: home },
      });
      if (status !== 0) throw new Error(`${args.join(' ')} exited with ${status}`);
      return performance.now() - began;
    };
    const results: Result[] = [];
    try {
      for (const { name, args, limit } of CASES) {
        const times = await alternate(rounds, [
          ['own', run([program, ...args])],
          ['bare', run(['-e', '0'])],
        ]);
        results.push({
          name: `start-up, ${name}`,
          what: `slices-conn ${name} ÷ node -e 0`,
          ratio: times.ratio('own', 'bare'),
          limit,
          bound: 'atMost',
          measured: `${times.median('own').toFixed(1)} ms ÷ ${times.median('bare').toFixed(1)} ms`,
        });
      }
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
    const pairs = await reserveAgainstBareNode(rounds);
    const [own, bare] = [median(pairs.map((pair) => pair.own)), median(pairs.map((pair) => pair.bare))];
    results.push({
      name: 'start-up, reserve',
      what: 'slices-conn reserve ÷ node -e 0, processor time',
      ratio: own / bare,
      limit: 4,
      bound: 'atMost',
      measured: `${(own * 1000).toFixed(0)} ms ÷ ${(bare * 1000).toFixed(0)} ms`,
    });
    return results;
  },
};
