import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ReferenceServer } from '../../src/reference-server.ts';
import { reportOf } from '../e2e/command.ts';
import { type CommandWorld, offlineWorld } from '../fixtures/command-world.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start', '+1h', '--for', '2h'];

let folder: string;
let world: CommandWorld & { server: ReferenceServer };
/** What was asked, and what a person answers to each question; undefined is Ctrl-D. */
let questions: string[];
let answers: (string | undefined)[];

beforeEach(() => {
  folder = temporaryFolder();
  questions = [];
});
afterEach(async () => {
  await world.server.close();
});

/** A machine that keeps profiles, and a person at its terminal who gives these answers. */
async function open(...given: (string | undefined)[]): Promise<void> {
  answers = given;
  world = await offlineWorld({
    folders: { config: folder, state: folder, cache: folder },
    ask: async (question) => {
      questions.push(question);
      return answers.shift();
    },
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
    answers = [number, 'y'];
    const { stdout, stderr } = await run(...LINK);
    expect(stdout).toContain(`second (${id})`);
    expect(stderr).toMatch(
      /^You have several active experiments\. Which one\?\n {2}1 {2}\w+ {2}exp_\S+\n {2}2 {2}\w+ {2}exp_\S+\n$/,
    );
    expect(stderr).toContain(`  ${number}  second  ${id}\n`);
    expect(questions.at(-1)).toBe('Use it for later commands too, in profile offline? [y/N] ');
    expect(kept()).toEqual({ experiment: id, chosenNames: { [id]: 'second' } });
    expect((await run('list')).exitCode).toBe(0);
    expect(questions).toHaveLength(2);
  });

  test('with --json nothing is offered, and nothing is kept', async () => {
    await open();
    answers = [(await another()).number];
    expect((await json('experiment', 'show')).experiment.name).toBe('second');
    expect(questions).toHaveLength(1);
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
    expect(questions).toEqual([]);
  });

  test('a shell that completes a word asks nobody', async () => {
    await open();
    await another();
    await world.run('__complete', '--', '--offline', 'show', '');
    expect(questions).toEqual([]);
  });
});

describe('experiment create', () => {
  test.each([
    ['y', true],
    ['', false],
  ])('offers to use the new experiment; answered %j', async (answer, isKept) => {
    await open(answer);
    const { exitCode, stdout } = await run('experiment', 'create', 'second', '--end', '+1d');
    expect(exitCode).toBe(0);
    expect(questions).toEqual(['Use it for later commands, in profile offline? [y/N] ']);
    const [id] = /exp_\S+/.exec(stdout) ?? [];
    if (isKept) expect(kept()).toMatchObject({ experiment: id });
    else expect(kept).toThrow();
  });
});

describe('reserve --save with a file that exists', () => {
  const bookings = async (): Promise<number> => (await json('list', '--all')).items.length;

  test.each<[string, string[], string[], number, boolean, number]>([
    ['yes', ['y'], [], 0, true, 1],
    ['no', ['n'], [], 0, false, 1],
    ['--yes', [], ['--yes'], 0, true, 0],
    ['--no-input', [], ['--no-input'], 2, false, 0],
    ['--no-input and --yes', [], ['--no-input', '--yes'], 0, true, 0],
    ['--dry-run, which writes nothing', [], ['--dry-run'], 0, false, 0],
  ])('%s', async (_, given, flags, exitCode, booked, asked) => {
    await open(...given);
    world.files.set('link.jwt', 'precious');
    const result = await run(...LINK, '--save', 'link.jwt', ...flags);
    expect(result.exitCode).toBe(exitCode);
    expect(questions).toHaveLength(asked);
    expect(await bookings()).toBe(booked ? 1 : 0);
    expect(world.files.get('link.jwt') === 'precious').toBe(!booked);
    if (given[0] === 'n') expect(result).toMatchObject({ stdout: '', stderr: 'Nothing was booked.\n' });
  });

  test('the suggested command replaces it', async () => {
    await open();
    world.files.set('link.jwt', 'precious');
    const { fix } = reportOf(await run('--no-input', '--json', ...LINK, '--save', 'link.jwt'));
    expect((await world.run(...(fix ?? '').split(' ').slice(1))).exitCode).toBe(0);
    expect(world.files.get('link.jwt')).toMatch(/^eyJ/);
  });

  test('a new file is written without a question', async () => {
    await open();
    expect((await run(...LINK, '--save', 'link.jwt')).exitCode).toBe(0);
    expect(questions).toEqual([]);
  });
});
