import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { readCommandLine, servicesIn } from '../../../src/cli/command-line.ts';
import {
  KIND_OF,
  kindOfArgument,
  kindOfOption,
  valueName,
  type Wanted,
  wantedAt,
} from '../../../src/cli/completion/candidates.ts';
import { allCommands } from '../../fixtures/command-world.ts';

const program = await allCommands();

/** The words of a line before the one that is typed. */
const lineAt = (line: string) => readCommandLine(program, line.split(' ').slice(0, -1));
/** The candidates at the end of a line, which is written as a person types it. */
const at = (line: string): Wanted => wantedAt(lineAt(line), line.split(' ').at(-1) ?? '');
const values = ({ known }: Wanted): string[] => known.map(({ value }) => value);

const COMMANDS = program
  .createHelp()
  .visibleCommands(program)
  .map((command) => command.name());
const LIST = [
  ...[
    '--all',
    '--all-experiments',
    '--mine',
    '--site',
    '--state',
    '--start',
    '--end',
    '--timeline',
    '--ics',
    '--forget',
  ],
];
const GROUP = ['list', 'show', 'use', 'token'];
const RESERVE = [
  ...[
    '--bandwidth',
    '--start',
    '--start-now',
    '--end',
    '--for',
    '--earliest',
    '--volume',
    '--via',
    '--avoid',
    '--direct',
    '--name',
    '--description',
    '--wait',
    '--dry-run',
  ],
  '--save',
  '--idempotency-key',
  '--allow-unsigned',
];
const GLOBAL = [
  ...['--profile', '--experiment', '--project', '--offline', '--json', '--quiet', '--debug', '--no-input'],
  ...['--yes', '--timeout', '--ca-file', '--color', '--tz'],
];

describe('commands', () => {
  test.each<[string, readonly string[]]>([
    ['', COMMANDS],
    ['re', COMMANDS],
    ['experiment ', ['list', 'show', 'create', 'use', 'token', 'ci']],
    ['project ', GROUP],
    ['nonsense ', []],
    ['project nonsense ', []],
    ['--json ', COMMANDS],
    ['--json project ', GROUP],
    ['project --json ', GROUP],
    ['--profile project ', COMMANDS],
    ['--profile=x ', COMMANDS],
    ['--profile x project ', GROUP],
    ['project --profile x ', GROUP],
    ['--profile --json project ', GROUP],
    ['--timeout 5 --tz UTC --color never project ', GROUP],
    ['--install-completion zsh ', COMMANDS],
    ['--install-completion --json ', COMMANDS],
    ['--nonsense project ', GROUP],
    ['-- ', COMMANDS],
  ])('%j', (line, expected) => {
    expect(values(at(line))).toEqual(expected);
    expect(at(line)).toMatchObject({ files: false, before: '' });
  });

  test('each command has its summary', () => {
    expect(at('').known).toContainEqual({ value: 'reserve', description: 'book a link between two sites' });
    expect(at('').known.filter(({ description }) => description === '')).toEqual([]);
  });

  test('completion hides what help hides', () => {
    expect(values(at('__'))).not.toContain('__complete');
    expect(values(at('experiment '))).not.toContain('help');
  });
});

test('of a list of sites the last is completed: neither an end of the link, nor one that stands before it', () => {
  const list = { typed: 'fr', live: { kind: 'sites', without: ['se-kth', 'es-uc3m', 'fr-lille'] } };
  expect(at('reserve se-kth es-uc3m --avoid fr-lille,fr')).toMatchObject({ ...list, before: 'fr-lille,' });
  expect(at('run se-kth es-uc3m --via=fr-lille,fr')).toMatchObject({ ...list, before: '--via=fr-lille,' });
});

describe('flags', () => {
  test.each<[string, readonly string[]]>([
    ['-', ['--version', '--install-completion', ...GLOBAL, '--help']],
    ['--off', ['--version', '--install-completion', ...GLOBAL, '--help']],
    ['list -', [...LIST, '--help', ...GLOBAL]],
    ['project -', ['--help', ...GLOBAL]],
    ['project list --', ['--help', ...GLOBAL]],
    ['list --all -', [...LIST.slice(1), '--help', ...GLOBAL]],
    ['--json list -', [...LIST, '--help', ...GLOBAL.filter((flag) => flag !== '--json')]],
    ['list --profile=x -', [...LIST, '--help', ...GLOBAL.filter((flag) => flag !== '--profile')]],
    ['list --no-input -', [...LIST, '--help', ...GLOBAL.filter((flag) => flag !== '--no-input')]],
    ['list -- -', []],
  ])('%j', (line, expected) => {
    expect(values(at(line))).toEqual(expected);
  });

  test('a repeatable flag is offered again', () => {
    expect(values(at('token issue --claim a=b --claim c=d --'))).toContain('--claim');
    expect(values(at('token issue --sub x --'))).not.toContain('--sub');
  });

  test.each<[string, readonly string[]]>([
    ['reserve be-gent1 pl-poznan1 ', RESERVE],
    ['reserve be-gent1 pl-poznan1 --bandwidth 1G ', RESERVE.slice(1)],
    ['list ', LIST],
    ['sites ', []],
    ['list --all ', LIST.slice(1)],
    ['reserve be-gent1 pl-poznan1 x', []],
    ['reserve be-gent1 pl-poznan1 -- ', []],
  ])(
    '%j: where only flags can follow, the command’s own flags are offered without a dash',
    (line, expected) => {
      expect(values(at(line))).toEqual(expected);
    },
  );
});

describe('choices', () => {
  test.each<[string, readonly string[]]>([
    ['--color ', ['auto', 'always', 'never']],
    ['list --color a', ['auto', 'always', 'never']],
    ['serve --auto-approve ', ['lead', 'admin', 'member', 'viewer']],
    ['completion ', ['bash', 'zsh', 'fish']],
    ['list --state ', ['scheduled', 'active', 'ended', 'deleted', 'unknown']],
    ['completion bash ', []],
    ['--install-completion ', ['bash', 'zsh', 'fish']],
    ['help ', [...COMMANDS, 'exit-codes', 'environment', 'output', 'times', 'flags', 'licences']],
    ['help experiment ls ', []],
    ['help flags ', []],
    ['help token ', ['inspect', 'issue', 'keygen']],
    ['help token issue ', []],
    ['help times ', []],
  ])('%j', (line, expected) => {
    expect(values(at(line))).toEqual(expected);
  });

  test('--flag=value completes after the sign', () => {
    expect(at('list --color=al')).toMatchObject({ typed: 'al', before: '--color=' });
    expect(values(at('list --color=al'))).toEqual(['auto', 'always', 'never']);
    expect(at('--json=')).toMatchObject({ typed: '', before: '--json=', known: [] });
    expect(at('--nonsense=')).toMatchObject({ known: [], files: false });
  });

  test('a flag whose value can be left out may be followed by another', () => {
    expect(values(at('--install-completion --j'))).toContain('--json');
  });
});

describe('live values', () => {
  test.each<[string, string | undefined, string[]]>([
    ['reserve ', 'sites', []],
    ['reserve be-', 'sites', []],
    ['reserve be-gent1 ', 'sites', ['be-gent1']],
    ['reserve --bandwidth 1G be-gent1 p', 'sites', ['be-gent1']],
    ['reserve be-gent1 --start-now ', 'sites', ['be-gent1']],
    ['--json reserve --profile x --for 2h ', 'sites', []],
    ['--profile ', 'profiles', []],
    ['list --profile ', 'profiles', []],
    ['list --profile=o', 'profiles', []],
    ['--experiment ', 'experiments', []],
    ['list --experiment=', 'experiments', []],
    ['experiment show ', 'experiments', []],
    ['experiment use de', 'experiments', []],
    ['experiment token ', 'experiments', []],
    ['--project ', 'projects', []],
    ['project show ', 'projects', []],
    ['project use ', 'projects', []],
    ['project token ', 'projects', []],
    ['show ', 'reservations', []],
    ['update con_', 'reservations', []],
    ['delete ', 'reservations', []],
    ['delete con_a con_b ', 'reservations', ['con_a', 'con_b']],
    ['delete --yes con_a con_', 'reservations', ['con_a']],
    ['vlan link.jwt --dev eth1 --site ', 'ends', []],
    ['experiment create ', undefined, []],
    ['experiment create x --end ', undefined, []],
    ['reserve a b --start 2026-12-01T10:', undefined, []],
    ['reserve a b --bandwidth ', undefined, []],
    ['--timeout ', undefined, []],
  ])('%j: %s', (line, kind, without) => {
    const { live, files, known } = at(line);
    expect(live && [live.kind, live.without]).toEqual(kind === undefined ? undefined : [kind, without]);
    expect([known, files]).toEqual([[], false]);
  });

  test('one end of a reservation: the reservation or a file with its token, then one of its sites', () => {
    expect(at('vlan ')).toMatchObject({ live: { kind: 'reservations' }, files: true });
    expect(at('vlan link.jwt --dev eth1 --site be').live).toMatchObject({ kind: 'ends', of: 'link.jwt' });
  });

  test('a command to run is completed after two dashes, before them the flags', () => {
    const run = 'run be-gent1 pl-poznan1 --bandwidth 1G --for 1h ';
    expect(values(at(run))).toEqual([
      '--earliest',
      '--wait',
      '--allow-unsigned',
      '--extend',
      '--with-token',
      '--on-lost',
      '--via',
      '--avoid',
      '--direct',
    ]);
    expect(values(at(`${run}--on-lost `))).toEqual(['warn', 'term']);
    for (const typed of ['-- ', '-- ./mea', '-- iperf3 --json ', '-- iperf3 --']) {
      expect(at(run + typed)).toMatchObject({ known: [], files: true });
    }
  });

  test('a NAME argument completes to profiles in the group profile', () => {
    const group = program.createCommand('profile');
    const [use, show] = [group.command('use <name>'), group.command('show [name]')];
    for (const command of [use, show]) {
      expect(command.registeredArguments.map((argument) => kindOfArgument(command, argument))).toEqual([
        'profiles',
      ]);
    }
  });
});

describe('files', () => {
  test.each<[string, boolean]>([
    ['verify ', true],
    ['verify x ', true],
    ['verify --jwks ', true],
    ['verify --issuer ', false],
    ['token inspect ', true],
    ['token issue --key ', true],
    ['token keygen --out ', true],
    ['reserve a b --save ', true],
    ['reserve a b --save=x', true],
    ['--ca-file ', true],
    ['serve --topology ', true],
    ['serve --ready-file ', true],
    ['serve --data ', true],
    ['serve --port ', false],
    ['reserve ', false],
    ['', false],
  ])('%j: %s', (line, files) => {
    expect(at(line).files).toBe(files);
  });
});

describe('the services in a line', () => {
  test.each<[string, object]>([
    ['show ', {}],
    ['--offline show ', { offline: true }],
    ['show --offline ', { offline: true }],
    ['--profile x show ', { profile: 'x' }],
    ['show --profile=x ', { profile: 'x' }],
    ['--profile x --profile y show ', { profile: 'y' }],
    ['--experiment demo --project p show ', { experiment: 'demo', project: 'p' }],
    ['--ca-file ca.pem show ', { caFile: 'ca.pem' }],
    ['--json --timeout 5 show ', {}],
    ['show -- --offline ', {}],
    ['show --profile ', {}],
  ])('%j', (line, services) => {
    expect(servicesIn(lineAt(line))).toEqual(services);
  });
});

describe('the table of kinds', () => {
  const all = (command: Command): Command[] => [command, ...command.commands.flatMap(all)];
  const places = all(program).flatMap((command) => [
    ...command.options
      .filter((option) => valueName(option) !== '' && !option.argChoices)
      .map((option) => ({
        names: [option.long ?? '', valueName(option)],
        kind: kindOfOption(option),
      })),
    ...command.registeredArguments
      .filter(({ argChoices }) => !argChoices)
      .map((argument) => ({
        names: [`${command.parent?.name()} ${argument.name()}`, argument.name()],
        kind: kindOfArgument(command, argument),
      })),
  ]);

  /** Values that only the person who types knows. */
  const FREE = [
    ...[
      'address',
      'audience',
      'bytes',
      'cidr',
      'device',
      'duration',
      'group/project',
      'id|name',
      'key',
      'key=value',
      'login-id',
      'name',
      'name=value',
      'number',
      'owner/repository',
      'percent',
      'rate',
      'ref',
      'rule-id',
      'seconds',
      'subject',
    ],
    ...['text', 'thumbprint', 'time', 'url', 'user-id', 'zone'],
  ];

  test('every value in the tree has a kind or is free text', () => {
    const free = places.filter(({ kind }) => kind === undefined).map(({ names }) => names.at(-1));
    expect([...new Set(free)].toSorted()).toEqual(FREE);
  });

  test('every name in the table exists in the tree', () => {
    const named = new Set(places.flatMap(({ names }) => names));
    const unused = Object.keys(KIND_OF).filter((name) => !named.has(name));
    expect(unused.filter((name) => name !== 'profile name')).toEqual([]);
  });
});
