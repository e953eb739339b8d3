import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Benchmark, Result } from './benchmark.ts';
import { alternate } from './measure.ts';
import { PROGRAM, startServer } from './serving.ts';

const CASES = [
  { name: '--version', args: ['--version'], limit: 1.3 },
  { name: '--help', args: ['--help'], limit: 2 },
  { name: '__complete', args: ['__complete', '--', 're'], limit: 2.5 },
] as const;

/**
 * Start-up of the command line as a ratio to a bare Node (src/README.md, "Start-up"): alternating processes of the same Node, compile
 * cache warm; wall clock, and for `reserve` processor time.
 */
export const startUp: Benchmark = async ({ quick }) => {
  const rounds = quick ? 11 : 41;
  const home = mkdtempSync(join(tmpdir(), 'slices-conn-bench-'));
  process.once('exit', () => rmSync(home, { recursive: true, force: true }));
  const run = (args: readonly string[]) => (): number => {
    const began = performance.now();
    const { status } = spawnSync(process.execPath, args, { env: { PATH: process.env['PATH'], HOME: home } });
    if (status !== 0) throw new Error(`${args.join(' ')} exited with ${status}`);
    return performance.now() - began;
  };
  const results: Result[] = [];
  for (const { name, args, limit } of CASES) {
    const compare = await alternate(rounds, [
      ['own', run([PROGRAM, ...args])],
      ['bare', run(['-e', '0'])],
    ]);
    const about = { name: `start-up, ${name}`, what: `slices-conn ${name} ÷ node -e 0`, limit } as const;
    results.push(
      compare('own', 'bare', { ...about, bound: 'atMost' }, (figure) => `${figure.toFixed(1)} ms`),
    );
  }
  return [...results, await reserveAgainstBareNode(home, rounds)];
};

/** Processor time of a command and of all that it starts, in seconds: user and system. */
function cpuSeconds(args: readonly string[], env: Readonly<Record<string, string>>): number {
  const timed = 'TIMEFORMAT="%3U %3S"; time "$@" >/dev/null 2>&1; exit $?';
  const { status, stderr } = spawnSync('bash', ['-c', timed, 'bash', process.execPath, ...args], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${args.join(' ')} exited with ${status}`);
  const [user = Number.NaN, system = Number.NaN] = stderr.trim().split(' ').map(Number);
  return user + system;
}

/**
 * Processor time of a `reserve` with tokens that are kept already, against a server on this machine, by that of a bare Node. Each
 * books another hour, so that the link does not fill up.
 */
async function reserveAgainstBareNode(home: string, rounds: number): Promise<Result> {
  const flags = ['--port', '0', '--memory', '--auto-approve', 'lead', '--ready-file'];
  const server = await startServer(home, (ready) => [PROGRAM, 'serve', ...flags, ready]);
  const env = {
    HOME: home,
    SLICES_CONN_BASE_URL: server.url,
    SLICES_CONN_PORTAL_URL: `${server.url}/portal`,
    SLICES_CONN_AUTH_URL: `${server.url}/auth`,
  };
  cpuSeconds([PROGRAM, 'login'], env);
  cpuSeconds([PROGRAM, 'experiment', 'use', 'demo'], env);
  let hour = 0;
  const reserve = (): number => {
    hour += 1;
    const when = ['--start', `+${hour}h`, '--for', '1h'];
    return cpuSeconds([PROGRAM, 'reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', ...when], env);
  };
  const compare = await alternate(rounds, [
    ['own', reserve],
    ['bare', () => cpuSeconds(['-e', '0'], env)],
  ]);
  await server.stop();
  const what = 'slices-conn reserve ÷ node -e 0, processor time';
  const about = { name: 'start-up, reserve', what, limit: 4, bound: 'atMost' } as const;
  return compare('own', 'bare', about, (seconds) => `${(seconds * 1000).toFixed(0)} ms`);
}
