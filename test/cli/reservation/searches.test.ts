import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ReferenceServer } from '../../../src/reference-server.ts';
import { reportOf } from '../../e2e/command.ts';
import { type CommandWorld, offlineWorld } from '../../fixtures/command-world.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';
import { NOW } from '../../fixtures/tokens.ts';

const HOUR = 3_600_000;
const iso = (hours: number) => new Date(NOW + hours * HOUR).toISOString();

let folder: string;
let world: CommandWorld & { server: ReferenceServer };
const run: CommandWorld['run'] = (...args) => world.run('--offline', ...args);
const LINK = ['reserve', 'be-gent1', 'pl-poznan1'];
/** Runs `reserve` with these flags. */
const reserve = (flags: string) => run(...LINK, ...flags.split(' '));
const booked = async (flags: string) => JSON.parse((await reserve(`${flags} --json`)).stdout).reservation;
const count = async () => JSON.parse((await run('--json', 'list', '--all')).stdout).items.length;

/** A link of 100 Gbps, of which 90 are taken from now + 1 h to + 4 h. */
beforeEach(async () => {
  folder = temporaryFolder();
  world = await offlineWorld({ folders: { config: folder, state: folder, cache: folder } });
  await run(...LINK, '--bandwidth', '90G', '--start', '+1h', '--for', '3h');
});
afterEach(async () => {
  await world.server.close();
});

describe('reserve --earliest', () => {
  test.each([
    ['now', '--bandwidth 10G --for 2h', 0, 2],
    ['the first time that fits', '--bandwidth 11G --for 2h', 4, 6],
    ['not before --start', '--bandwidth 11G --for 1h --start +30m', 4, 5],
    ['before what is taken', '--bandwidth 11G --for 1h', 0, 1],
    ['within --end', '--bandwidth 11G --for 2h --end +6h', 4, 6],
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

  test('refused, it offers less and later; each works when it is pasted', async () => {
    const { message, alternatives, fix } = reportOf(
      await reserve('--bandwidth 11G --for 2h --earliest --end +5h --json'),
    );
    expect(message).toBe(`There is no time for 11 Gbps for 2 h from ${iso(0)} to ${iso(5)}.`);
    expect(alternatives).toMatchObject([
      { kind: 'most_bandwidth', bandwidth: 10_000 },
      { kind: 'other_route', bandwidth: 11_000, via: ['fr-lille', 'fr-slices'] },
      { kind: 'earliest', bandwidth: 11_000, start_date: iso(4), end_date: iso(6) },
    ]);
    const commands = (alternatives as { command: string }[]).map(({ command }) => command);
    const end = iso(6).replace(/(?::00)?\.000Z/, 'Z');
    expect(fix).toBe(commands[0]);
    expect(commands).toEqual([
      `slices-conn --offline ${LINK.join(' ')} --bandwidth 10G --for 2h --earliest --end +5h --json`,
      `slices-conn --offline ${LINK.join(' ')} --bandwidth 11G --for 2h --earliest --end +5h --json --via fr-lille,fr-slices`,
      `slices-conn --offline ${LINK.join(' ')} --bandwidth 11G --for 2h --earliest --end ${end} --json`,
    ]);
    for (const command of commands)
      expect((await world.run(...command.split(' ').slice(1))).exitCode).toBe(0);
  });
});

describe('reserve --volume', () => {
  // 10 Gbps carry 4.5 TB in an hour.
  test.each([
    ['with all that the link has', '--volume 45T --end +2h', 100_000, 0, 1],
    ['at one rate through what is taken', '--volume 9T --end +3h --start +1h', 10_000, 1, 3],
    ['with no more than --bandwidth', '--volume 2.25T --end +9h --bandwidth 5G', 5000, 0, 1],
    ['for a minute at least', '--volume 1MB --end +9h', 1, 0, 1 / 60],
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
    ['a cap', '--volume 9T --end +3h --start +1h --bandwidth 10G', 'n', 0, 2],
    ['too much: refused without a question', '--volume 90T --end +3h', '', 1, 1],
  ])('on a terminal, %s', async (_, flags, answer, asked, left) => {
    const questions: string[] = [];
    const ask = async (question: string) => {
      questions.push(question);
      return answer;
    };
    const ended = await world.runIn({ ask }, '--offline', ...LINK, ...flags.split(' '));
    expect([questions.length, await count()]).toEqual([asked, left]);
    if (left === 1 && answer === 'n') expect([ended.exitCode, ended.stdout]).toEqual([0, '']);
    if (answer === 'y')
      expect(ended.stderr).toContain('9 TB would take 10 Gbps of the 10 Gbps that are free');
  });

  test('refused, it offers a later deadline', async () => {
    const { message, alternatives } = reportOf(await reserve('--volume 90T --end +3h --json'));
    expect(message).toBe(`90 TB can't be carried from ${iso(0)} to ${iso(3)}: too little is free.`);
    expect(alternatives).toMatchObject([{ kind: 'earliest' }]);
    const [{ command }] = alternatives as [{ command: string }];
    expect((await world.run(...command.split(' ').slice(1))).exitCode).toBe(0);
  });
});

describe('wrong combinations are exit 2, with what is missing', () => {
  test.each([
    ['--earliest --for 2h', 'slices-conn reserve needs --bandwidth <rate>.'],
    ['--earliest --bandwidth 1G', 'slices-conn reserve needs --for <duration>.'],
    ['--earliest --bandwidth 1G --end +2h', 'slices-conn reserve needs --for <duration>.'],
    ['--earliest --bandwidth 1G --for 2h --end +1h', '2 h do not fit.'],
    ['--earliest --volume 1T --end +1h', "--earliest and --volume can't be given together."],
    ['--volume 1T', 'slices-conn reserve needs --end <time>.'],
    ['--volume 1T --for 1h', "--for and --volume can't be given together."],
    ['--volume 1T --end +1h --for 1h', "--for and --volume can't be given together."],
    ['--volume 1X --end +1h', '"1X" is not a volume.'],
    ['--volume 1T --end +1h --start +2h', 'It would end before it starts.'],
    ['--start-now --for 1h', 'slices-conn reserve needs --bandwidth <rate>.'],
  ])('%s', async (flags, message) => {
    const report = reportOf(await reserve(`${flags} --json`));
    expect([report.exitCode, report.message]).toEqual([2, message]);
  });
});
