import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { accessSync, existsSync, lstatSync, constants as modes, statSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { GUARDIAN } from '../cli/commands.ts';
import type { CommandEnvironment, Pipe, ProgramResult, RunOptions, StartedCommand } from '../cli/context.ts';
import { Failure } from '../contract/failure.ts';
import { errorCode, systemReason } from '../contract/foreign-errors.ts';
import { childEnvironment } from '../session/login/token-source.ts';
import type { Variables } from '../session/profiles/folders.ts';
import { stopAtSignals } from './terminal.ts';

const IS_WINDOWS = process.platform === 'win32';

/** See `Processes.check`. @param isWindows whether programs are found as on Windows */
export function checkProgram(program: string, env: Variables, isWindows = IS_WINDOWS): void {
  if (isWindows) {
    checkProgramOnWindows(program, env);
    return;
  }
  const folders = (env['PATH'] ?? '/usr/bin:/bin').split(delimiter);
  const places = program.includes('/') ? [program] : folders.map((folder) => join(folder || '.', program));
  const found = places.filter((path) => program !== '' && existsSync(path));
  if (found.length === 0) throw notStarted(program, 'ENOENT');
  if (!found.some(isExecutable)) throw notStarted(program, 'EACCES');
}

/**
 * Node.js on Windows starts a file with an extension, a `.com` and an `.exe`, in the working folder before those of PATH. What
 * a shell would find there besides, by PATHEXT, is a script, which needs that shell.
 */
function checkProgramOnWindows(program: string, env: Variables): void {
  const folders = ['.', ...(env['PATH'] ?? '').replaceAll('"', '').split(';')].filter((name) => name !== '');
  const places = /[\\/:]/.test(program) ? [program] : folders.map((folder) => `${folder}/${program}`);
  const hasOne = (extensions: readonly string[]): boolean =>
    places.some((path) => extensions.some((extension) => isFileOnWindows(path + extension)));
  const known = (env['PATHEXT'] ?? '.BAT;.CMD').toLowerCase().split(';');
  const ofScripts = known.filter((extension) => !['', '.com', '.exe'].includes(extension));
  const isScript = ofScripts.some((extension) => program.toLowerCase().endsWith(extension));
  const hasExtension = /[^\\/:]\.[^.\\/:]+$/.test(program) && !isScript;
  if (hasOne([...(hasExtension ? [''] : []), '.com', '.exe'])) return;
  const code = hasOne(isScript ? [''] : ofScripts) ? 'EINVAL' : hasOne(['']) ? 'EACCES' : 'ENOENT';
  throw notStarted(program, code, undefined, true);
}

/** Whether a file is there, which may be one of the store's: only its name can be looked at. */
function isFileOnWindows(path: string): boolean {
  try {
    return !lstatSync(path).isDirectory();
  } catch {
    return false;
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, modes.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** The failure of a program that can't be started. @param code the error of the system, such as `ENOENT` */
function notStarted(program: string, code: string, cause?: unknown, isWindows = IS_WINDOWS): Failure {
  const name = JSON.stringify(program);
  if (code === 'ENOENT') {
    const isPath = (isWindows ? /[\\/:]/ : /\//).test(program);
    const why = isPath ? 'There is no such file.' : 'It is in no folder of PATH.';
    return new Failure('command_not_found', `There is no command ${name}.`, { why, cause });
  }
  // How Node.js refuses .bat and .cmd files.
  const isScript = isWindows && code === 'EINVAL';
  const why = isScript
    ? `A script is started by the shell of Windows: cmd /c ${program}`
    : code === 'EACCES'
      ? 'It is not a program, or you may not run it.'
      : `The system says ${code || cause}.`;
  return new Failure('command_not_runnable', `The command ${name} can't be started.`, { why, cause });
}

/** The signals that are passed on to a command. */
const PASSED_ON = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/** See `Processes.start`. The command stays in this process's group: so a terminal treats both as one job. */
export async function startCommand(
  [program = '', ...args]: readonly string[],
  { variables, withTokens = false }: CommandEnvironment,
  env: Variables,
): Promise<StartedCommand> {
  const hasTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
  const witness = hasTerminal && !IS_WINDOWS ? new GroupWitness(env) : undefined;
  let child: ChildProcess | undefined;
  for (const signal of PASSED_ON) {
    process.removeAllListeners(signal);
    process.on(signal, async () => {
      // The console of Windows sends its events to the command too; a signal from here would be its end.
      if (!IS_WINDOWS && !(await witness?.saw(signal))) child?.kill(signal);
    });
  }
  const over = (): void => {
    witness?.close();
    for (const signal of PASSED_ON) process.removeAllListeners(signal);
    // A terminal that is closed sends it several times; what is left to do needs no terminal.
    process.on('SIGHUP', () => undefined);
    stopAtSignals();
  };
  try {
    child = spawn(program, args, {
      stdio: 'inherit',
      env: { ...(withTokens ? env : childEnvironment(env)), ...variables },
    });
    const started = child;
    const ended = new Promise<number>((resolve) => {
      started.once('exit', (code, signal) => {
        over();
        resolve(code ?? 128 + constants.signals[signal ?? 'SIGKILL']);
      });
    });
    await begun(started);
    return { pid: Number(started.pid), ended, signal: (name) => void started.kill(name) };
  } catch (cause) {
    over();
    throw notStarted(program, errorCode(cause), cause);
  }
}

/** Waits until a process runs. @throws the system's error where it can't be started */
function begun(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve).once('error', reject);
  });
}

/** How long after a signal its copy for the witness may come, in milliseconds. */
const TOGETHER = 500;

/**
 * Tells signals to the whole process group from signals to this process alone. A terminal sends SIGINT for
 * Ctrl-C to the whole group: the command has it already, and a second one makes many programs give up their
 * work. Node.js does not say who has sent a signal. So a process that does nothing runs in the same group:
 * when it dies of the same signal, the group got it.
 */
class GroupWitness {
  readonly #seen = new Map<NodeJS.Signals, number>();
  readonly #died = new EventEmitter();
  readonly #env: Variables;
  #child: ChildProcess | undefined;
  #isClosed = false;

  /** @param env of this process */
  constructor(env: Variables) {
    this.#env = env;
    this.#start();
  }

  /** Whether the group got the signal too that this process has got just now. */
  async saw(signal: NodeJS.Signals): Promise<boolean> {
    const since = performance.now() - TOGETHER;
    const isSeen = (): boolean => (this.#seen.get(signal) ?? Number.NEGATIVE_INFINITY) > since;
    const until = AbortSignal.timeout(TOGETHER);
    while (!isSeen() && !until.aborted)
      await once(this.#died, 'again', { signal: until }).catch(() => undefined);
    return isSeen();
  }

  close(): void {
    this.#isClosed = true;
    this.#child?.stdin?.end();
  }

  #start(): void {
    // It ends when this process does.
    const child = spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'], env: childEnvironment(this.#env) });
    child.on('error', () => undefined).stdin.on('error', () => undefined);
    child.once('exit', (_code, signal) => {
      if (signal === null) return;
      this.#seen.set(signal, performance.now());
      this.#died.emit('again');
      if (!this.#isClosed) this.#start();
    });
    this.#child = child;
  }
}

/** See `Processes.startGuardian`. It has this process's tokens, with which it deletes, and it has a session of its own, so that no signal of a terminal reaches it. */
export async function startGuardian(flags: readonly string[]): Promise<Pipe> {
  const [, launcher = ''] = process.argv;
  // A single executable has no launcher. Runtimes other than Node.js lack this module.
  const isExecutable = process.getBuiltinModule('node:sea')?.isSea() === true;
  const program = isExecutable ? [] : [...process.execArgv, launcher];
  const child = spawn(process.execPath, [...program, GUARDIAN, ...flags], {
    detached: true,
    windowsHide: true,
    // At the end of a job GitHub's runner kills every process that has it: together with `run`, which it is to outlive.
    env: { ...process.env, RUNNER_TRACKING_ID: undefined },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.stdin.on('error', () => undefined);
  try {
    await begun(child);
  } catch (cause) {
    const message = "The guardian can't be started, which deletes the reservation if this program is killed.";
    const why = `${systemReason(cause)} Nothing was booked.`;
    throw new Failure('state_unusable', message, { why, cause });
  }
  child.unref();
  return {
    tell: (line) => new Promise((resolve) => child.stdin.write(`${line}\n`, () => resolve())),
    close: () => void child.stdin.end(),
  };
}

/** The most that is kept of each of a program's streams, in characters. */
const MOST_KEPT = 4_194_304;

/** See `Processes.runProgram`. */
export async function runProgram(
  [program = '', ...args]: readonly string[],
  { input, signal, onLine, onNotice }: RunOptions,
  env: Variables,
): Promise<ProgramResult> {
  const path = `${env['PATH'] ?? '/usr/bin:/bin'}:/usr/sbin:/sbin`;
  const child = spawn(program, args, {
    env: { ...childEnvironment(env), PATH: path, LC_ALL: 'C' },
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
    throw notStarted(program, errorCode(cause), cause);
  }
  const stop = (): void => void child.kill('SIGTERM');
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop, { once: true });
  const exitCode = await ended;
  signal?.removeEventListener('abort', stop);
  return { exitCode, ...kept };
}
