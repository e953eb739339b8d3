import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { createInterface } from 'node:readline';
import type { ProgramOptions, ProgramResult } from '../cli/machine.ts';
import type { Environment } from '../session/profiles/folders.ts';
import { begun, notStarted } from './processes.ts';

/** The most that is kept of each of a program's streams, in characters. */
const MOST_KEPT = 4_194_304;

/** See `Machine.runProgram`. */
export async function runProgram(
  [program = '', ...args]: readonly string[],
  { input, signal, onLine, onNotice }: ProgramOptions,
  env: Environment,
): Promise<ProgramResult> {
  const path = `${env['PATH'] ?? '/usr/bin:/bin'}:/usr/sbin:/sbin`;
  const child = spawn(program, args, {
    env: { ...env, PATH: path, LC_ALL: 'C' },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  // A program that does not read it, or is not there, breaks the pipe.
  child.stdin.on('error', () => undefined).end(input);
  const kept = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      kept[name] += text.slice(0, MOST_KEPT - kept[name].length);
    });
  }
  if (onLine) createInterface({ input: child.stdout }).on('line', onLine);
  if (onNotice) createInterface({ input: child.stderr }).on('line', onNotice);
  const ended = new Promise<number>((resolve) => {
    child.once('close', (code, name) => resolve(code ?? 128 + constants.signals[name ?? 'SIGKILL']));
  });
  try {
    await begun(child);
  } catch (cause) {
    throw notStarted(
      program,
      cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause),
      cause,
    );
  }
  const stop = (): void => void child.kill('SIGTERM');
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop, { once: true });
  const exitCode = await ended;
  signal?.removeEventListener('abort', stop);
  return { exitCode, ...kept };
}
