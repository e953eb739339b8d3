import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { reserveAgainstBareNode } from './reserve-cpu.ts';

/** Start-up of the command line as a ratio to a bare Node, medians of alternating runs (DESIGN.md, "Runtime"). */
const CASES = [
  { name: '--version', args: ['--version'], limit: 1.3 },
  { name: '--help', args: ['--help'], limit: 2 },
  { name: '__complete', args: ['__complete', '--', 're'], limit: 2.5 },
] as const;
const ROUNDS = 41;

const program = new URL('../../bin/slices-conn.js', import.meta.url).pathname;
const home = mkdtempSync(join(tmpdir(), 'slices-conn-bench-'));

function milliseconds(args: readonly string[]): number {
  const began = process.hrtime.bigint();
  const { status } = spawnSync(process.execPath, args, { env: { PATH: process.env['PATH'], HOME: home } });
  if (status !== 0) throw new Error(`${args.join(' ')} exited with ${status}`);
  return Number(process.hrtime.bigint() - began) / 1e6;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

const ratios: Record<string, { ratio: number; limit: number }> = {};
try {
  for (const { name, args, limit } of CASES) {
    milliseconds([program, ...args]);
    const pairs = Array.from({ length: ROUNDS }, () => ({
      own: milliseconds([program, ...args]),
      bare: milliseconds(['-e', '0']),
    }));
    const ratio = median(pairs.map(({ own }) => own)) / median(pairs.map(({ bare }) => bare));
    ratios[`${name} / node -e 0`] = { ratio: Number(ratio.toFixed(2)), limit };
    console.log(`${name.padEnd(12)} ${ratio.toFixed(2)} × a bare Node (limit ${limit})`);
  }
  const pairs = await reserveAgainstBareNode(ROUNDS);
  const ratio = median(pairs.map(({ own }) => own)) / median(pairs.map(({ bare }) => bare));
  ratios['reserve / node -e 0, processor time'] = { ratio: Number(ratio.toFixed(2)), limit: 7 };
  console.log(`${'reserve'.padEnd(12)} ${ratio.toFixed(2)} × the processor time of a bare Node (limit 7)`);
} finally {
  rmSync(home, { recursive: true, force: true });
}
console.log(JSON.stringify(ratios));
