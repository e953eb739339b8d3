import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ReferenceServer } from '../../src/reference-server.ts';
import { reportOf } from '../e2e/command.ts';
import { type CommandWorld, offlineWorld } from '../fixtures/command-world.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { person } from './person.ts';

const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start', '+1h', '--for', '2h'];

let folder: string;
let world: CommandWorld & { server: ReferenceServer };
/** Who sits at the terminal. */
let somebody: ReturnType<typeof person>;

beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(async () => {
  await world.server.close();
});

/** A machine that keeps profiles, and a person at its terminal who gives these answers. */
async function open(...given: (string | undefined)[]): Promise<void> {
  somebody = person(...given);
  world = await offlineWorld({
    folders: { config: folder, state: folder, cache: folder },
    ask: somebody.ask,
  });
}

const run: CommandWorld['run'] = (...args) => world.run('--offline', ...args);
const json = async (...args: string[]) => JSON.parse((await run('--json', ...args)).stdout);
const kept = (): unknown => JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')).profiles.offline;

describe('several active experiments', () => {
  /** Makes another experiment. @returns its id, and the number that a person types to choose it */
  async function another(): Promise<{ id: string; number: string }> {
    const { id } = (await json('experiment', 'create', 'second', '--end', '+1d')).experiment;
    const { items } = await json('experiment', 'list');
    return { id, number: String(items.findIndex((item: { id: string }) => item.id === id) + 1) };
  }

  test('a person chooses one by number, and can keep it in the profile', async () => {
    await open();
    const { id, number } = await another();
    somebody.answers.push(number, 'y');
    const { stdout, stderr } = await run(...LINK);
    expect(stdout).toContain(`second (${id})`);
    expect(stderr).toMatch(
      /^You have several active experiments\. Which one\?\n {2}1 {2}\w+ {2}exp_\S+\n {2}2 {2}\w+ {2}exp_\S+\n$/,
    );
    expect(stderr).toContain(`  ${number}  second  ${id}\n`);
    expect(somebody.questions.at(-1)).toBe('Use it for later commands too, in profile offline? [y/N] ');
    expect(kept()).toEqual({ experiment: id, chosenNames: { [id]: 'second' } });
    expect((await run('list')).exitCode).toBe(0);
    expect(somebody.questions).toHaveLength(2);
  });

  test('with --json nothing is offered, and nothing is kept', async () => {
    await open();
    somebody.answers.push((await another()).number);
    expect((await json('experiment', 'show')).experiment.name).toBe('second');
    expect(somebody.questions).toHaveLength(1);
    expect(kept).toThrow();
  });

  test('a person who chooses none ends the command: exit 0', async () => {
    await open(undefined);
    await another();
    const { exitCode, stdout, stderr } = await run('list');
    expect([exitCode, stdout]).toEqual([0, '']);
    expect(stderr).toMatch(/Nothing was changed\.\n$/);
  });

  test('with --no-input nobody is asked: exit 2', async () => {
    await open();
    await another();
    expect((await run('--no-input', 'list')).exitCode).toBe(2);
    expect(somebody.questions).toEqual([]);
  });
});

test.each([
  ['y', true],
  ['', false],
])('experiment create offers to use the new experiment; answered %j', async (answer, isKept) => {
  await open(answer);
  const { exitCode, stdout } = await run('experiment', 'create', 'second', '--end', '+1d');
  expect(exitCode).toBe(0);
  expect(somebody.questions).toEqual(['Use it for later commands, in profile offline? [y/N] ']);
  const [id] = /exp_\S+/.exec(stdout) ?? [];
  if (isKept) expect(kept()).toMatchObject({ experiment: id });
  else expect(kept).toThrow();
});

describe('reserve without all that it needs', () => {
  /** A person who types a part of the command, and answers the questions about the rest. */
  async function answered(typed: string[], ...given: (string | undefined)[]) {
    await open(...given);
    const { exitCode, stdout, stderr } = await run(...typed);
    // Folded lines of the command end with a backslash.
    const shown = /\nThe command for this:\n([\s\S]*?[^\\])\n/.exec(stderr)?.[1] ?? '';
    return { exitCode, stdout, stderr, command: shown.replaceAll(/\\\n|^ +/g, '').replaceAll(/ +/g, ' ') };
  }

  test.each<[what: string, typed: string, given: string[], command: string]>([
    ['all of it', '', ['2', 'se-kth', '1G', '', '2h'], 'be-gent1 se-kth --bandwidth 1G --start-now --for 2h'],
    [
      'an end in place of a length',
      ' be-gent1 se-kth --bandwidth 1G',
      ['14:00', "'monday 9:00'"],
      "be-gent1 se-kth --bandwidth 1G --start 14:00 --end 'monday 9:00'",
    ],
    [
      'of a volume its deadline',
      ' be-gent1 se-kth --volume 1T --yes',
      ['monday'],
      'be-gent1 se-kth --volume 1T --yes --end monday',
    ],
  ])('on a terminal %s is asked for, and the command is shown and run', async (_, typed, given, command) => {
    const asked = await answered(`reserve${typed}`.split(' '), ...given);
    expect([asked.exitCode, asked.command]).toEqual([0, `slices-conn --offline reserve ${command}`]);
    expect(asked.stdout).toMatch(/^Reserved be-gent1 – se-kth/);
    expect(somebody.answers).toEqual([]);
  });

  test('the sites stand there that a route as it was typed may end at, and what is free in the coming week', async () => {
    const typed = ['reserve', 'be-gent1', '--avoid', 'pl-poznan1'];
    const { stderr, command } = await answered(typed, 'se-kth', '1G', '', '1h');
    expect(stderr).toMatch(/^From be-gent1 to which site\?$/m);
    expect(stderr).not.toMatch(/^ +\d+ {2}(?:pl-poznan1|be-gent1)/m);
    expect(stderr).toMatch(/Free in the coming week, be-gent1 – se-kth:\n *10 Gbps ┤█/);
    expect(command).toBe(
      'slices-conn --offline reserve be-gent1 se-kth --avoid pl-poznan1 --bandwidth 1G --start-now --for 1h',
    );
  });

  test('an answer that can’t be read is asked for again; none ends it: exit 0, and nothing is booked', async () => {
    const given = ['be-gnet1', 'be-gent1', '99', '4', '1X', ''];
    const { exitCode, stdout, stderr } = await answered(['reserve'], ...given);
    expect([exitCode, stdout]).toEqual([0, '']);
    expect(stderr).toContain('Did you mean be-gent1?');
    expect(stderr).toContain('"1X" is not a bandwidth.');
    expect(stderr).toMatch(/Nothing was booked\.\n$/);
  });

  test('a mistake in what was typed is told before anything is asked', async () => {
    expect((await answered(['reserve', '--bandwidth', '1X'])).exitCode).toBe(2);
    expect(somebody.questions).toEqual([]);
  });

  test.each([[['--no-input']], [['--json']]])(
    'with %j all that is missing is named at once: exit 2',
    async (flags) => {
      await open();
      const { exitCode, message } = reportOf(await run('--json', ...flags, 'reserve'));
      expect([exitCode, message]).toEqual([
        2,
        'slices-conn reserve needs <site1>, <site2>, --bandwidth <rate>, a start (--start-now or --start <time>) and an end (--for <duration> or --end <time>).',
      ]);
      expect(somebody.questions).toEqual([]);
    },
  );
});

describe('reserve --save with a file that exists', () => {
  const bookings = async (): Promise<number> => (await json('list', '--all')).items.length;

  test.each<[string, string[], string[], number, boolean, number]>([
    ['yes', ['y'], [], 0, true, 1],
    ['no', ['n'], [], 0, false, 1],
    ['--no-input', [], ['--no-input'], 2, false, 0],
    ['--no-input and --yes', [], ['--no-input', '--yes'], 0, true, 0],
    ['--dry-run, which writes nothing', [], ['--dry-run'], 0, false, 0],
  ])('%s', async (_, given, flags, exitCode, booked, asked) => {
    await open(...given);
    world.files.set('link.jwt', 'precious');
    const result = await run(...LINK, '--save', 'link.jwt', ...flags);
    expect(result.exitCode).toBe(exitCode);
    expect(somebody.questions).toHaveLength(asked);
    expect(await bookings()).toBe(booked ? 1 : 0);
    expect(world.files.get('link.jwt') === 'precious').toBe(!booked);
    if (given[0] === 'n') expect(result).toMatchObject({ stdout: '', stderr: 'Nothing was booked.\n' });
  });
});
