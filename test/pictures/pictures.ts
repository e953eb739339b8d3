import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { offlineWorld } from '../fixtures/command-world.ts';
import { makePagePictures, PAGE_PICTURES } from './page-pictures.ts';

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

/** What the program prints, made from the same reservations at the same time. */
export interface Pictures {
  /** Blocks of Markdown, each a command and what it prints: a chart, and a refusal. */
  blocks: readonly string[];
  svg: string;
}

/** Runs the program with the offline server and a clock that stands still. */
export async function makePictures(): Promise<Pictures> {
  const world = await offlineWorld({ variables: { TZ: 'Europe/Brussels', npm_command: 'exec' } });
  const link = ['be-gent1', 'se-kth'];
  const run = async (expected: number, ...args: string[]): Promise<string> => {
    const { exitCode, stdout, stderr } = await world.run('--offline', ...args);
    if (exitCode !== expected) throw new Error(`${args.join(' ')}: ${exitCode}\n${stderr}`);
    return `\`\`\`text\n$ npx slices-conn --offline ${args.join(' ')}\n${stdout}${stderr}\`\`\`\n`;
  };
  for (const [start, duration, gbps] of RESERVED) {
    await run(0, 'reserve', ...link, '--bandwidth', `${gbps}G`, '--start', start, '--for', duration);
  }
  const blocks = [
    await run(0, 'availability', ...link, '--start', 'monday', '--for', '1d'),
    await run(6, 'reserve', ...link, '--bandwidth', '9G', '--start', 'monday', '--for', '4h'),
  ];
  await run(0, 'availability', ...link, '--start', '2026-11-02', '--for', '1w', '--svg', 'availability.svg');
  const svg = world.files.get('availability.svg');
  if (typeof svg !== 'string') throw new Error('No picture was written');
  return { blocks, svg };
}

/** A block of the README, after the line that says how it is made. */
const BLOCK = /(?<=<!-- Made by `npm run pictures`. -->\n)```text\n[^`]*```\n/g;

/** The README with these blocks in their places. */
export function withBlocks(readme: string, { blocks }: Pictures): string {
  const places = readme.match(BLOCK)?.length ?? 0;
  if (places !== blocks.length) throw new Error(`README.md has ${places} places for ${blocks.length} blocks`);
  const left = [...blocks];
  return readme.replace(BLOCK, (found) => left.shift() ?? found);
}

if (import.meta.main) {
  const pictures = await makePictures();
  writeFileSync(PICTURE, pictures.svg);
  writeFileSync(README, withBlocks(readFileSync(README, 'utf8'), pictures));
  const { network, booking } = await makePagePictures();
  writeFileSync(PAGE_PICTURES.network, network);
  writeFileSync(PAGE_PICTURES.booking, booking);
}
