import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { offlineWorld } from '../fixtures/command-world.ts';

/** The files that have the pictures of the README. */
export const README = fileURLToPath(new URL('../../README.md', import.meta.url));
/** See {@link README}. */
export const PICTURE = fileURLToPath(new URL('../../src/cli/availability.svg', import.meta.url));

/** What is reserved on the link, from Monday 00:00: when, for how long, in Gbps. */
const RESERVED: readonly (readonly [start: string, duration: string, gbps: number])[] = [
  ['2026-11-02T01:00', '3h30m', 4],
  ['2026-11-02T08:30', '3h', 6],
  ['2026-11-02T09:15', '10m', 4],
  ['2026-11-02T10:05', '10m', 4],
  ['2026-11-02T10:50', '10m', 4],
  ['2026-11-02T13:00', '4h30m', 5],
  ['2026-11-02T14:00', '2h', 3],
  ['2026-11-02T15:30', '30m', 2],
  ['2026-11-02T19:00', '1h', 8.5],
  ['2026-11-02T21:10', '2d', 2.5],
  ['2026-11-03T01:00', '3h30m', 4],
  ['2026-11-03T09:00', '9h', 6],
  ['2026-11-03T12:00', '20m', 1.5],
  ['2026-11-03T13:00', '20m', 1.5],
  ['2026-11-03T14:00', '20m', 1.5],
  ['2026-11-04T01:00', '3h30m', 4],
  ['2026-11-04T10:00', '6h', 7],
  ['2026-11-05T01:00', '3h30m', 4],
  ['2026-11-05T08:00', '28h', 9],
  ['2026-11-06T14:00', '4h', 3],
  ['2026-11-06T16:00', '1h', 5],
  ['2026-11-07T00:00', '36h', 1.5],
  ['2026-11-07T20:00', '2h', 6],
];

/** Pictures of the program's own, made from the same reservations at the same time. */
export interface Pictures {
  /** A block of Markdown: a command and the chart that it prints. */
  chart: string;
  svg: string;
}

/** Runs the program with the offline server and a clock that stands still. */
export async function makePictures(): Promise<Pictures> {
  const world = await offlineWorld({ env: { SLICES_CONN_PROFILE: 'offline' } });
  const link = ['be-gent1', 'se-kth'];
  const run = async (...args: string[]): Promise<string> => {
    const { exitCode, stdout, stderr } = await world.run('--tz', 'Europe/Brussels', ...args);
    if (exitCode !== 0) throw new Error(`${args.join(' ')}\n${stderr}`);
    return stdout;
  };
  for (const [start, duration, gbps] of RESERVED) {
    await run('reserve', ...link, '--bandwidth', `${gbps}G`, '--start', start, '--for', duration);
  }
  const shown = ['availability', ...link, '--start', 'monday', '--for', '1d'];
  const chart = await run(...shown);
  const [day, week] = ['2026-11-02T00:00', '1w'];
  await run('availability', ...link, '--start', day, '--for', week, '--svg', 'availability.svg');
  const svg = world.files.get('availability.svg');
  if (typeof svg !== 'string') throw new Error('No picture was written');
  return { chart: `\`\`\`text\n$ npx slices-conn --offline ${shown.join(' ')}\n${chart}\`\`\`\n`, svg };
}

/** The chart in the README, after the line that says how it is made. */
const CHART = /(?<=<!-- Made by `npm run pictures`. -->\n)```text\n[^`]*```\n/;

/** The README with this chart in its place. */
export function withChart(readme: string, { chart }: Pictures): string {
  if (!CHART.test(readme)) throw new Error('README.md has no place for the chart');
  return readme.replace(CHART, () => chart);
}

if (import.meta.main) {
  const pictures = await makePictures();
  writeFileSync(PICTURE, pictures.svg);
  writeFileSync(README, withChart(readFileSync(README, 'utf8'), pictures));
}
