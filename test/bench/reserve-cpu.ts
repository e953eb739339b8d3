import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const program = new URL('../../bin/slices-conn.js', import.meta.url).pathname;

/** Processor time of a command and of all that it starts, in seconds: user and system. */
function cpuSeconds(args: readonly string[], env: Readonly<Record<string, string>>): number {
  const timed = 'TIMEFORMAT="%3U %3S"; time "$@" >/dev/null 2>&1; exit $?';
  const { status, stderr } = spawnSync('bash', ['-c', `${timed}`, 'bash', process.execPath, ...args], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${args.join(' ')} exited with ${status}`);
  const [user = Number.NaN, system = Number.NaN] = stderr.trim().split(' ').map(Number);
  return user + system;
}

/**
 * Processor times, in pairs of one run, of a `reserve` with tokens that are kept already, against a server on this
 * machine, and of a bare Node. Each books another hour, so that the link does not fill up.
 *
 * @param rounds how many pairs
 */
export async function reserveAgainstBareNode(rounds: number): Promise<{ own: number; bare: number }[]> {
  const home = mkdtempSync(join(tmpdir(), 'slices-conn-bench-'));
  const ready = join(home, 'ready.json');
  const serving = ['serve', '--port', '0', '--memory', '--auto-approve', 'lead', '--ready-file', ready];
  const server = spawn(process.execPath, [program, ...serving], { env: { HOME: home }, stdio: 'ignore' });
  try {
    while (!existsSync(ready)) {
      if (server.exitCode !== null) throw new Error('the server did not start');
      await sleep(20);
    }
    const { base_url, portal_url, auth_url } = JSON.parse(readFileSync(ready, 'utf8'));
    const env = {
      HOME: home,
      SLICES_CONN_BASE_URL: base_url,
      SLICES_CONN_PORTAL_URL: portal_url,
      SLICES_CONN_AUTH_URL: auth_url,
    };
    cpuSeconds([program, 'login'], env);
    cpuSeconds([program, 'experiment', 'use', 'demo'], env);
    const reserve = (hour: number): string[] => [
      program,
      ...['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start', `+${hour}h`, '--for', '1h'],
    ];
    cpuSeconds(reserve(1), env);
    return Array.from({ length: rounds }, (_, index) => ({
      own: cpuSeconds(reserve(index + 2), env),
      bare: cpuSeconds(['-e', '0'], env),
    }));
  } finally {
    const ended = once(server, 'exit');
    if (server.exitCode === null && server.kill('SIGTERM')) await ended;
    rmSync(home, { recursive: true, force: true });
  }
}
