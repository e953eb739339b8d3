import { fork } from 'node:child_process';
import { parseArgs } from 'node:util';
import { isMet, limitText, type Result } from './benchmark.ts';
import { BENCHMARKS } from './benchmarks.ts';
import { type Measured, writeTable } from './table.ts';

/** `npm run bench [-- --quick | --write] [NAME…]`: see README.md beside this file. */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean', default: false }, write: { type: 'boolean', default: false } },
});
const names = positionals.length > 0 ? positionals : Object.keys(BENCHMARKS);
const unknown = names.find((name) => !(name in BENCHMARKS));
if (unknown !== undefined) {
  console.error(`There is no benchmark ${unknown}. There are: ${Object.keys(BENCHMARKS).join(', ')}.`);
  process.exit(2);
}
if (values.write && (values.quick || positionals.length > 0)) {
  console.error('The table holds one whole run: give --write alone.');
  process.exit(2);
}

/** In a process of its own, so that no benchmark runs in the memory and the compiled code that another left. */
function measured(name: string): Promise<Measured> {
  const child = fork(new URL('one.ts', import.meta.url), [name, values.quick ? '--quick' : '']);
  return new Promise((resolve, reject) => {
    let answer: Measured | undefined;
    child.on('message', (message) => {
      answer = message as Measured;
    });
    child.on('error', reject);
    child.on('exit', (code) => {
      if (answer) resolve(answer);
      else reject(new Error(`The benchmark ${name} ended with ${code} and no result.`));
    });
  });
}

function line(result: Result): string {
  const { name, ratio, measured: figures } = result;
  const verdict = isMet(result) ? 'met   ' : 'MISSED';
  return `${name.padEnd(34)} ${ratio.toFixed(2).padStart(6)}  ${limitText(result).padEnd(6)}  ${verdict}  ${figures}`;
}

const began = performance.now();
const all: Measured[] = [];
const broken: string[] = [];
for (const name of names) {
  try {
    const found = await measured(name);
    all.push(found);
    for (const result of found.results) console.log(line(result));
  } catch (error) {
    broken.push(name);
    console.error(error instanceof Error ? error.message : error);
  }
}
const results = all.flatMap((found) => found.results);
console.log(`${((performance.now() - began) / 1000).toFixed(0)} s in all.`);
if (values.write && broken.length === 0) writeTable(all);
const summary = results.map(({ name, ratio, limit, bound }) => [
  name,
  { ratio: Number(ratio.toFixed(3)), limit, bound },
]);
console.log(JSON.stringify(Object.fromEntries(summary)));
process.exitCode = broken.length === 0 && results.every(isMet) ? 0 : 1;
