import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ReferenceServer } from '../../../src/reference-server.ts';
import { reportOf } from '../../e2e/command.ts';
import { type CommandWorld, offlineWorld } from '../../fixtures/command-world.ts';
import { NOW } from '../../fixtures/tokens.ts';
import { person } from '../person.ts';

const HOUR = 3_600_000;
const iso = (hours: number) => new Date(NOW + hours * HOUR).toISOString();

let world: CommandWorld & { server: ReferenceServer };
const run: CommandWorld['run'] = (...args) => world.run('--offline', ...args);
const LINK = ['reserve', 'be-gent1', 'pl-poznan1'];
/** Runs `reserve` with these flags. */
const reserve = (flags: string) => run(...LINK, ...flags.split(' '));
const booked = async (flags: string) => JSON.parse((await reserve(`${flags} --json`)).stdout).reservation;
const count = async () => JSON.parse((await run('--json', 'list', '--all')).stdout).items.length;

/** A link of 100 Gbps, of which 90 are taken from now + 1 h to + 4 h. */
beforeEach(async () => {
  world = await offlineWorld();
  await run(...LINK, '--bandwidth', '90G', '--start', '+1h', '--for', '3h');
});
afterEach(async () => {
  await world.server.close();
});

describe('reserve --earliest', () => {
  test.each([
    ['now', '--bandwidth 10G --for 2h', 0, 2],
    ['the first time that fits', '--bandwidth 11G --for 2h', 4, 6],
  ])('books %s', async (_, flags, start, end) => {
    expect(await booked(`${flags} --earliest`)).toMatchObject({ start_date: iso(start), end_date: iso(end) });
  });

  test('the card says what was found; --dry-run books nothing', async () => {
    const rehearsed = await reserve('--bandwidth 11G --for 2h --earliest --dry-run');
    expect(rehearsed.stdout).toMatch(/^Would be accepted: [\s\S]+ found +the earliest start: in 4 h\n/);
    expect(await count()).toBe(1);
    const { stdout } = await reserve('--bandwidth 11G --for 2h --earliest --save link.jwt');
    expect(stdout).toMatch(
      /^Reserved [\s\S]+ found +the earliest start: in 4 h\n[\s\S]+ saved to link\.jwt\n$/,
    );
    expect(world.files.get('link.jwt')).toMatch(/^eyJ/);
    expect(await count()).toBe(2);
  });
});

describe('reserve --volume', () => {
  // 10 Gbps carry 4.5 TB in an hour.
  test.each([
    ['with all that the link has', '--volume 45T --end +2h', 100_000, 0, 1],
    ['with no more than --bandwidth', '--volume 2.25T --end +9h --bandwidth 5G', 5000, 0, 1],
  ])('books what finishes first, %s', async (_, flags, bandwidth, start, end) => {
    expect(await booked(flags)).toMatchObject({ bandwidth, start_date: iso(start), end_date: iso(end) });
  });

  test('the card says how long it takes, and until when there was time', async () => {
    const { stdout } = await reserve('--volume 49.5T --end +9h --tz UTC');
    expect(stdout).toMatch(/ found +49\.5 TB in 1 h 6 min\n +deadline +Sun 1 Nov 21:00 \(in 9 h\)\n/);
  });

  test.each([
    ['more than half of what is free: it is asked', '--volume 9T --end +3h --start +1h', 'n', 1, 1],
    ['answered yes', '--volume 9T --end +3h --start +1h', 'y', 1, 2],
    ['--yes', '--volume 9T --end +3h --start +1h --yes', 'n', 0, 2],
    ['too much: refused without a question', '--volume 90T --end +3h', '', 1, 1],
  ])('on a terminal, %s', async (_, flags, answer, asked, left) => {
    const { ask, questions } = person(answer);
    const ended = await world.runIn({ ask }, '--offline', ...LINK, ...flags.split(' '));
    expect([questions.length, await count()]).toEqual([asked, left]);
    if (left === 1 && answer === 'n') expect([ended.exitCode, ended.stdout]).toEqual([0, '']);
    if (answer === 'y')
      expect(ended.stderr).toContain('9 TB would take 10 Gbps of the 10 Gbps that are free');
  });
});

test.each([
  ['--earliest --for 2h', 'slices-conn reserve needs --bandwidth <rate>.'],
  ['--earliest --bandwidth 1G --end +2h', 'slices-conn reserve needs --for <duration>.'],
  ['--earliest --volume 1T --end +1h', "--earliest and --volume can't be given together."],
  ['--volume 1T', 'slices-conn reserve needs --end <time>.'],
  ['--volume 1T --for 1h', "--volume and --for can't be given together."],
])('a wrong combination is exit 2, with what is missing: %s', async (flags, message) => {
  const report = reportOf(await reserve(`${flags} --json`));
  expect([report.exitCode, report.message]).toEqual([2, message]);
});
