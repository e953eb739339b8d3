import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { pathOf } from '../../src/cli/help-layout.ts';
import { HELP_TOPICS } from '../../src/cli/help-topics.ts';
import { allCommands, commandWorld, NO_SERVICE, offlineWorld } from '../fixtures/command-world.ts';
import { recordedStream } from '../fixtures/recorded-stream.ts';

/** What a command prints on a terminal of so many columns; undefined is no terminal. */
async function helpAt(
  columns: number | undefined,
  args: string[],
  variables: Record<string, string> = {},
): Promise<string> {
  const stdout = recordedStream(columns);
  const connection = NO_SERVICE;
  const { exitCode, stderr } = await commandWorld(connection, { stdout, variables }).run(...args);
  expect([exitCode, stderr]).toEqual([0, '']);
  return stdout.text;
}

const program = await allCommands();

/** The words that ask for each help text. */
const TEXTS = [
  ...pathsOf(program).map((path) => [...path, '--help']),
  ...HELP_TOPICS.map((topic) => ['help', topic]),
];

function pathsOf(command: Command): string[][] {
  return [[], ...command.commands.flatMap((child) => pathsOf(child).map((path) => [child.name(), ...path]))];
}

const unwrapped = (text: string): string => text.replaceAll(/ \\\n *|\s+/g, ' ');

describe('a help text fits its terminal', () => {
  test.each([60, 80, 120, 200])('of %i columns, and says the same as elsewhere', async (columns) => {
    for (const args of TEXTS) {
      const text = await helpAt(columns, args, { NO_COLOR: '1' });
      // Only a word that is longer than a line, such as an address, sticks out, with the flag that it belongs to.
      const words = (line: string) => line.replace(/ \\$/, '').trim().split(/\s+/);
      const tooLong = text
        .split('\n')
        .filter((line) => line.length > columns && words(line).length > (/^ +--/.test(line) ? 2 : 1));
      expect([args, tooLong]).toEqual([args, []]);
      expect(unwrapped(text)).toBe(unwrapped(await helpAt(undefined, args)));
    }
  });

  test('every command that stands by itself can be pasted, whatever its heading', async () => {
    for (const args of TEXTS) {
      const narrow = (await helpAt(60, args, { NO_COLOR: '1' })).replaceAll(/ \\\n +/g, ' ').split('\n');
      const commands = (await helpAt(undefined, args)).match(/^ {2}(?:sudo )?slices-conn \S.*$/gm) ?? [];
      expect(commands.filter((command) => !narrow.includes(command))).toEqual([]);
    }
  });
});

test('headings are bold on a terminal, unless colour is off', async () => {
  const bold = '\u001b[1mFlags:';
  expect(await helpAt(80, ['--help'])).toContain(bold);
  expect(await helpAt(80, ['--help', '--color', 'never'])).not.toContain(bold);
  expect(await helpAt(80, ['--help'], { NO_COLOR: '1' })).not.toContain(bold);
  expect(await helpAt(undefined, ['--help'])).not.toContain(bold);
});

test('the first help names every command that is not hidden', async () => {
  const text = await helpAt(80, ['--help']);
  const shown = program.createHelp().visibleCommands(program);
  for (const command of shown) expect(text).toContain(`\n  ${command.name()} `);
  expect(text).not.toMatch(/whoami/);
});

test('a command shows 12 flags of its own at most, and all of them with --all', async () => {
  const all = (command: Command): Command[] => [command, ...command.commands.flatMap(all)];
  for (const command of all(program).filter(({ parent }) => parent)) {
    const args = [...pathOf(command).split(' ').slice(1), '--help'];
    const flagsOf = (text: string) => text.match(/^ {2}--\S+/gm) ?? [];
    expect([args, flagsOf(await helpAt(120, args)).length <= 12]).toEqual([args, true]);
    expect([args, flagsOf(await helpAt(120, [...args, '--all'])).length]).toEqual([
      args,
      command.options.length,
    ]);
  }
});

test.each([
  ['ls', 'list'],
  ['rm X', 'delete X'],
  ['cancel X', 'delete X'],
  [
    'book be-gent1 be-gent1 --bandwidth 1G --start-now --for 1h',
    'reserve be-gent1 be-gent1 --bandwidth 1G --start-now --for 1h',
  ],
  ['whoami', 'user show'],
])('%s is %s', async (short, long) => {
  const world = await offlineWorld();
  const run = (words: string) => world.run('--offline', '--json', ...words.split(' '));
  expect(await run(short)).toEqual(await run(long));
  await world.server.close();
});

test('version prints the version; help says the short name, and is what --help prints', async () => {
  expect(await helpAt(80, ['version'])).toBe('v0.0.0\n');
  expect(await helpAt(80, ['delete', '--help'])).toMatch(/^ {2}or: {2}slices-conn rm$/m);
  for (const path of pathsOf(program).filter(([first]) => first !== 'help'))
    expect(await helpAt(80, ['help', ...path])).toBe(await helpAt(80, [...path, '--help']));
  for (const other of [[], ['-h'], ['help']])
    expect(await helpAt(80, other)).toBe(await helpAt(80, ['--help']));
});

describe('a typing mistake names itself; the next step is what was meant, else the help of its own command', () => {
  const flag = (command: string, wrong: string, meant: string) =>
    `slices-conn ${command} has no flag ${wrong}. Did you mean ${meant}?`;
  const noCommand = (wrong: string, meant: string, group = '') =>
    `slices-conn${group} has no command ${wrong}. Did you mean ${meant}?`;

  test.each<[typed: string, message: string, next: string]>([
    [
      'reserve a b --bandwith 1G',
      flag('reserve', '--bandwith', '--bandwidth'),
      '--json reserve a b --bandwidth 1G',
    ],
    [
      'experiment create x --ends +1d',
      flag('experiment create', '--ends', '--end'),
      '--json experiment create x --end +1d',
    ],
    ['serve --port 0 --prot 4999', flag('serve', '--prot', '--port'), '--json serve --port 0 --port 4999'],
    [
      '--prfile local list',
      'slices-conn has no flag --prfile. Did you mean --profile?',
      '--json --profile local list',
    ],
    ['lst', noCommand('lst', 'list'), '--json list'],
    ['nonsense', 'slices-conn has no command nonsense.', '--help'],
    ['maintenance list', 'slices-conn maintenance is planned; this version does not have it yet.', '--help'],
    // The name of a member that every object has.
    ['constructor', 'slices-conn has no command constructor.', '--help'],
    ['project lists --all', noCommand('lists', 'list', ' project'), '--json project list --all'],
    ['profile use', 'slices-conn profile use needs <name>.', 'profile use --help'],
    [
      'list --state foo',
      '--state foo: it must be one of scheduled, active, ended, deleted, unknown.',
      'list --help',
    ],
    [
      'completion tcsh',
      'slices-conn completion tcsh: it must be one of bash, zsh, fish.',
      'completion --help',
    ],
    ['list --tz Foo', '--tz Foo: it must be a time zone, such as Europe/Brussels.', 'list --help'],
    ['list --state', '--state needs <state>.', 'list --help'],
    ['list --ics --timeline', "--timeline and --ics can't be given together.", 'list --help'],
    ['reserve --end 14:00 --for 2h', "--end and --for can't be given together.", 'reserve --help'],
    ['reserve --start-now --start now', "--start and --start-now can't be given together.", 'reserve --help'],
    ['update x --extend 1h --end 14:00', "--extend and --end can't be given together.", 'update --help'],
    ['update x --for 1h --end 14:00', "--end and --for can't be given together.", 'update --help'],
    [
      'availability x --for 1h --end 14:00',
      "--end and --for can't be given together.",
      'availability --help',
    ],
    ['experiment create x', 'slices-conn experiment create needs --end <time>.', 'experiment create --help'],
    [
      'run be-gent1 --for 1h',
      'slices-conn run needs <site2>, <command...> and --bandwidth <rate>.',
      'run --help',
    ],
    ['list x', 'slices-conn list does not take x.', 'list --help'],
    [
      'vlan link.jwt --format=netplam',
      '--format netplam: it must be one of iproute2, networkd, netplan, nmcli, ifupdown, ansible, json. Did you mean netplan?',
      '--json vlan link.jwt --format netplan',
    ],
    ['serve --memory --data x', "--memory and --data can't be given together.", 'serve --help'],
    ['help exit-code', 'There is no help on "exit-code". Did you mean exit-codes?', 'help exit-codes'],
    ['help exitcodes', 'There is no help on "exitcodes". Did you mean exit-codes?', 'help exit-codes'],
    // Words of other programs.
    ...Object.entries({
      delete: ['release night', 'destroy night', 'bi destroy night'],
      show: ['get night'],
      reserve: ['create be-gent1 se-kth', 'bi create'],
      list: ['reservations', 'bi list'],
      sites: ['list-resources'],
      login: ['auth login', 'auth id-token x'],
      logout: ['auth logout'],
      status: ['auth show'],
      'update ID --name NAME': ['rename night day'],
      'update ID --extend DURATION': ['extend night 2h', 'bi extend night 2h'],
    }).flatMap(([meant, typed]) =>
      typed.map((words): [string, string, string] => [
        words,
        noCommand(words.split(' ')[0] ?? '', meant),
        `${meant.split(' ')[0]} --help`,
      ]),
    ),
    ...(
      [
        ['reserve', '--duration', '--for'],
        ['reserve', '-b', '--bandwidth'],
        ['run', '--bw=1G', '--bandwidth'],
        ['experiment create', '-d', '--end +DURATION'],
        ['list', '--format', '--json'],
        ['list', '--output=json', '--json'],
        ['show', '-o', '--json'],
      ] as const
    ).map(([command, wrong, meant]): [string, string, string] => [
      `${command} x ${wrong} 1`,
      flag(command, wrong.split('=')[0] ?? '', meant),
      `${command} --help`,
    ]),
  ])('%s', async (command, message, next) => {
    const { exitCode, stderr } = await commandWorld(NO_SERVICE).run('--json', ...command.split(' '));
    expect(exitCode).toBe(2);
    expect(JSON.parse(stderr).error).toMatchObject({ message, fix: `slices-conn ${next}` });
  });

  test.each<[command: string[], needed: string]>([
    [['reserve', 'be-gent1', 'pl-poznan1', '--save', ''], '--save needs <file>.'],
    [['vlan', 'gent', '--dev', 'eth1', '--out', ''], '--out needs <dir>.'],
    [['vlan', '', '--dev', 'eth1'], 'slices-conn vlan needs <id|file>.'],
    [['verify', ''], 'slices-conn verify needs <file>.'],
    [['serve', 'backup', ''], 'slices-conn serve backup needs <file>.'],
  ])('%j: a path that is empty', async (command, message) => {
    const { exitCode, stderr } = await commandWorld(NO_SERVICE).run('--json', ...command);
    expect([exitCode, JSON.parse(stderr).error.message]).toEqual([2, message]);
  });
});
