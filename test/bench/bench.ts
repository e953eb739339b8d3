import { fork } from 'node:child_process';
import { parseArgs } from 'node:util';
import type { Benchmark, Result } from './benchmark.ts';

/** Every benchmark by its name, loaded when it runs: each is a process of its own, and pays for nothing of the others. */
const BENCHMARKS: Readonly<Record<string, () => Promise<Benchmark>>> = {
  'start-up': async () => (await import('./start-up.ts')).startUp,
  rows: async () => (await import('./rows.ts')).rows,
  routes: async () => (await import('./routes.ts')).routes,
  plain: async () => (await import('./plain.ts')).plain,
  postgres: async () => (await import('./postgres.ts')).postgres,
  optimum: async () => (await import('./optimum.ts')).optimumOf,
};

/** `npm run bench [-- --quick] [NAME…]`: see README.md beside this file. */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean', default: false } },
});
const names = positionals.length > 0 ? positionals : Object.keys(BENCHMARKS);
const unknown = names.find((name) => !(name in BENCHMARKS));
if (unknown !== undefined) {
  console.error(`There is no benchmark ${unknown}. There are: ${Object.keys(BENCHMARKS).join(', ')}.`);
  process.exit(2);
}
// A process that is told one benchmark sends its results to the one that started it.
if (process.send) {
  process.once('disconnect', () => process.exit(1));
  const benchmark = await BENCHMARKS[names[0] ?? '']?.();
  process.send(await benchmark?.(values), () => process.exit());
} else await runAll();

async function runAll(): Promise<void> {
  const results: Result[] = [];
  let broken = 0;
  for (const name of names) {
    try {
      const found = await measured(name);
      results.push(...found);
      for (const result of found) console.log(line(result));
    } catch (error) {
      broken += 1;
      console.error(error instanceof Error ? error.message : error);
    }
  }
  console.log(`${(performance.now() / 1000).toFixed(0)} s in all.`);
  const summary = results.map(({ name, ratio, limit, bound }) => [
    name,
    { ratio: Number(ratio.toFixed(3)), limit, bound },
  ]);
  console.log(JSON.stringify(Object.fromEntries(summary)));
  process.exitCode = broken === 0 && results.every(isMet) ? 0 : 1;
}

/** In a process of its own, so that no benchmark runs in the memory and the compiled code that another left. */
function measured(name: string): Promise<Result[]> {
  const child = fork(import.meta.filename, values.quick ? [name, '--quick'] : [name]);
  return new Promise((resolve, reject) => {
    child.once('message', (results) => resolve(results as Result[]));
    child.once('error', reject);
    child.once('exit', (code) =>
      reject(new Error(`The benchmark ${name} ended with ${code} and no result.`)),
    );
  });
}

function line(result: Result): string {
  const { name, what, ratio, limit, bound, measured: figures } = result;
  const due = `${bound === 'atMost' ? '≤' : '≥'} ${limit}`;
  const verdict = isMet(result) ? 'met   ' : 'MISSED';
  return `${name.padEnd(20)} ${ratio.toFixed(2).padStart(6)}  ${due.padEnd(6)}  ${verdict}  ${figures}  ${what}`;
}

/** Whether a ratio is on the right side of its limit. */
function isMet({ ratio, limit, bound }: Result): boolean {
  return bound === 'atMost' ? ratio <= limit : ratio >= limit;
}
