import type { Command } from 'commander';
import { describe, expect, it, test } from 'vitest';
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

  test('examples continue after a backslash on a terminal, and stay on one line elsewhere', async () => {
    const example = '  slices-conn reserve be-gent1 pl-poznan1 --bandwidth 1G --start-now --for 2h';
    expect(await helpAt(undefined, ['reserve', '--help'])).toContain(`${example}\n`);
    expect(await helpAt(60, ['reserve', '--help'])).toContain(
      '  slices-conn reserve be-gent1 pl-poznan1 \\\n      --bandwidth 1G --start-now --for 2h\n',
    );
  });

  test('headings are bold on a terminal, unless colour is off', async () => {
    const bold = '\u001b[1mFlags:';
    expect(await helpAt(80, ['--help'])).toContain(bold);
    expect(await helpAt(80, ['--help', '--color', 'never'])).not.toContain(bold);
    expect(await helpAt(80, ['--help'], { NO_COLOR: '1' })).not.toContain(bold);
    expect(await helpAt(undefined, ['--help'])).not.toContain(bold);
  });
});

describe('the first help', () => {
  it('has the commands in groups, then few flags, then examples', async () => {
    const text = await helpAt(80, ['--help'], { NO_COLOR: '1' });
    const headings = [...text.matchAll(/^(\S.*):$/gm)].map(([, name]) => name);
    expect(headings).toEqual([
      'Reservations',
      'Login and experiments',
      'Tokens',
      'Server',
      'Setup',
      'Flags',
      'Examples',
    ]);
    expect(text).not.toContain('--ca-file');
    expect(text.split('\n').length).toBeLessThan(66);
  });

  it('names every command that is not hidden', async () => {
    const text = await helpAt(80, ['--help']);
    const shown = program.createHelp().visibleCommands(program);
    for (const command of shown) expect(text).toContain(`\n  ${command.name()} `);
    expect(text).not.toMatch(/whoami/);
  });

  it('leads to all flags', async () => {
    const text = await helpAt(80, ['help', 'flags']);
    for (const { long } of program.options) expect(text).toContain(`  ${long}`);
  });
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

test('the flags of serve are in groups; no usage has a gap', async () => {
  const text = await helpAt(80, ['serve', '--help', '--all'], { NO_COLOR: '1' });
  const headings = [...text.matchAll(/^(\S.*):$/gm)].map(([, name]) => name);
  const groups = ['Address', 'Data', 'Users', 'Trust', 'TLS and proxy', 'Limits', 'Log'];
  expect(headings).toEqual(expect.arrayContaining(groups));
  expect(headings).not.toContain('Flags');
  for (const args of TEXTS) expect(await helpAt(undefined, args)).not.toMatch(/^Usage:.*\S {2}/m);
});

describe('required flags are marked', () => {
  test.each([
    ['run --help', /--bandwidth <rate> +required: /, /Usage: .* --bandwidth <rate> --for/],
    ['experiment create --help', /--end <time> +required: /, /create <name> --end <time> \[flags\]/],
    ['token issue --help', /--issuer <url> +required: /, /issue --key <file> --issuer <url> \[flags\]/],
  ])('%s', async (command, flag, usage) => {
    const text = unwrapped(await helpAt(80, command.split(' ')));
    expect(text).toMatch(flag);
    expect(text).toMatch(usage);
  });
});

describe('names from other programs', () => {
  test.each([
    ['ls', 'list'],
    ['rm X', 'delete X'],
    ['experiment ls', 'experiment list'],
    ['project ls', 'project list'],
    ['profile ls', 'profile list'],
    ['cancel X', 'delete X'],
    [
      'book be-gent1 be-gent1 --bandwidth 1G --start-now --for 1h',
      'reserve be-gent1 be-gent1 --bandwidth 1G --start-now --for 1h',
    ],
    ['whoami', 'user show'],
  ])('%s is %s', async (short, long) => {
    const world = await offlineWorld();
    const [one, other] = [
      await world.run('--offline', '--json', ...short.split(' ')),
      await world.run('--offline', '--json', ...long.split(' ')),
    ];
    expect(one).toEqual(other);
    await world.server.close();
  });

  test('version prints the version', async () => {
    expect(await helpAt(80, ['version'])).toBe('v0.0.0\n');
  });

  test('help says the short name', async () => {
    expect(await helpAt(80, ['delete', '--help'])).toMatch(/^ {2}or: {2}slices-conn rm$/m);
  });
});

describe('a typing mistake names itself; the next step is what was meant, else the help of its own command', () => {
  test.each([
    [
      'reserve a b --bandwith 1G',
      'slices-conn reserve has no flag --bandwith. Did you mean --bandwidth?',
      '--json reserve a b --bandwidth 1G',
    ],
    [
      'reserve a b --bandwith=1G',
      'slices-conn reserve has no flag --bandwith. Did you mean --bandwidth?',
      '--json reserve a b --bandwidth=1G',
    ],
    [
      'experiment create x --ends +1d',
      'slices-conn experiment create has no flag --ends. Did you mean --end?',
      '--json experiment create x --end +1d',
    ],
    ['lst', 'slices-conn has no command lst. Did you mean list?', '--json list'],
    ['create a b', 'slices-conn has no command create. Did you mean reserve?', '--json reserve a b'],
    ['nonsense', 'slices-conn has no command nonsense.', '--help'],
    ['project lists', 'slices-conn project has no command lists. Did you mean list?', '--json project list'],
    [
      'serve --port 0 --prot 4999',
      'slices-conn serve has no flag --prot. Did you mean --port?',
      '--json serve --port 0 --port 4999',
    ],
    [
      '--prfile local list',
      'slices-conn has no flag --prfile. Did you mean --profile?',
      '--json --profile local list',
    ],
    [
      'project lists --all',
      'slices-conn project has no command lists. Did you mean list?',
      '--json project list --all',
    ],
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
    ['experiment create x', 'slices-conn experiment create needs --end <time>.', 'experiment create --help'],
    [
      'run be-gent1 --for 1h',
      'slices-conn run needs <site2>, <command...> and --bandwidth <rate>.',
      'run --help',
    ],
    ['list x', 'slices-conn list does not take x.', 'list --help'],
    [
      'reserve be-gent1 se-kth --start friday next week 9am --for 8h',
      'slices-conn reserve does not take next week 9am.',
      "--json reserve be-gent1 se-kth --start 'friday next week 9am' --for 8h",
    ],
    ['help exit-code', 'There is no help on "exit-code". Did you mean exit-codes?', 'help exit-codes'],
    ['help exitcodes', 'There is no help on "exitcodes". Did you mean exit-codes?', 'help exit-codes'],
    ['help me', 'There is no help on "me".', '--help'],
    [
      'reserve be-gent1 se-kth --duration 1h',
      'slices-conn reserve has no flag --duration. Did you mean --for?',
      '--json reserve be-gent1 se-kth --for 1h',
    ],
    [
      'reserve be-gent1 se-kth -b 1G',
      'slices-conn reserve has no flag -b. Did you mean --bandwidth?',
      '--json reserve be-gent1 se-kth --bandwidth 1G',
    ],
    [
      'run be-gent1 se-kth --bw=1G',
      'slices-conn run has no flag --bw. Did you mean --bandwidth?',
      '--json run be-gent1 se-kth --bandwidth=1G',
    ],
    ...Object.entries({
      delete: ['release night', 'destroy night', 'bi destroy night'],
      show: ['get night'],
      reserve: ['create be-gent1 se-kth'],
      list: ['reservations', 'bi list'],
      sites: ['list-resources'],
      login: ['auth login', 'auth id-token x'],
      logout: ['auth logout'],
      status: ['auth show'],
    }).flatMap(([meant, typed]) =>
      typed.map((words): [string, string, string] => [
        words,
        `slices-conn has no command ${words.split(' ')[0]}. Did you mean ${meant}?`,
        `--json ${meant}${/ (?:night|be-gent1 se-kth)$/.exec(words)?.[0] ?? ''}`,
      ]),
    ),
    ...(
      [
        ['rename night day', '--name NAME', '--name day'],
        ['extend night 2h', '--extend DURATION', '--extend 2h'],
        ['extend night --for 2h', '--extend DURATION', '--for 2h'],
        ['bi extend night 2h', '--extend DURATION', '--extend 2h'],
      ] as const
    ).map(([typed, meant, next]): [string, string, string] => [
      typed,
      `slices-conn has no command ${typed.split(' ')[0]}. Did you mean update ID ${meant}?`,
      `--json update night ${next}`,
    ]),
    ...Object.entries({
      'list --format json': ['list', '--format', '--json', 'list --json'],
      'list --output=json': ['list', '--output', '--json', 'list --json'],
      'show night -o json': ['show', '-o', '--json', 'show night --json'],
      'update night -d 3h': ['update', '-d', '--for', 'update night --for 3h'],
      'experiment create e -d 3h': [
        ...['experiment create', '-d', '--end +DURATION'],
        'experiment create e --end +3h',
      ],
    }).map(([typed, [command, flag, meant, next]]) => [
      typed,
      `slices-conn ${command} has no flag ${flag}. Did you mean ${meant}?`,
      `--json ${next}`,
    ]),
  ])('%s', async (command, message, next) => {
    const world = commandWorld(NO_SERVICE);
    const { exitCode, stderr } = await world.run('--json', ...command.split(' '));
    expect(exitCode).toBe(2);
    const { error } = JSON.parse(stderr);
    expect(error).toMatchObject({ message, fix: `slices-conn ${next}` });
  });

  test.each<[command: string[], message: string]>([
    [['reserve', 'be-gent1', 'pl-poznan1', '--save', ''], '--save needs <file>.'],
    [['show', 'gent', '--save='], '--save needs <file>.'],
    [['list', '--ca-file', ''], '--ca-file needs <file>.'],
    [['availability', 'be-gent1', '--svg', ''], '--svg needs <file>.'],
    [['vlan', 'gent', '--dev', 'eth1', '--out', ''], '--out needs <dir>.'],
    [['vlan', '', '--dev', 'eth1'], 'slices-conn vlan needs <id|file>.'],
    [['probe', 'gent', '--dev', 'eth1', '--peer', '10.0.0.2', '--far', ''], '--far needs <file>.'],
    [['verify', ''], 'slices-conn verify needs <file>.'],
    [['verify', '--jwks', ''], '--jwks needs <file|url>.'],
    [['plan', ''], 'slices-conn plan needs <file>.'],
    [['token', 'keygen', '--out', ''], '--out needs <dir>.'],
    [['serve', '--ready-file', ''], '--ready-file needs <file>.'],
    [['serve', 'backup', ''], 'slices-conn serve backup needs <file>.'],
  ])('%j: a path that is empty', async (command, message) => {
    const { exitCode, stderr } = await commandWorld(NO_SERVICE).run('--json', ...command);
    expect([exitCode, JSON.parse(stderr).error.message]).toEqual([2, message]);
  });

  test('a topic that does not exist: all that exist are named', async () => {
    const { stderr } = await commandWorld(NO_SERVICE).run('help', 'nope');
    for (const topic of [...HELP_TOPICS, 'licences']) expect(stderr).toContain(topic);
  });
});
