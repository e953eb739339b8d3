import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import manifest from '../../package.json' with { type: 'json' };
import type { Files, MachineClock, Processes, Surroundings, Terminal } from '../../src/cli/context.ts';
import { run } from '../../src/cli/run.ts';
import { surroundings } from '../../src/main/main.ts';
import { checkProgram, runProgram } from '../../src/main/processes.ts';
import { NO_PROCESSES } from '../fixtures/command-world.ts';
import { recordedStream } from '../fixtures/recorded-stream.ts';
import type { Ended, Runner } from './command.ts';

/** No pause lasts longer, in milliseconds: the services of the tests are on this machine. */
const LONGEST_PAUSE = 20;

/**
 * Runs a command in the process of the test, with real files, sockets and locks. A process for each command would take
 * ten times as much processor time. It can't show signals, closed streams, the umask, or a terminal.
 */
export const here: Runner = (home, args, running) => startHere(home, args, running).ended;

/** A command in the process of the test that may be under way. */
export interface StartedHere {
  /** What it has printed so far. */
  readonly output: Pick<Ended, 'stdout' | 'stderr'>;
  /** Stops it, as SIGTERM would. @returns how it ended */
  stop(): Promise<Ended>;
  readonly ended: Promise<Ended>;
}

/** Starts what {@link here} runs. */
export function startHere(
  home: string,
  args: readonly string[],
  running: Omit<Parameters<Runner>[2], 'ownProcess' | 'closed' | 'onFullDisk' | 'withoutUmask'> = {},
): StartedHere {
  const [stdout, stderr] = [recordedStream(), recordedStream()];
  const output = {
    get stdout() {
      return stdout.text;
    },
    get stderr() {
      return stderr.text;
    },
  };
  const stopped = Promise.withResolvers<'terminated'>();
  const around = surroundingsIn(home, running, { stopped: stopped.promise, stdout, stderr });
  const ended = run(args, around).then((exitCode) => ({ exitCode, ...output }));
  return {
    output,
    ended,
    stop() {
      stopped.resolve('terminated');
      return ended;
    },
  };
}

/** The program's own surroundings, in a home folder, where relative paths begin, and with this environment. */
function surroundingsIn(
  home: string,
  { stdin = '', env = {}, pauses, clock = 0 }: Parameters<Runner>[2],
  {
    stopped,
    stdout,
    stderr,
  }: Pick<Terminal, 'stdout' | 'stderr'> & { stopped: ReturnType<Processes['stopSignal']> },
): Surroundings {
  const pause: MachineClock['sleep'] = async (milliseconds, signal) => {
    pauses?.push(milliseconds);
    await sleep(Math.min(milliseconds, LONGEST_PAUSE), undefined, { signal });
  };
  const { files, server, ...around } = surroundings({
    ...{ version: manifest.version, variables: env, home },
    clock: { now: () => Date.now() + clock, sleep: pause, localZone: () => env['TZ'] ?? 'UTC' },
    terminal: { stdout, stderr, openBrowser: async () => false },
    processes: {
      ...NO_PROCESSES,
      check: async (program) => checkProgram(program, env),
      // It has nothing to do as long as nothing is booked.
      startGuardian: async () => ({ tell: async () => undefined, close: () => undefined }),
      runProgram: async (call, options = {}) => runProgram(call, options, env),
      stopSignal: () => stopped,
    },
  });
  const at = (path: string): string => resolve(home, path);
  const ofHome = {
    read: async (path) => (path === '-' ? Buffer.from(stdin) : files.read(at(path))),
    makeFolder: (path) => files.makeFolder(at(path)),
    remove: (path) => files.remove(at(path)),
    checkAbsent: (path) => files.checkAbsent(at(path)),
    exists: (path) => files.exists(at(path)),
    checkWritable: (path) => files.checkWritable(at(path)),
    writePrivate: (path, text) => files.writePrivate(at(path), text),
    writePublic: (path, text) => files.writePublic(at(path), text),
    contentBelow: (folder, path) => files.contentBelow(at(folder), path),
    writeBelow: (folder, ...file) => files.writeBelow(at(folder), ...file),
  } satisfies Partial<Files>;
  return {
    ...{ ...around, files: { ...files, ...ofHome } },
    server: { ...server, backUp: (options, file) => server.backUp(options, at(file)) },
  };
}
