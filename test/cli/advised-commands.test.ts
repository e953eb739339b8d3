import { readdirSync, readFileSync } from 'node:fs';
import { parseSync } from 'oxc-parser';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { commandReference } from '../../src/build/command-reference.ts';
import { nextStep } from '../../src/cli/print/failure-report.ts';
import { Failure } from '../../src/contract/failure.ts';
import { PROBLEM_CODES } from '../../src/contract/problems.ts';
import type { ServeOptions } from '../../src/operate/options.ts';
import { checkSettings } from '../../src/operate/settings.ts';
import { createReferenceServer, type ReferenceServer } from '../../src/reference-server.ts';
import type { Connection } from '../../src/session/login/connection.ts';
import { type CommandWorld, commandWorld, serverCommands, tokenOf } from '../fixtures/command-world.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { NOW } from '../fixtures/tokens.ts';

/** Thrown where a command reached what it is for, and a test has nothing more to see. */
const reached = async (): Promise<never> => {
  throw new Failure('network', 'Reached.');
};

const folder = temporaryFolder();
let server: ReferenceServer;
let world: CommandWorld;
/** A reservation that exists; examples have another id. */
let id = '';

beforeAll(async () => {
  server = await createReferenceServer({
    now: () => NOW,
    ci: { issuers: { github: 'https://ci.example.org', gitlab: 'https://gitlab.example.org' } },
  });
  const connection: Connection = {
    fetch: server.fetch,
    userToken: tokenOf(() => server.signIn('lead')),
    login: { path: 'login', startLogin: reached, keep: reached, read: () => undefined, end: reached },
    machineLogin: { start: reached, check: reached },
    close: async () => undefined,
  };
  world = commandWorld(connection, {
    variables: { SLICES_CONN_PROFILE: 'offline', SHELL: '/bin/bash' },
    folders: { config: folder, state: folder, cache: folder },
    home: '/home/x',
    writeStartup: async () => undefined,
    server: serverCommands({
      serve: async (options: ServeOptions) => {
        checkSettings(options);
        return reached();
      },
      rotateKeys: reached,
      backUp: reached,
      readAudit: reached,
    }),
    stopSignal: () => new Promise(() => undefined),
    // What waits for a next look would look for ever.
    sleep: reached,
    // It has what the examples name, and does what it is told.
    isRoot: () => true,
    runProgram: async () => ({
      exitCode: 0,
      stdout: JSON.stringify([{ ifname: 'eth1', mtu: 1500, flags: ['UP', 'LOWER_UP'] }]),
      stderr: '',
    }),
    check: async () => undefined,
    start: async () => ({ pid: 1, ended: Promise.resolve(0), signal: () => undefined }),
    startGuardian: async () => ({ tell: async () => undefined, close: () => undefined }),
    privatePath: async (name) => name,
  });
  // What the examples use, in the order of a first day.
  await world.run('token', 'keygen', '--out', 'keys');
  await reserve('--save', 'link.jwt');
  const keys = await server.fetch(new Request('http://offline.localhost/.well-known/jwks.json'));
  world.files.set('keys.json', await keys.text());
  world.files.set('demo.yaml', PLAN);
  world.files.set('be-gent1.json', '{"verdict":"silent","end":null,"heard":[]}');
});
afterAll(async () => {
  await server.close();
});

const PLAN = `version: 1
defaults: {start: 2026-12-01T09:00:00Z, for: 8h, bandwidth: 1G}
reservations:
  gent-poznan: {sites: [be-gent1, pl-poznan1]}
`;

const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--experiment', 'demo'];

async function reserve(...flags: string[]): Promise<void> {
  const { stdout, stderr } = await world.run('--json', ...LINK, '--start', '+1d', '--for', '1h', ...flags);
  if (stderr !== '') throw new Error(stderr);
  id = JSON.parse(stdout).reservation.id;
  const token = await world.run('show', id, '--token', '--experiment', 'demo');
  for (const name of ['-', 'link.jwt', 'monday.jwt', 'tuesday.jwt']) world.files.set(name, token.stdout);
}

/** A shell's commands of this program in a line: their words, without variables before them and redirections. */
function commandsIn(line: string): string[][] {
  const inner = [...line.matchAll(/\$\((slices-conn [^)]*)\)/g)].map(([, command = '']) => command);
  const parts = line.replaceAll(/\$\([^)]*\)/g, 'x').split(/ (?:\||&&) /);
  return [...inner, ...parts].flatMap((part) => {
    const words = [...part.matchAll(/(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\])+/g)].map(([word]) =>
      word.replaceAll(/'([^']*)'|"([^"]*)"|\\(.)/g, '$1$2$3'),
    );
    const at = words.indexOf('slices-conn');
    const end = words.indexOf('>');
    if (at === -1 || words.slice(0, at).some((word) => !word.includes('=') && word !== 'sudo')) return [];
    return [words.slice(at + 1, end === -1 ? undefined : end)];
  });
}

/** Runs a line of a shell; every command of this program in it must work, or reach what it is for. */
async function works(line: string): Promise<void> {
  // Earlier lines may have filled the link, which must be free for a command that runs now.
  if (/^slices-conn .*\brun be/.test(line))
    await world.run('--yes', '--experiment', 'demo', 'delete', '--all');
  // An earlier line may have deleted it.
  if (/\bcon_|\bID\b|\.jwt/.test(line)) await reserve();
  const commands = commandsIn(line.replaceAll(/\bcon_[\w.]+/g, id).replaceAll(/\bID\b/g, id));
  expect(commands, line).not.toEqual([]);
  for (const words of commands) {
    // Several lines create an experiment, so one has to be chosen.
    const isChosen = /\b(?:experiment|project|serve)\b/.test(words.join(' '));
    const chosen = isChosen ? [] : ['--experiment', 'demo'];
    const { exitCode, stderr } = await world.run('--yes', ...chosen, ...words);
    const isFine =
      exitCode === 0 ||
      // Its answer: there is no other end here.
      (words[0] === 'probe' && exitCode === 6) ||
      stderr.includes('Reached.') ||
      ACCEPTED.some((each) => each.test(stderr));
    expect([words.join(' '), isFine ? '' : stderr]).toEqual([words.join(' '), '']);
  }
}

/** Failures that only say that the place of the example is not this test's. */
const ACCEPTED = [
  // It was saved without the key beside it.
  /^error: The file link\.jwt\.jwks\.json can't be read\./,
  // A login's id is another one in each place, and the test's token has no login.
  /^error: You have no login "3f9a0c17"/,
  /^error: This service does not know you as an administrator\./,
  // The service of the example.
  /^error: This server answers for offline\.localhost only\./,
  // The keys and the issuer of another service.
  /^error: The token (?:does not verify|could not be verified)\./,
];

describe('every example of every help works when it is pasted', async () => {
  const blocks = (await commandReference()).split('\nExamples:\n').slice(1);
  const lines = blocks.flatMap((block) => block.split(/\n\n|\n```/)[0]?.split('\n') ?? []);
  const examples = new Set(lines.map((line) => line.trim()).filter((line) => !line.startsWith('#')));

  test.each([...examples])('%s', works);
});

describe('every command in the blocks of a page works when it is pasted', () => {
  // Tours, programs and jobs run in test/e2e, as they stand; what ends in … is not whole.
  const pages = ['README.md', 'src/session/README.md', 'src/vlan/README.md', 'src/operate/README.md'];
  const blocks = pages.flatMap((page) =>
    [...readFileSync(page, 'utf8').matchAll(/^```(\w*)\n([\s\S]*?)^```/gm)].flatMap(
      ([, language, text = '']) =>
        ['', 'text'].includes(language ?? '') ? [text.replaceAll(/\\\n +/g, '')] : [],
    ),
  );
  const commands = blocks.flatMap((block) =>
    [...block.matchAll(/^(?:\$ )?((?:sudo )?)(?:npx )?(slices-conn [^…\n]*)$/gm)].map(
      ([, root = '', command = '']) => root + command,
    ),
  );
  const [, plan = ''] = /^```yaml\n([\s\S]*?)^```/m.exec(readFileSync('README.md', 'utf8')) ?? [];

  test.each([...new Set(commands)])('%s', async (command) => {
    await world.run('--yes', '--experiment', 'demo', 'delete', '--all');
    world.files.set('demo.yaml', plan);
    // The id of a reservation on the page.
    await works(command.replace('xmgw', 'ID'));
    world.files.set('demo.yaml', PLAN);
  });
});

describe('every next step works when it is pasted', () => {
  test.each([...new Set(PROBLEM_CODES.flatMap((code) => nextStep(code) ?? []))])('%s', works);

  // What is made of parts is tried below, by the errors that advise it.
  test.each(adviceInSource())('%s: %s', (_file, command) => works(command));
});

describe('what an error advises works when it is pasted', () => {
  test.each([
    'reserve be-gent1 pl-poznan1 --bandwidth 1G --for 2h',
    'reserve be-gent1 pl-poznan1 --bandwidth 1G --start-now',
    'reserve be-gent1 pl-poznan1 --bandwidth 1X --start-now --for 2h',
    'reserve be-gent1 pl-poznan1 --bandwidth 1G --start-now --for 2x',
    'reserve be-gent1 pl-poznan1 --bandwidth 1G --start soon --for 2h',
    'reserve be-gent1 pl-poznan1 --bandwith 1G --start-now --for 2h',
    'reserve be-gent pl-poznan1 --bandwidth 1G --start-now --for 2h',
    'reserve BE_GENT1 pl-poznan1 --bandwidth 1G --start-now --for 2h',
    "reserve be-gent1 pl-poznan1 --bandwidth 1G --start '2027-02-30 10:00' --for 2h",
    'reserve be-gent1 pl-poznan1 --bandwidth 1,000 --start-now --for 2h',
    'reserve be-gent1 pl-poznan1 --bandwidth 1G --start +15:00 --for 2h',
    'reserve be-gent1 pl-poznan1 --bandwidth 1G --start +2h --start-now --for 2h',
    'list --timeline --ics',
    'list --start +2h --end +1h',
    'show ID --with-key',
    'serve --audience x',
    'update ID --extend 2x',
    'update ID',
    'delete ID --reason x',
    'show con_offline.localhost_01jd3x0m2sf0vrv9mhb1wk6x4q',
    'show x',
    'lst',
    'list --al',
    'help nonsense',
    'experiment use nonsense',
    'experiment show nonsense',
    'experiment create fourth --end +1000d',
    'profile use nonsense',
    'login nonsense',
    'login conn.example.org/path',
    'profile set lab nonsense=1',
    'list --profile slices',
    'watch be-gent1',
    'availability be-gent1 --bandwidth 1G',
    'availability be-gent1 pl-poznan1 --duration 2h',
    'availability be-gent pl-poznan1',
    'reserve be-gent1 pl-poznan1 --bandwidth 500G --for 2h --earliest',
    'reserve be-gent1 pl-poznan1 --volume 90000T --end +1h',
    'reserve be-gent1 pl-poznan1 --volume 90T',
    'reserve be-gent1 pl-poznan1 --bandwidth 500G --start-now --for 2h',
    'run be-gent1 pl-poznan1 --bandwidth 500G --for 2h -- ls --for 3h',
    'run be-gent1 pl-poznan1 --bandwidth 1G --for 9999h -- ls',
    'run be-gent pl-poznan1 --bandwidth 1G --for 2h -- ls',
    'run be-gent1 pl-poznan1 --bandwidth 1G --for 2h ls',
    'serve audit --port 1',
    'serve audit --link be-gent1',
    'serve --tls-cert x.pem',
    'serve --metrics nonsense',
    'serve --trust https://x.example.org=user',
    'serve --trust https://x.example.org=wrong --max-live 3',
    'serve --database postgres://u:p@h/x',
    'completion nonsense',
    'experiment ci add --ref main',
    'verify -',
    'vlan ID --dev eth1',
    'vlan ID --dev eth1 --site be-gnet1',
    'probe ID --dev eth1',
    'apply demo.yaml --experiment nonsense',
    'reserve be-gent1 gr-uth --bandwidth 1G --start-now --for 2h --direct',
    'rename ID',
  ])('%s', async (line) => {
    if (line.includes('ID')) await reserve();
    const [words = []] = commandsIn(`slices-conn ${line.replace('ID', id)}`);
    const chosen = /experiment|serve/.test(line) ? [] : ['--experiment', 'demo'];
    const { exitCode, stderr } = await world.run('--json', ...chosen, ...words);
    expect(exitCode).not.toBe(0);
    const { fix } = JSON.parse(stderr).error;
    // The official client's own commands are not here.
    if (fix?.startsWith('slices ')) return;
    if (fix !== null) await works(fix);
    else expect([3, 6]).toContain(exitCode);
  });
});

/** Every command in the source that is the whole value of a member `fix`, with its file. */
function adviceInSource(): [string, string][] {
  const root = new URL('../../src/', import.meta.url);
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  const found = files.flatMap((file) => {
    const text = readFileSync(new URL(file, root), 'utf8');
    return valuesOfFix(parseSync(file, text).program).flatMap(({ start, end }): [string, string][] => {
      const [, command] = /^'(slices-conn [^']*)'$/.exec(text.slice(start, end)) ?? [];
      return command === undefined ? [] : [[file, command]];
    });
  });
  return [...new Map(found.map((each) => [each.join('\n'), each])).values()];
}

/** A node of a syntax tree, as far as it matters here. */
interface Node {
  type?: unknown;
  key?: { name?: unknown };
  value?: Place;
}
/** Where a node stands. */
interface Place {
  start: number;
  end: number;
}

function valuesOfFix(tree: object): Place[] {
  const node: Node = tree;
  const own = node.type === 'Property' && node.key?.name === 'fix' && node.value ? [node.value] : [];
  const below = Object.values(tree).flatMap((child: unknown) =>
    typeof child === 'object' && child !== null ? valuesOfFix(child) : [],
  );
  return [...own, ...below];
}
