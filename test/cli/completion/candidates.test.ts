import type { Argument, Command, Option } from 'commander';
import { describe, expect, test } from 'vitest';
import { readCommandLine, servicesIn } from '../../../src/cli/command-line.ts';
import {
  type CompletionSource,
  completionText,
  KIND_OF,
  namesOf,
} from '../../../src/cli/completion/candidates.ts';
import { allCommands } from '../../fixtures/command-world.ts';

const program = await allCommands();

/** The words of a line before the one that is typed. */
const lineAt = (line: string) => readCommandLine(program, line.split(' ').slice(0, -1));

/** What files and services know: for each kind a word that names it, and all of these. */
function sourceOf(names: readonly string[] = [], description = ''): CompletionSource {
  const of = (kind: string) => async () => [...names, kind].map((value) => ({ value, description }));
  return {
    ...{ sites: of('sites'), profiles: of('profiles'), experiments: of('experiments') },
    ...{ projects: of('projects'), reservations: of('reservations') },
  };
}
const nothing = sourceOf();

/** The answer at the end of a line, which is written as a person types it. */
const answerAt = (line: string, source = nothing) =>
  completionText(lineAt(line), line.split(' ').at(-1) ?? '', source);

/** The words that are offered, and at last `files` where those of files are. */
async function at(line: string, source = nothing): Promise<string> {
  const lines = (await answerAt(line, source)).trimEnd().split('\n');
  const files = lines.pop() === ':1' ? ['files'] : [];
  return [...lines.map((each) => each.replace(/\t.*/, '')), ...files].join(' ');
}

const COMMANDS = program
  .createHelp()
  .visibleCommands(program)
  .map((command) => command.name())
  .join(' ');
const LIST = '--all --all-experiments --mine --site --state --start --end --timeline --ics --forget';
const REROUTE = '--via --avoid --direct';
const RESERVE = `--start --start-now --end --for --earliest --volume ${REROUTE} --name --description --wait --dry-run --save --idempotency-key --allow-unsigned`;
const GLOBAL =
  '--profile --experiment --project --offline --json --quiet --debug --no-input --yes --timeout --ca-file --color --tz';
const without = (flags: string, flag: string) => flags.replace(`${flag} `, '');

test.each<[words: string, ...lines: string[]]>([
  [COMMANDS, '', '--json ', '--profile project ', '--profile=x ', '--install-completion zsh '],
  [COMMANDS, '--install-completion --json ', '-- '],
  ['reserve', 'res'],
  ['list show create use token ci', 'experiment '],
  ['list show use token', 'project ', '--json project ', 'project --profile x '],
  ['list show use token', '--profile --json project ', '--timeout 5 --tz UTC --color never project '],
  ['list show use token', '--nonsense project '],
  ['', 'nonsense ', 'project nonsense ', 'list -- -', 'token issue --sub x --su'],
  ['', 'reserve be-gent1 pl-poznan1 x', 'reserve be-gent1 pl-poznan1 -- ', '--json=', '--nonsense='],
  ['', 'completion bash ', 'help experiment ls ', 'help flags ', 'help token issue '],
  ['', 'experiment create ', 'experiment create x --end ', 'reserve a b --start 2026-12-01T10:'],
  ['', 'reserve a b --bandwidth ', '--timeout ', 'verify --issuer ', 'serve --port '],
  [`--version --install-completion ${GLOBAL} --help`, '-'],
  ['--offline', '--off'],
  [`${LIST} --help ${GLOBAL}`, 'list -'],
  [`--help ${GLOBAL}`, 'project -', 'project list --'],
  [`${without(LIST, '--all')} --help ${GLOBAL}`, 'list --all -'],
  [`${LIST} --help ${without(GLOBAL, '--json')}`, '--json list -'],
  [`${LIST} --help ${without(GLOBAL, '--profile')}`, 'list --profile=x -'],
  [`${LIST} --help ${without(GLOBAL, '--no-input')}`, 'list --no-input -'],
  ['--claim', 'token issue --claim a=b --claim c=d --cl'],
  [`--bandwidth ${RESERVE}`, 'reserve be-gent1 pl-poznan1 '],
  [RESERVE, 'reserve be-gent1 pl-poznan1 --bandwidth 1G '],
  [LIST, 'list '],
  ['sites', 'sites ', 'reserve ', 'reserve --bandwidth 1G be-gent1 s'],
  ['sites', '--json reserve --profile x --for 2h ', 'vlan link.jwt --dev eth1 --site '],
  [without(LIST, '--all'), 'list --all '],
  ['auto always never', '--color '],
  ['auto always', 'list --color a'],
  ['--color=always', 'list --color=al'],
  ['lead admin member viewer', 'serve --auto-approve '],
  ['bash zsh fish', 'completion ', '--install-completion '],
  ['scheduled active ended deleted unknown', 'list --state '],
  ['--json', '--install-completion --js'],
  [`${COMMANDS} exit-codes environment output times flags licences`, 'help '],
  ['inspect issue keygen', 'help token '],
  ['profiles', 'list --profile ', 'profile use ', 'profile show '],
  ['--profile=profiles', 'list --profile=p'],
  ['experiments', '--experiment ', 'experiment show ', 'experiment use ', 'experiment token '],
  ['--experiment=experiments', 'list --experiment='],
  ['projects', '--project ', 'project show ', 'project token '],
  ['reservations', 'show ', 'update res', 'delete --yes con_a '],
  ['reservations files', 'vlan '],
  [
    `--earliest --wait --allow-unsigned --extend --with-token --on-lost ${REROUTE}`,
    'run a b --bandwidth 1G --for 1h ',
  ],
  ['warn term', 'run a b --bandwidth 1G --for 1h --on-lost '],
  ['files', 'run a b --for 1h -- ./mea', 'run a b --for 1h -- iperf3 --', 'verify x ', 'verify --jwks '],
  ['files', 'token inspect ', 'token issue --key ', 'token keygen --out ', 'reserve a b --save=x'],
  ['files', '--ca-file ', 'serve --topology ', 'serve --data '],
])('%j after each of %j', async (words, ...lines) => {
  for (const line of lines) expect([line, await at(line)]).toEqual([line, words]);
});

test('each command has its summary, and what help hides is hidden', async () => {
  expect(await answerAt('reserv')).toBe('reserve\tbook a link between two sites\n:0\n');
  expect(await answerAt('')).not.toMatch(/\t$|^__complete/m);
});

describe('of what is known elsewhere', () => {
  const sites = sourceOf(['be-gent1', 'fr-lille', 'fr-nantes', 'pl-poznan1']);

  test.each<[string, string]>([
    // Those with this beginning, else the only one that contains it.
    ['reserve be', 'be-gent1'],
    ['reserve fr-', 'fr-lille fr-nantes'],
    ['reserve poznan', 'pl-poznan1'],
    ['reserve po', ''],
    ['reserve fr-x', ''],
    // Of several a shell would insert the common beginning.
    ['reserve gen', 'be-gent1'],
    ['reserve -e', ''],
    // What the line has already is not wanted again; of a list of sites the last one is completed.
    ['reserve be-gent1 ', 'fr-lille fr-nantes pl-poznan1 sites'],
    ['reserve be-gent1 --start-now be', ''],
    ['reserve pl-poznan1 poznan', ''],
    ['reserve be-gent1 pl-poznan1 --avoid fr-lille,', 'fr-lille,fr-nantes fr-lille,sites'],
    ['run be-gent1 pl-poznan1 --via=fr-lille,fr', '--via=fr-lille,fr-nantes'],
  ])('%j: %s', async (line, words) => {
    expect(await at(line, sites)).toBe(words);
  });

  test('several that contain it are not offered', async () => {
    expect(await at('reserve site', sourceOf(['aa-site1', 'bb-site2']))).toBe('sites');
    expect(await at('reserve ite1', sourceOf(['aa-site1', 'bb-site1']))).toBe('');
  });

  test('reservations of the line are left out', async () => {
    const two = sourceOf(['con_a', 'con_b', 'con_c']);
    expect(await at('delete con_a con_b con', two)).toBe('con_c');
  });

  test.each<[string, string]>([
    ['tags', 'demo\u{e0041}'],
    ['a Hangul filler', 'demo\u3164'],
    ['half a Hangul filler', 'de\uffa0mo'],
    ['a variation selector', 'demo\ufe0f'],
    ['zero width', 'de\u200bmo'],
    ['a command', 'demo$(touch run)'],
  ])('row 60: a name with %s is never offered', async (_, name) => {
    expect(await at('experiment use ', sourceOf([name]))).toBe('experiments');
  });

  test('row 60: a name that a list holds twice is offered once', async () => {
    const twice = sourceOf(['demo', 'demo'], '$(touch run)');
    expect(await answerAt('experiment use d', twice)).toBe('demo\t$(touch run)\n:0\n');
  });

  test.each([
    ...['$(reboot)', '`id`', 'a b', "a'b", 'a"b', 'a\\b', 'a\nb', 'a\tb', '-x', '--yes', ':1', '~root'],
    ...['a;b', '*', '', 'a{b,c}', '\u001b[2J', 'a\u202eb', '=ls', '!!'],
  ])('%j, which a shell does not take as one plain word, is not offered', async (value) => {
    expect(await at('reserve ', sourceOf([value]))).toBe('sites');
  });

  test.each(['demo', 'con_conn.example.org_01jd3x', 'größe', 'a@b', 'a:b', 'a=b', 'v1.2+x'])(
    '%j is offered',
    async (value) => {
      expect(await at('reserve ', sourceOf([value]))).toBe(`${value} sites`);
    },
  );

  test('a description stays on its line and shows its control characters', async () => {
    const text = await answerAt('reserve x', sourceOf(['x'], 'one\ntwo\tthree\u001b[31m'));
    expect(text).toBe('x\tone\\u000atwo\\u0009three\\u001b[31m\n:0\n');
  });
});

test.each<[string, object]>([
  ['show ', {}],
  ['show --offline ', { offline: true }],
  ['show --profile=x ', { profile: 'x' }],
  ['--profile x --profile y show ', { profile: 'y' }],
  ['--experiment demo --project p show ', { experiment: 'demo', project: 'p' }],
  ['--ca-file ca.pem show ', { caFile: 'ca.pem' }],
  ['show -- --offline ', {}],
])('the services in %j', (line, services) => {
  expect(servicesIn(lineAt(line))).toEqual(services);
});

test('every value in the tree has a kind or is free text, and every name in the table of kinds exists', () => {
  const all = (command: Command): Command[] => [command, ...command.commands.flatMap(all)];
  const places = all(program).flatMap((command) =>
    [...command.options, ...command.registeredArguments]
      .filter((place: Option | Argument) => !place.argChoices)
      .map((place) => namesOf(place, command))
      .filter(([, name]) => name !== ''),
  );
  /** Values that only the person who types knows. */
  const FREE = [
    ...['address', 'audience', 'bytes', 'cidr', 'device', 'duration', 'group/project', 'id|name', 'key'],
    ...[
      'key=value',
      'login-id',
      'name',
      'name=value',
      'number',
      'owner/repository',
      'percent',
      'rate',
      'ref',
    ],
    ...['rule-id', 'seconds', 'subject', 'text', 'thumbprint', 'time', 'url', 'user-id', 'zone'],
  ];
  const free = places.filter((names) => !names.some((name) => KIND_OF.has(name)));
  expect([...new Set(free.map((names) => names.at(-1)))].toSorted()).toEqual(FREE);
  const named = new Set(places.flat());
  expect([...KIND_OF.keys()].filter((name) => !named.has(name))).toEqual([]);
});
