import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import * as v from 'valibot';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import {
  answer,
  type Provider,
  partOf,
  poll,
  refresh,
  send,
  startLogin,
  type Tokens,
  tokensIn,
} from '../fixtures/identity.ts';
import { listenOnLoopback } from '../fixtures/loopback.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { startCommand } from '../fixtures/program.ts';
import { PROJECTS, smallTopology } from '../fixtures/service.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { newMachine, reportOf } from './command.ts';
import { type Started, serveHere, serveInProcess, serveWith } from './served.ts';

let folder: string;
beforeEach(() => {
  folder = temporaryFolder();
});

const logIn = async (target: Provider): Promise<Tokens> =>
  tokensIn(await poll(target, await startLogin(target)));
const read = (target: Provider, path: string, { access_token }: Tokens) =>
  send(target, 'GET', path, { headers: { authorization: `Bearer ${access_token}` } });
const keySets = async (target: Provider): Promise<string[]> => {
  const paths = ['', '/portal', '/auth'].map((path) => `${path}/.well-known/jwks.json`);
  const replies = await Promise.all(paths.map((path) => send(target, 'GET', path)));
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200]);
  return replies.map(({ text }) => text);
};
const stopped = ({ child }: Started) => [child.exitCode, child.signalCode];

describe('serve', () => {
  test('takes requests once its ready file is there, and removes it when it stops', async () => {
    // Between a look and a read the server may remove what was left over.
    const textOf = (file: string): string => {
      try {
        return readFileSync(file, 'utf8');
      } catch {
        return '';
      }
    };
    const readyFile = join(folder, 'ready-0.json');
    writeFileSync(readyFile, 'left over from last time');
    const reads: string[] = [];
    // The drain keeps it from ending between the two signals, however busy the machine is.
    const args = ['serve', '--port', '0', '--memory', '--drain', '1', '--ready-file', readyFile];
    const serving = startCommand(args, { home: folder });
    await vi.waitUntil(
      () => {
        if (serving.output.exitCode !== null) throw new Error(`it ended: ${serving.output.stderr}`);
        const text = textOf(readyFile);
        reads.push(text);
        return text.startsWith('{');
      },
      { timeout: PATIENCE, interval: 1 },
    );
    // At no time was a part of it to be read.
    const due = ['', 'left over from last time', reads.at(-1)];
    expect(reads.filter((text) => !due.includes(text))).toEqual([]);
    const Ready = v.looseObject({ base_url: v.string() });
    const { base_url: base, ...ready } = v.parse(Ready, JSON.parse(reads.at(-1) ?? ''));
    const { port, origin, host } = new URL(base);
    expect(base).toBe(origin);
    expect(ready).toEqual({
      ...{ portal_url: `${base}/portal`, auth_url: `${base}/auth`, client_id: 'slices-conn' },
      ...{ projects_api_group: 'projects', experiments_api_group: 'experiments' },
      ...{ listen: host, pid: serving.child.pid },
    });
    await keySets({ port: Number(port), base, issuer: `${base}/auth` });
    expect(readdirSync(folder).filter((name) => name.startsWith('ready'))).toEqual(['ready-0.json']);
    // A launcher passes on what the whole process group has got.
    for (let copy = 0; copy < 2; copy += 1) serving.signal('SIGTERM');
    const { stdout, stderr } = await serving.ended;
    expect(stopped(serving)).toEqual([0, null]);
    expect(existsSync(readyFile)).toBe(false);
    expect(stdout).toContain(base);
    expect(stderr).not.toMatch(/Warning|\bat .*:\d+:\d+/);
  });

  test('keeps nothing on disk with --memory, goes on at SIGHUP, and ends with 0 at SIGINT too', async () => {
    const server = await serveInProcess('--auto-approve', 'lead');
    // A reload, with nothing to be read anew.
    for (let times = 0; times < 3; times += 1) server.process.signal('SIGHUP');
    await logIn(server);
    server.process.signal('SIGINT');
    await server.process.ended;
    expect(stopped(server.process)).toEqual([0, null]);
    const files = readdirSync(server.home, { recursive: true, encoding: 'utf8' });
    expect(files.filter((name) => name.includes('sqlite'))).toEqual([]);
  });

  test('keeps its data where the state is, for its owner alone, when nothing else is said', async () => {
    const { home, process } = await serveWith('--port', '0');
    const state = join(home, 'state', 'slices-conn');
    const names = readdirSync(state, { recursive: true, encoding: 'utf8' });
    expect(names).toContain(join('serve', 'slices-conn.sqlite'));
    for (const name of ['', ...names])
      expect([name, statSync(join(state, name)).mode & 0o077]).toEqual([name, 0]);
    process.signal('SIGTERM');
    expect((await process.ended).exitCode).toBe(0);
  });

  test('keeps ids, keys and sessions over a restart on the same folder and port', async () => {
    const data = join(folder, 'data');
    const first = await serveHere('--data', data, '--auto-approve', 'lead');
    const tokens = await logIn(first);
    const ids = async (target: Provider) =>
      (await read(target, PROJECTS, tokens)).text.match(/"id":"\w+[^"]+"/g);
    const projects = await ids(first);
    const keys = await keySets(first);
    expect((await first.stop()).exitCode).toBe(0);

    const args = ['--data', data, '--port', String(first.port)];
    const second = await serveWith(...args, '--auto-approve', 'member');
    expect(second.base).toBe(first.base);
    expect(await keySets(second)).toEqual(keys);
    expect(await ids(second)).toEqual(projects);
    const refreshed = tokensIn(await refresh(second, String(tokens.refresh_token)));
    expect(partOf(refreshed.access_token, 'payload')).toMatchObject({
      sub: partOf(tokens.access_token, 'payload')['sub'],
      preferred_username: 'lead',
    });
    // The other person's login is another's.
    expect(partOf((await logIn(second)).access_token, 'payload')['preferred_username']).toBe('member');

    // Killed in the middle, it goes on where it was.
    second.process.signal('SIGKILL');
    await second.process.ended;
    const third = await serveHere(...args);
    expect(answer(await refresh(third, String(refreshed.refresh_token)))).toBe('200');
  });
});

describe('serve refuses', () => {
  /** Runs it to its end, as `--json`, and reads the error. */
  const refused = async (...args: readonly string[]) =>
    reportOf(await newMachine().run(['serve', '--json', '--port', '0', ...args]));

  // What the settings may be is in test/operate.
  test.each([
    '--port 65536',
    '--access-token-ttl 1.5',
    '--memory --data x',
    '--prot 1',
    '--topology none.json',
  ])('%j: 2, and the ready file of an earlier server is gone', async (args) => {
    const ready = join(folder, 'stale.json');
    writeFileSync(ready, '{}');
    expect((await refused(...args.split(' '), `--ready-file=${ready}`)).exitCode).toBe(2);
    expect(existsSync(ready)).toBe(false);
  });

  test('a topology that breaks its rules, a ready file that can’t be written, and a port that is taken, and names what', async () => {
    const file = join(folder, 'topology.json');
    writeFileSync(file, JSON.stringify({ ...smallTopology(4), sites: ['be-gent1'] }));
    const other = createServer();
    const port = String(await listenOnLoopback(other));
    for (const [exitCode, flag, value, named] of [
      [2, '--topology', file, 'pl-poznan1'],
      [2, '--ready-file', join(folder, 'none', 'ready.json'), 'ready.json'],
      [7, '--port', port, port],
    ] as const) {
      const report = await refused('--memory', flag, value);
      expect(report.exitCode, flag).toBe(exitCode);
      expect(`${report.message} ${report.why}`).toContain(named);
    }
    other.close();
  });
});
