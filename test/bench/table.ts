import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { limitText, type Result } from './benchmark.ts';
import { diskName } from './disk.ts';

/** What one benchmark found. */
export interface Measured {
  method: string;
  results: Result[];
}

const README = new URL('README.md', import.meta.url);
const [FROM, TO] = ['<!-- written by --write, from here -->', '<!-- to here -->'];

/** Puts the results of a whole run into README.md, with the machine that they are of. */
export function writeTable(all: readonly Measured[]): void {
  const text = readFileSync(README, 'utf8');
  const [before, rest] = [text.split(FROM)[0], text.split(TO)[1]];
  if (before === undefined || rest === undefined) throw new Error('README.md has no place for the table.');
  const rows = all.flatMap(({ method, results }) =>
    results.map((result, index) => {
      const { name, what, ratio, measured } = result;
      const how = index === 0 ? method : 'the same';
      return `| ${[name, what, how, limitText(result), ratio.toFixed(2), measured].join(' | ')} |`;
    }),
  );
  const [processor] = cpus();
  const machine = [
    `${availableParallelism()} cores of ${processor?.model.trim()}`,
    `${Math.round(totalmem() / 2 ** 30)} GiB of memory`,
    diskName(),
    `load average ${loadavg()[2]?.toFixed(1)} over the last 15 minutes`,
    `Node ${process.versions.node}`,
    new Date().toISOString().slice(0, 10),
  ];
  const table = [
    `Measured on ${machine.join(', ')}.`,
    '',
    '| name | what | method | limit | ratio | measured |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows,
  ];
  writeFileSync(README, `${before}${FROM}\n\n${table.join('\n')}\n\n${TO}${rest}`);
}
