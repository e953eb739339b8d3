import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as v from 'valibot';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Changes, type CiIssuer, ciIssuer } from '../fixtures/ci-issuer.ts';
import { COMPILED } from '../fixtures/compiled.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import {
  FILES,
  githubJob,
  gitlabJob,
  inBash,
  type Job,
  type JobRun,
  readAction,
  runJob,
  toldIn,
} from './ci-jobs.ts';
import { newMachine, reportOf, reservationIn } from './command.ts';
import { type Client, LAUNCHER, newClient, serveHere } from './served.ts';

/** The page on CI: its jobs, run as they stand there, and its examples. */
const page = readFileSync(new URL('../../src/packaging/action/README.md', import.meta.url), 'utf8');

function blocks(language: string): string[] {
  return [...page.matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, 'g'))].map(
    ([, block = '']) => block,
  );
}

/** What the jobs install: the machines of the tests have an npm that knows this address only. */
const PACKAGE = 'https://files.example.org/slices-conn-0.1.0.tgz';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const hasJq = spawnSync('jq', ['--version']).status === 0;
if (!hasJq) process.stderr.write('The jobs of the page on CI are NOT TESTED: jq is missing.\n');
// In CI these tests would be green without having run.
const withJq = hasJq || process.env['CI'] ? describe : describe.skip;

/** What every job of the page gets besides its ID tokens. */
let variables: Readonly<Record<string, string>>;
/** The person who looks after the jobs. */
let person: Client;
let github: CiIssuer;
let gitlab: CiIssuer;

beforeAll(async () => {
  [github, gitlab] = await Promise.all([ciIssuer('github'), ciIssuer('gitlab')]);
  const issuers = [github, gitlab].flatMap(({ name, issuer }) => ['--ci-issuer', `${name}=${issuer}`]);
  const { env } = await serveHere('--auto-approve', 'lead', ...issuers);
  variables = { ...env, SLICES_CONN_EXPERIMENT: 'demo', SLICES_CONN_PACKAGE: PACKAGE };
  person = newClient(env);
  await person.command('login');
  // As the page says.
  for (const line of (blocks('')[0] ?? '').trim().split('\n')) {
    await person.result(...line.replace('lab/measure', 'lab/net/measure').split(' ').slice(1));
  }
});

let runs = 0;

/** A machine that nobody has logged in on, as CI gives one to a job. */
function runner() {
  runs += 1;
  const { home } = newMachine();
  const [bin, folder] = [join(home, 'bin'), join(home, 'work')];
  for (const path of [bin, folder]) mkdirSync(path);
  const write = (path: string, lines: readonly string[]): void =>
    writeFileSync(path, `#!/bin/sh\n${lines.join('\n')}\n`, { mode: 0o755 });
  const command = `"${process.execPath}" "${LAUNCHER}"`;
  const program = join(home, 'slices-conn');
  write(program, [`exec ${command} "$@"`]);
  write(join(bin, 'npm'), [
    'case "$*" in',
    `"install -g ${PACKAGE}") ln -s "${program}" "${join(bin, 'slices-conn')}" ;;`,
    `"install --prefix $3 "*" ${PACKAGE}") mkdir "$3/node_modules"; ln -s "${ROOT}" "$3/node_modules/slices-conn" ;;`,
    '*) echo "npm $*" >&2; exit 1 ;;',
    'esac',
  ]);
  write(join(bin, 'apt-get'), ['exit 0']);
  const env = {
    ...{ ...COMPILED, HOME: home, CI: 'true' },
    ...{ CI_JOB_ID: String(runs), GITHUB_RUN_ID: String(runs), GITHUB_RUN_ATTEMPT: '1' },
    PATH: [bin, dirname(process.execPath), '/usr/local/bin', '/usr/bin', '/bin'].join(delimiter),
  };
  return {
    env,
    folder,
    /** Does what the jobs' own first steps do. */
    install: () => symlinkSync(program, join(bin, 'slices-conn')),
    /** What the job does with its link: tells its tags, and ends like this. */
    measuring: (exitCode: number) =>
      write(join(folder, 'measure.sh'), ['echo "$@" > measured', `exit ${exitCode}`]),
    script: (name: string, lines: readonly string[]) => write(join(folder, name), lines),
    /** Loses the answer to the first `reserve`, which the service has booked; nobody waits for the next attempt. */
    losingAnAnswer(state: string) {
      const first = `XDG_STATE_HOME="${join(home, state)}" ${command} "$@" > /dev/null`;
      write(program, [
        `[ "$1" != reserve ] || [ -f lost ] || { ${first} && touch lost; exit 7; }`,
        `XDG_STATE_HOME="${join(home, 'state')}" exec ${command} "$@"`,
      ]);
      write(join(bin, 'sleep'), ['exit 0']);
    },
    read: (name: string) => readFileSync(join(folder, name), 'utf8'),
  };
}

type Runner = ReturnType<typeof runner>;

/** The jobs of the page, without any secret, in an image with bash or without. */
const JOBS: Readonly<Record<string, (shell: 'bash' | 'sh') => Job>> = {
  'GitHub Actions': () => githubJob(blocks('yaml')[1] ?? '', { vars: variables }, github.runner().env),
  'GitLab CI': (shell) =>
    gitlabJob(blocks('yaml')[3] ?? '', variables, (audience) => gitlab.idToken(audience), shell),
};

const Items = v.array(v.object({ reservation: v.object({ id: v.string() }) }));

/** The ids of what the experiment holds. */
async function booked(): Promise<string[]> {
  const items = v.parse(Items, (await person.result('list'))['items']);
  return items.map(({ reservation }) => reservation.id);
}

afterEach(async () => {
  const left = await booked();
  if (left.length > 0) await person.command('delete', '--yes', ...left);
});

/** Whether the state folder is lost too is the program's affair, not the job's: each is tried with one of them. */
const LOST: Readonly<Record<string, string>> = {
  'GitHub Actions': 'other-state',
  'GitLab CI': 'state',
};

withJq.each(Object.entries(JOBS))('the job for %s', (name, jobOn) => {
  let machine: Runner;
  const run = (shell: 'bash' | 'sh'): Promise<JobRun> => runJob(jobOn(shell), machine.folder, machine.env);

  /** The job booked a link, used it, and it is gone. */
  async function expectReleased({ released, log }: JobRun): Promise<void> {
    const link = JSON.parse(machine.read('link.json'));
    const { id, site1_s_tag, site2_s_tag } = reservationIn(link);
    expect(link.verified, log).toBe(true);
    expect(machine.read('measured')).toBe(`${site1_s_tag} ${site2_s_tag}\n`);
    expect(released).toContain(`Deleted ${id}`);
    expect((await person.command('show', id)).exitCode).toBe(3);
    expect(await booked()).toEqual([]);
  }

  test('books once when the answer was lost, and releases the link when what uses it fails', async () => {
    machine = runner();
    machine.measuring(3);
    machine.losingAnAnswer(LOST[name] ?? '');
    const result = await run('sh');
    expect(result.exitCode, result.log).toBe(3);
    expect(machine.read('lost')).toBe('');
    await expectReleased(result);
  });

  test('is refused with 6, and leaves what others have booked', async () => {
    machine = runner();
    machine.measuring(0);
    const all = ['be-gent1', 'pl-poznan1', '--bandwidth', '100G', '--start-now', '--for', '3h'];
    const { id } = reservationIn(await person.result('reserve', ...all));
    const result = await run('bash');
    expect(result.exitCode, result.log).toBe(6);
    expect(result.released).toBe('Nothing was booked.\n');
    expect(() => machine.read('measured')).toThrow('ENOENT');
    expect(await booked()).toEqual([id]);
  });
});

describe('the job of one step', () => {
  const job = () => githubJob(blocks('yaml')[0] ?? '', { vars: variables }, github.runner().env);

  test('ends as its command does, and releases its link', async () => {
    const machine = runner();
    machine.script('measure.sh', ['echo "$SLICES_CONN_SITE1_S_TAG" > measured', 'exit 3']);
    const result = await runJob(job(), machine.folder, machine.env);
    expect(result.exitCode, result.log).toBe(3);
    expect(machine.read('measured')).toMatch(/^\d+\n$/);
    expect(result.log).toMatch(/^Reserved .*\nDeleted con_\S+\n/m);
    expect(await booked()).toEqual([]);
  });

  test('releases its link when the job is cancelled', async () => {
    const machine = runner();
    machine.script('measure.sh', ['echo begun=1 >> "$GITHUB_STATE"', 'exec sleep 600']);
    const { exitCode, log } = await runJob(job(), machine.folder, machine.env, 'begun');
    expect([exitCode, log]).toEqual([130, expect.stringMatching(/^Reserved .*\nDeleted con_\S+\n/m)]);
    expect(await booked()).toEqual([]);
  });
});

describe('the job with the action', () => {
  const EXTRA = `\n          package: ${PACKAGE}`;

  async function run(machine: Runner, more = '', changes: Changes = {}, cancelled?: string): Promise<JobRun> {
    const text = (blocks('yaml')[2] ?? '').replace('for: 1h', `for: 1h${more}`);
    const { env } = github.runner(changes);
    const job = githubJob(text, { vars: variables }, env);
    const token = env['ACTIONS_ID_TOKEN_REQUEST_TOKEN'] ?? '';
    const result = await runJob(job, machine.folder, machine.env, cancelled);
    for (const name of FILES) expect(machine.read(`runner/${name}`)).not.toContain(token);
    expect(result.log).not.toContain(token);
    return result;
  }

  test.each([
    [0, 'the repository', ''],
    [3, 'a tarball', EXTRA],
  ])('ends with %i, and releases the link of %s', async (exitCode, _, more) => {
    const machine = runner();
    machine.measuring(exitCode);
    const result = await run(machine, more);
    expect(result.exitCode, result.log).toBe(exitCode);
    const output = toldIn(join(machine.folder, 'runner/GITHUB_OUTPUT'));
    expect(Object.keys(output).toSorted()).toEqual(Object.keys(readAction().outputs).toSorted());
    const { id = '', site1_s_tag, site2_s_tag, file = '', end } = output;
    expect(machine.read('measured')).toBe(`${site1_s_tag} ${site2_s_tag}\n`);
    const summary = `^Reserved be-gent1 – pl-poznan1, 1000 Mbps until .*: ${id}\n\n- site1_s_tag ${site1_s_tag}\n`;
    expect(machine.read('runner/GITHUB_STEP_SUMMARY')).toMatch(new RegExp(summary));
    expect(toldIn(join(machine.folder, 'runner/GITHUB_ENV'))).toMatchObject({
      ...{ SLICES_CONN_RESERVATION_ID: id, SLICES_CONN_RESERVATION_FILE: file, SLICES_CONN_END: end },
      ...{
        SLICES_CONN_SITE1: 'be-gent1',
        SLICES_CONN_SITE2_S_TAG: site2_s_tag,
        SLICES_CONN_BANDWIDTH: '1000',
      },
    });
    // It was signed, and does not stand any more.
    const verified = async () => reportOf(await person.command('--json', 'verify', file));
    // The service looks at a link once in a second: until then it says of the one before.
    const said = await vi.waitFor(verified, { timeout: PATIENCE, interval: 200 });
    expect(said).toMatchObject({ exitCode: 9, standing: 'deleted_or_replaced' });
    expect(result.released).toBe(`Released ${id}\n`);
    expect((await person.command('show', id)).exitCode).toBe(3);
    expect(await booked()).toEqual([]);
  });

  test('that is cancelled while it books releases the link all the same', async () => {
    const machine = runner();
    machine.measuring(0);
    const { released, log } = await run(machine, '', {}, 'asked');
    expect(released, log).toMatch(/^Released con_\S+\n$/);
    expect(await booked()).toEqual([]);
  });

  test('without an input is refused by its name', async () => {
    const text = (blocks('yaml')[2] ?? '').replace('site2: pl-poznan1', "site2: ' '");
    const machine = runner();
    const job = githubJob(text, { vars: variables }, github.runner().env);
    const { exitCode, log } = await runJob(job, machine.folder, machine.env);
    expect([exitCode, log]).toEqual([2, expect.stringContaining('An input is missing: site2.')]);
  });

  test('a link that a step has released already is no failure', async () => {
    const machine = runner();
    machine.script('measure.sh', ['slices-conn delete --yes "$SLICES_CONN_RESERVATION_ID"']);
    const { exitCode, released, log } = await run(machine);
    expect([exitCode, released], log).toEqual([
      0,
      expect.stringMatching(/^con_\S+ was released before\.\n$/),
    ]);
  });

  test('is refused with 6, says why, and leaves what others have booked', async () => {
    const machine = runner();
    machine.measuring(0);
    const all = ['be-gent1', 'pl-poznan1', '--bandwidth', '100G', '--start-now', '--for', '3h'];
    const { id } = reservationIn(await person.result('reserve', ...all));
    const result = await run(machine);
    expect(result.exitCode, result.log).toBe(6);
    expect(result.log).toContain('::error title=slices-conn::None of the 1 Gbps asked for are free');
    // What it advises has the flags of the inputs, and those of the alternative.
    expect(result.log).toMatch(
      /%0ATry: slices-conn reserve be-gent1 pl-poznan1 --bandwidth 1G --start-now --for 1h --via fr-lille,fr-slices\n/,
    );
    expect(result.released).toBe('Nothing was booked.\n');
    expect(await booked()).toEqual([id]);
  });

  test('ends with 4, and says why, where no rule is for the job', async () => {
    const result = await run(runner(), '', { ref: 'refs/heads/other' });
    expect(result.exitCode, result.log).toBe(4);
    expect(result.log).toContain('this job has refs/heads/other');
    expect(result.released).toBe('Nothing was booked.\n');
  });
});

test('every job of the page is run here', () => {
  expect(blocks('yaml')).toHaveLength(4);
});

describe('the token of a job', () => {
  const on = (env: Readonly<Record<string, string>>, changes = {}) =>
    newClient({ ...variables, ...env, ...changes });

  test('is had once for many commands, is no login, and opens its experiment alone', async () => {
    const { env, asked } = github.runner();
    const job = on(env);
    expect(await job.result('status')).toMatchObject({
      name: 'lead',
      roles: [{ kind: 'experiment', name: 'demo' }],
      tokens: [{ kind: 'user', source: 'environment' }],
    });
    const refused = reportOf(await job.command('user', 'sessions', '--json'));
    expect(refused).toMatchObject({ exitCode: 5, code: 'scope_missing', fix: null });
    expect(refused.message).toMatch(/^Your token is for experiment exp_\S+ alone/);
    expect(asked).toEqual([variables['SLICES_CONN_AUTH_URL']]);
    expect(job.logins).toEqual([]);
    const { token } = await person.result('user', 'token');
    await on(github.runner().env, { SLICES_CONN_USER_TOKEN: String(token) }).result('list');
    expect(asked).toHaveLength(1);
  });

  test('row 161: the secret of a runner is not sent over plain http', async () => {
    const address = 'http://ci.example.org/runner?api-version=2.0';
    const job = on(github.runner().env, { ACTIONS_ID_TOKEN_REQUEST_URL: address });
    const refused = reportOf(await job.command('list', '--json'));
    expect(refused).toMatchObject({ code: 'usage', message: expect.stringContaining('ci.example.org') });
  });

  test('is given by rules, which are listed, and removed by a part of their id', async () => {
    const ci = ['--experiment', 'demo', 'experiment', 'ci'];
    // What a job of GitHub is told to have is in test/cli/directory/ci-rules.test.ts.
    const again = ['--gitlab', 'lab/net/measure', '--ref', 'main', '--environment', 'lab'];
    expect((await person.command(...ci, 'add', ...again)).stdout).toContain(
      `id_tokens: { SLICES_CONN_ID_TOKEN: { aud: ${variables['SLICES_CONN_AUTH_URL']} } }\n`,
    );
    const Rules = v.object({ items: v.array(v.looseObject({ id: v.string() })) });
    const { items } = v.parse(Rules, await person.result(...ci, 'list'));
    const { id = '' } = items.find(({ environment }) => environment === 'lab') ?? {};
    const table = (await person.command(...ci, 'list')).stdout;
    expect(table).toMatch(
      new RegExp(`^${id} +lab/net/measure on branch main in environment lab +lead `, 'm'),
    );
    expect(table).toMatch(/ octo\/measure on refs\/heads\/main +lead /);
    const removed = { items: [{ id, removed: true }] };
    expect(await person.result(...ci, 'remove', id.slice(0, 8))).toEqual(removed);
    const gone = reportOf(await person.command(...ci, 'remove', id, '--json'));
    expect(gone).toMatchObject({ exitCode: 3, code: 'not_found' });
  });
});

withJq('the examples with jq', () => {
  test('print what they say, with the token of login --ci', async () => {
    const { refresh_token } = await person.result('login', '--ci');
    const { env, folder, install } = runner();
    install();
    const link = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '1h'];
    const { id, site1_s_tag } = reservationIn(await person.result('reserve', ...link));
    const step = {
      command: inBash(['-eo', 'pipefail'], blocks('sh').join('\n')),
      always: false,
      env: { ...variables, SLICES_CONN_REFRESH_TOKEN: String(refresh_token), ID: id },
    };
    const { exitCode, log } = await runJob({ steps: [step] }, folder, env);
    expect(exitCode, log).toBe(0);
    expect(log).toContain(`${id}\n`);
    expect(log).toContain(`"site1_s_tag": ${site1_s_tag},`);
    expect(log).toMatch(/^bandwidth_unavailable\nslices-conn reserve be-gent1 pl-poznan1 /m);
  });
});
