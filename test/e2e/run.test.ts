import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { PATIENCE } from '../fixtures/patience.ts';
import { environmentIn, startCommand, startProgram } from '../fixtures/program.ts';
import type { ProxyPoint } from '../fixtures/proxy.ts';
import { reportOf } from './command.ts';
import {
  age,
  type Client,
  LAUNCHER,
  newClient,
  record,
  type Served,
  type Started,
  serveBehindProxy,
  serveHere,
  storedLogin,
} from './served.ts';

const RUN = ['run', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--for', '1h'];
/** Commands of a shell that says when it has begun. */
const shell = (commands: string): string[] => ['--', 'sh', '-c', `echo ready >&2; ${commands}`];
/** How soon after SIGKILL the reservation must be gone, in milliseconds: `PROVE_RUN` says; else there is no such limit. */
const { PROVE_RUN } = process.env;

let served: Served;
beforeAll(async () => {
  served = await serveHere('--auto-approve', 'lead');
});

async function loggedIn(env: Readonly<Record<string, string>> = served.env): Promise<Client> {
  const client = newClient(env);
  await client.result('login');
  return client;
}

/** The ids of what the service has. */
async function booked(client: Client): Promise<string[]> {
  const { items } = await client.result('list');
  return (items as { reservation: { id: string } }[]).map(({ reservation }) => reservation.id);
}

/** The id of a run whose command has begun. */
async function ready({ saw }: Started): Promise<string> {
  await saw(/^ready$/m);
  const [, id = ''] = await saw(/^Reserved .*: (con_\S+)$/m);
  return id;
}

/** The processes of this machine that have a variable: as GitHub's runner finds what a job has left behind. */
function processesWith(variable: string): number[] {
  const has = (id: string): boolean => {
    try {
      return readFileSync(`/proc/${id}/environ`, 'utf8').split('\0').includes(variable);
    } catch {
      return false; // It is another user's, or has ended.
    }
  };
  return readdirSync('/proc')
    .filter((id) => /^\d+$/.test(id) && has(id))
    .map(Number);
}

test('streams and exit code are the command’s, and nothing is left', async () => {
  const client = await loggedIn();
  const file = '"$SLICES_CONN_RESERVATION_FILE"';
  const commands = `cat; cat ${file} >proof; ls -l ${file} >mode; echo "$SLICES_CONN_BANDWIDTH" >&2; exit 7`;
  const ended = await client.run([...RUN, '--', 'sh', '-c', commands], {
    ...{ stdin: 'from stdin\n', ownProcess: true, env: served.env },
  });
  expect(ended).toMatchObject({ exitCode: 7, stdout: 'from stdin\n' });
  expect(ended.stderr).toMatch(/^Reserved .*\n1000\nDeleted .*\n$/);
  expect(readFileSync(join(client.home, 'mode'), 'utf8')).toMatch(/^-rw------- /);
  // It was signed, and this machine has deleted its reservation since.
  const verified = await client.command('--json', 'verify', 'proof');
  expect(reportOf(verified)).toMatchObject({ exitCode: 9, standing: 'deleted_or_replaced' });
  expect(readdirSync(join(client.state, 'run'))).toEqual([]);
  expect(await booked(client)).toEqual([]);
});

test('row 115: a command gets no tokens unless it is to call this program itself', async () => {
  const client = await loggedIn();
  const { token } = await client.result('user', 'token');
  const seen = async (...flags: string[]): Promise<string> => {
    const command = ['--', 'sh', '-c', 'echo "<$SLICES_CONN_USER_TOKEN>"'];
    const env = { ...served.env, SLICES_CONN_USER_TOKEN: String(token) };
    const { stdout, stderr } = await client.run([...RUN.with(-1, '30m'), ...flags, ...command], {
      ownProcess: true,
      env,
    });
    return stdout || stderr;
  };
  expect(await seen()).toBe('<>\n');
  expect(await seen('--with-token')).toBe(`<${String(token)}>\n`);
});

describe('a signal to run', () => {
  test.each<[NodeJS.Signals, number]>([
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ])('%s ends the command, deletes the reservation, and ends with %i', async (signal, exitCode) => {
    const client = await loggedIn();
    const started = client.start(...RUN, ...shell('exec sleep 1000'));
    const id = await ready(started);
    expect(await booked(client)).toEqual([id]);
    started.signal(signal);
    expect(await started.ended).toMatchObject({ exitCode, stdout: '' });
    expect(started.output.stderr).toContain(`Deleted ${id}\n`);
    expect(await booked(client)).toEqual([]);
  });

  test('a command that catches it decides itself', async () => {
    const client = await loggedIn();
    const waiting = 'until [ -e over ]; do sleep 0.05; done';
    // The signal must not come before the trap.
    const commands = `trap 'echo caught; exit 4' TERM; echo ready >&2; ${waiting}`;
    const started = client.start(...RUN, '--', 'sh', '-c', commands);
    await ready(started);
    started.signal('SIGTERM');
    expect(await started.ended).toMatchObject({ exitCode: 4, stdout: 'caught\n' });
    expect(await booked(client)).toEqual([]);
  });
});

describe('run is killed', () => {
  /** Waits until the service has nothing left. @returns how long that took, in milliseconds */
  async function gone(client: Client, since: number): Promise<number> {
    await vi.waitUntil(async () => (await booked(client)).length === 0, { timeout: PATIENCE, interval: 20 });
    return performance.now() - since;
  }

  test('its guardian deletes the reservation, says nothing, and had no secret; the command goes on', async () => {
    const client = await loggedIn();
    const secret = storedLogin(client).accessToken;
    const waiting = 'until [ -e over ]; do sleep 0.05; done; echo went on';
    const started = client.start(...RUN, ...shell(waiting));
    await ready(started);
    const lines = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).split('\n');
    const guardians = lines.filter((line) => line.includes('__guardian')).join('\n');
    // It renews a login that has expired meanwhile.
    age(client);
    const since = performance.now();
    started.signal('SIGKILL');
    const took = await gone(client, since);
    if (PROVE_RUN) expect(took).toBeLessThan(Number(PROVE_RUN));
    expect(guardians).toContain('--profile=local');
    expect(guardians).not.toContain(secret);
    const { items } = await client.result('list', '--all');
    expect(items).toMatchObject([{ state: 'deleted' }]);
    writeFileSync(join(client.home, 'over'), '');
    expect(await started.ended).toMatchObject({
      stdout: 'went on\n',
      stderr: expect.stringMatching(/^Reserved .*\nready\n$/),
    });
    // The guardian removes its file after the reservation.
    await vi.waitFor(() => expect(readdirSync(join(client.state, 'run'))).toEqual([]), PATIENCE);
  });

  test('with --on-lost term its guardian ends the command too', async () => {
    const client = await loggedIn();
    // It is ready once its guardian surely knows of it: that is told when it has started.
    const waiting = "trap 'echo asked to end; exit' TERM; sleep 3; echo ready >&2; i=0";
    const rounds = 'while [ $i -lt 1200 ]; do sleep 0.05; i=$((i+1)); done';
    const command = ['--', 'sh', '-c', `${waiting}; ${rounds}`];
    const started = client.start(...RUN, '--on-lost', 'term', ...command);
    await ready(started);
    const since = performance.now();
    started.signal('SIGKILL');
    await gone(client, since);
    await vi.waitFor(() => expect(started.output.stdout).toBe('asked to end\n'), PATIENCE);
    await started.ended;
  });

  test.skipIf(!existsSync('/proc/self/environ'))(
    'row 164: with all that a job of GitHub has started, at its end: its guardian outlives the job',
    async () => {
      const job = `github_${randomUUID()}`;
      const client = await loggedIn({ ...served.env, RUNNER_TRACKING_ID: job });
      // The shell becomes the program, so that nothing is started while they are killed.
      const started = client.start(...RUN, ...shell('exec sleep 60'));
      await ready(started);
      const ofJob = processesWith(`RUNNER_TRACKING_ID=${job}`);
      expect(ofJob.length).toBeGreaterThan(1);
      for (const pid of ofJob) process.kill(pid, 'SIGKILL');
      await started.ended;
      await gone(client, performance.now());
    },
  );

  test('while it waits for its turn: its guardian deletes the reservation', async () => {
    const client = await loggedIn();
    const link = ['be-gent1', 'fr-lille', '--bandwidth', '100G'];
    await client.result('reserve', ...link, '--start-now', '--for', '1h');
    const started = client.start('run', ...link, '--for', '1h', '--wait', '2h', ...shell('true'));
    await started.saw(/^Reserved .* from /m);
    started.signal('SIGKILL');
    expect((await started.ended).stderr).not.toContain('ready');
    await vi.waitUntil(async () => (await booked(client)).length === 1, { timeout: PATIENCE, interval: 20 });
    await client.result('delete', '--all', '--yes');
  });

  test.each<ProxyPoint>(['before it is passed on', 'after it was passed on', 'when its answer came'])(
    'while it books, %s: nothing is left either',
    async (point) => {
      const { server, proxy } = await serveBehindProxy();
      const client = await loggedIn(server.env);
      const started = client.start(...RUN, '--', 'true');
      proxy.arm('POST /apis', 1, point, () => started.signal('SIGKILL'));
      expect(await started.ended).toMatchObject({ exitCode: null, stderr: '' });
      // The request was in the ledger before it was sent.
      const states = async () => {
        const { items } = await client.result('list', '--all');
        return (items as { state: string }[]).map(({ state }) => state);
      };
      await vi.waitUntil(async () => (await states()).join() === 'deleted', PATIENCE);
    },
  );

  test('a launcher on an older Node is all of it', async () => {
    const client = await loggedIn();
    const old = "Object.defineProperty(process.versions, 'node', { value: '20.20.2' });";
    const under = ([node = '', ...rest]: readonly string[]): string[] => {
      return [node, '--import', `data:text/javascript,${encodeURIComponent(old)}`, ...rest];
    };
    const args = [...RUN, ...shell('exec cat')];
    const { saw, signal } = startCommand(args, { home: client.home, env: served.env, input: 'open', under });
    await saw(/^ready$/m);
    expect(await booked(client)).toHaveLength(1);
    const since = performance.now();
    signal('SIGKILL');
    await gone(client, since);
  });
});

const SCRIPT = '/usr/bin/script';
const terminal = existsSync(SCRIPT) ? 'on a terminal' : `on a terminal: NOT TESTED, there is no ${SCRIPT}`;
describe.skipIf(!existsSync(SCRIPT) && !process.env['CI'])(terminal, () => {
  /** Counts SIGINT; ends after the first, when it had the time to get a second. */
  const COUNTING = [
    '#!/bin/sh',
    'n=0',
    "trap 'n=$((n+1)); echo int $n' INT",
    'echo ready $PPID',
    'while [ $n -eq 0 ]; do sleep 0.05; done',
    'i=0; while [ $i -lt 20 ]; do sleep 0.05; i=$((i+1)); done',
    'echo ints: $n; exit 9',
  ].join('\n');

  test('a line says what is waited for, and the program ends without it', async () => {
    const { home } = await loggedIn();
    const { url } = await record(() => 'hang');
    const command = `stty cols 80; exec ${process.execPath} ${LAUNCHER} sites --timeout 3`;
    const { ended } = startProgram([SCRIPT, '-qec', command, '/dev/null'], {
      cwd: home,
      env: {
        ...environmentIn(home),
        ...{ TERM: 'xterm', SLICES_CONN_BASE_URL: url },
        ...{ SLICES_CONN_USER_TOKEN: 'one', SLICES_CONN_EXPERIMENT_TOKEN: 'other' },
      },
    });
    const { exitCode, stdout } = await ended;
    expect(stdout).toMatch(new RegExp(`Waiting for ${new URL(url).host} \\(\\d s\\)`));
    expect(stdout.slice(stdout.lastIndexOf('\u001B[0K'))).toMatch(/^\S+error: http/);
    expect(exitCode).toBe(7);
  });

  test.each(['Ctrl-C', 'SIGINT to run alone'])('%s reaches the command once', async (how) => {
    const client = await loggedIn();
    writeFileSync(join(client.home, 'counting'), COUNTING, { mode: 0o755 });
    const command = ['exec', process.execPath, LAUNCHER, ...RUN, '--', './counting'].join(' ');
    const { child, saw, ended } = startProgram([SCRIPT, '-qec', command, '/dev/null'], {
      ...{ cwd: client.home, input: 'open' },
      env: { ...environmentIn(client.home), ...served.env },
    });
    const [, parent] = await saw(/ready (\d+)/, 'stdout');
    if (how === 'Ctrl-C') child.stdin?.write('\u0003');
    else process.kill(Number(parent), 'SIGINT');
    const { exitCode, stdout } = await ended;
    expect(stdout).toMatch(/int 1\r\nints: 1\r\nDeleted con_/);
    expect(exitCode).toBe(9);
    expect(await booked(client)).toEqual([]);
  });
});
