import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import * as v from 'valibot';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { githubJob, gitlabJob, type Job, type JobRun, runJob } from './ci-jobs.ts';
import { newMachine, reservationIn } from './command.ts';
import { type Client, LAUNCHER, newClient, type Served, serveInProcess } from './served.ts';

/** The section "In CI" of the README: its two jobs, run as they stand there, and its examples. */
const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const section = readme.split(/^## /m).find((text) => text.startsWith('In CI\n')) ?? '';

function blocks(language: string): string[] {
  return [...section.matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, 'g'))].map(
    ([, block = '']) => block,
  );
}

const hasJq = spawnSync('jq', ['--version']).status === 0;
if (!hasJq) process.stderr.write('The README’s jobs are NOT TESTED: jq is missing.\n');
// In CI these tests would be green without having run.
const withJq = hasJq || process.env['CI'] ? describe : describe.skip;

let served: Served;
/** The person who has logged in, and looks after the jobs. */
let person: Client;
let userToken: string;
let experimentToken: string;

beforeAll(async () => {
  served = await serveInProcess('--auto-approve', 'lead');
  person = newClient(served.env);
  await person.command('login');
  experimentToken = v.parse(v.string(), (await person.result('experiment', 'token'))['token']);
  userToken = await deviceLogin();
});

/** The user token of a login by hand. */
async function deviceLogin(): Promise<string> {
  const { auth_url, client_id } = served.addresses;
  const post = async (path: string, fields: Record<string, string>): Promise<unknown> => {
    const body = new URLSearchParams({ client_id, ...fields });
    return (await fetch(`${auth_url}/${path}`, { method: 'POST', body })).json();
  };
  const asked = await post('device/auth', { scope: 'openid offline_access userinfo projects' });
  const { device_code } = v.parse(v.object({ device_code: v.string() }), asked);
  const grant_type = 'urn:ietf:params:oauth:grant-type:device_code';
  const given = await post('token', { grant_type, device_code });
  return v.parse(v.object({ access_token: v.string() }), given).access_token;
}

const baseUrl = () => ({ SLICES_CONN_BASE_URL: served.addresses.base_url });

let runs = 0;

/** A machine that nobody has logged in on, as CI gives one to a job. */
function runner() {
  runs += 1;
  const { home } = newMachine();
  const [bin, folder] = [join(home, 'bin'), join(home, 'work')];
  for (const path of [bin, folder]) mkdirSync(path);
  const write = (path: string, lines: readonly string[]): void => {
    writeFileSync(path, `#!/bin/sh\n${lines.join('\n')}\n`);
    chmodSync(path, 0o755);
  };
  const command = `"${process.execPath}" "${LAUNCHER}"`;
  write(join(bin, 'slices-conn'), [`exec ${command} "$@"`]);
  const env = {
    HOME: home,
    CI: 'true',
    CI_JOB_ID: String(runs),
    GITHUB_RUN_ID: String(runs),
    GITHUB_RUN_ATTEMPT: '1',
    PATH: [bin, dirname(process.execPath), '/usr/local/bin', '/usr/bin', '/bin'].join(delimiter),
  };
  return {
    env,
    folder,
    /** What the job does with its link: tells its tags, and ends like this. */
    measuring: (exitCode: number) =>
      write(join(folder, 'measure.sh'), ['echo "$@" > measured', `exit ${exitCode}`]),
    /** Loses the answer to the first `reserve`, which the service has booked; nobody waits for the next attempt. */
    losingAnAnswer(state: string) {
      const first = `XDG_STATE_HOME="${join(home, state)}" ${command} "$@" > /dev/null`;
      write(join(bin, 'slices-conn'), [
        `[ "$1" != reserve ] || [ -f lost ] || { ${first} && touch lost; exit 7; }`,
        `XDG_STATE_HOME="${join(home, 'state')}" exec ${command} "$@"`,
      ]);
      write(join(bin, 'sleep'), ['exit 0']);
    },
    saveToken(name: string, token: string): string {
      const path = join(home, name);
      writeFileSync(path, `${token}\n`, { mode: 0o600 });
      return path;
    },
    read: (name: string) => readFileSync(join(folder, name), 'utf8'),
  };
}

type Runner = ReturnType<typeof runner>;

const JOBS: Readonly<Record<string, (machine: Runner, user: string) => Job>> = {
  'GitHub Actions': (_, user) =>
    githubJob(blocks('yaml')[0] ?? '', {
      vars: baseUrl(),
      secrets: { SLICES_CONN_USER_TOKEN: user, SLICES_CONN_EXPERIMENT_TOKEN: experimentToken },
    }),
  'GitLab CI': (machine, user) =>
    gitlabJob(blocks('yaml')[1] ?? '', {
      ...baseUrl(),
      SLICES_CONN_USER_TOKEN_FILE: machine.saveToken('user-token', user),
      SLICES_CONN_EXPERIMENT_TOKEN_FILE: machine.saveToken('experiment-token', experimentToken),
    }),
};

const Items = v.array(v.object({ state: v.string(), reservation: v.nullable(v.object({ id: v.string() })) }));

/** The ids of what the experiment holds. */
async function booked(): Promise<string[]> {
  const items = v.parse(Items, (await person.result('list'))['items']);
  return items.flatMap(({ state, reservation }) =>
    reservation && (state === 'active' || state === 'scheduled') ? [reservation.id] : [],
  );
}

afterEach(async () => {
  const left = await booked();
  if (left.length > 0) await person.command('delete', '--yes', ...left);
});

withJq.each(Object.entries(JOBS))('the job of the README for %s', (_, jobOn) => {
  let machine: Runner;
  const run = (user = userToken): JobRun => runJob(jobOn(machine, user), machine.folder, machine.env);

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

  beforeAll(() => expect(Object.keys(JOBS)).toHaveLength(blocks('yaml').length));

  test.each([0, 3])('releases the link when what uses it ends with %i', async (exitCode) => {
    machine = runner();
    machine.measuring(exitCode);
    const result = run();
    expect(result.exitCode, result.log).toBe(exitCode);
    await expectReleased(result);
  });

  test.each([
    ['', 'state'],
    [', and the state folder with it', 'other-state'],
  ])('books once when the answer was lost%s', async (_, state) => {
    machine = runner();
    machine.measuring(0);
    machine.losingAnAnswer(state);
    const result = run();
    expect(result.exitCode, result.log).toBe(0);
    expect(machine.read('lost')).toBe('');
    await expectReleased(result);
  });

  test('is refused with 6, and leaves what others have booked', async () => {
    machine = runner();
    machine.measuring(0);
    const all = ['be-gent1', 'pl-poznan1', '--bandwidth', '100G', '--start-now', '--for', '3h'];
    const { id } = reservationIn(await person.result('reserve', ...all));
    const result = run();
    expect(result.exitCode, result.log).toBe(6);
    expect(result.released).toBe('Nothing was booked.\n');
    expect(() => machine.read('measured')).toThrow('ENOENT');
    expect(await booked()).toEqual([id]);
  });

  test('ends with 4 when the service does not accept its token', async () => {
    machine = runner();
    const result = run(experimentToken);
    expect(result.exitCode, result.log).toBe(4);
    expect(result.released).toBe('Nothing was booked.\n');
  });
});

withJq('the examples of the README with jq', () => {
  test.each<[string, () => Readonly<Record<string, string>>]>([
    ['both tokens', () => ({ SLICES_CONN_EXPERIMENT_TOKEN: experimentToken })],
    [
      'the user token alone',
      () => ({ SLICES_CONN_EXPERIMENT: 'demo', SLICES_CONN_PORTAL_URL: served.addresses.portal_url }),
    ],
  ])('print what they say, with %s', async (_, given) => {
    const { env, folder } = runner();
    const link = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '1h'];
    const { id, site1_s_tag } = reservationIn(await person.result('reserve', ...link));
    const variables = { ...baseUrl(), SLICES_CONN_USER_TOKEN: userToken, ...given(), ID: id };
    const step = { script: blocks('sh').join('\n'), always: false, env: variables };
    const { exitCode, log } = runJob({ steps: [step], shell: ['-eo', 'pipefail'] }, folder, env);
    expect(exitCode, log).toBe(0);
    expect(log).toContain(`${id}\n`);
    expect(log).toContain(`"site1_s_tag": ${site1_s_tag},`);
    expect(log).toMatch(/^bandwidth_unavailable\nslices-conn reserve be-gent1 pl-poznan1 /m);
  });
});
