import { uptime } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import manifest from '../../package.json' with { type: 'json' };
import type { MachineClock, Processes, Surroundings, Terminal } from '../../src/cli/context.ts';
import { run } from '../../src/cli/run.ts';
import { filesOn } from '../../src/main/files.ts';
import { connectOffline } from '../../src/main/offline-connection.ts';
import { checkProgram, runProgram } from '../../src/main/processes.ts';
import { SERVER_OPTIONS } from '../../src/operate/options.ts';
import { connectOverNetwork } from '../../src/session/login/connection.ts';
import { foldersFor } from '../../src/session/profiles/folders.ts';
import { OFFLINE } from '../../src/session/profiles/profile-keys.ts';
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
  const around = surroundings(home, running, { stopped: stopped.promise, stdout, stderr });
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

/** Real files, sockets and locks, in a home folder and with this environment. */
function surroundings(
  home: string,
  { stdin = '', env = {}, pauses, clock = 0 }: Parameters<Runner>[2],
  {
    stopped,
    stdout,
    stderr,
  }: Pick<Terminal, 'stdout' | 'stderr'> & { stopped: ReturnType<Processes['stopSignal']> },
): Surroundings {
  const folders = foldersFor(env, home);
  const pause: MachineClock['sleep'] = async (milliseconds, signal) => {
    pauses?.push(milliseconds);
    await sleep(Math.min(milliseconds, LONGEST_PAUSE), undefined, { signal });
  };
  const now = (): number => Date.now() + clock;
  const serveFolder = resolve(folders.state, 'serve');
  const files = filesOn(folders.state);
  const at = (path: string): string => (path === '-' ? path : resolve(home, path));
  return {
    clock: { now, sleep: pause, localZone: () => env['TZ'] ?? 'UTC' },
    env: {
      version: manifest.version,
      variables: env,
      folders,
      home,
      newKey: () => crypto.randomUUID(),
      licences: async () => undefined,
    },
    terminal: { stdout, stderr, openBrowser: async () => false },
    files: {
      ...files,
      read: async (path) => (path === '-' ? Buffer.from(stdin) : files.read(at(path))),
      makeFolder: (path) => files.makeFolder(at(path)),
      remove: (path) => files.remove(at(path)),
      checkAbsent: (path) => files.checkAbsent(at(path)),
      exists: (path) => files.exists(at(path)),
      checkWritable: (path) => files.checkWritable(at(path)),
      writePrivate: (path, text) => files.writePrivate(at(path), text),
      writePublic: (path, text) => files.writePublic(at(path), text),
      contentBelow: (folder, path) => files.contentBelow(at(folder), path),
      writeBelow: (folder, path, text, isPrivate) => files.writeBelow(at(folder), path, text, isPrivate),
      privatePath: async (name) => resolve(home, name),
    },
    async connect(profile, network) {
      if (profile.name === OFFLINE) {
        const { trace } = network;
        return connectOffline(profile, {
          stateFolder: folders.state,
          now: Date.now,
          trace,
        });
      }
      return connectOverNetwork(profile, {
        ...network,
        env,
        stateFolder: folders.state,
        cacheFolder: folders.cache,
        now,
        uptime,
        random: Math.random,
        sleep: pause,
      });
    },
    // The guardian has nothing to do as long as nothing is booked.
    processes: {
      ...NO_PROCESSES,
      check: async (program) => checkProgram(program, env),
      startGuardian: async () => ({ tell: async () => undefined, close: () => undefined }),
      runProgram: async (call, options = {}) => runProgram(call, options, env),
      stopSignal: () => stopped,
    },
    server: {
      options: SERVER_OPTIONS,
      databaseOf: ({ data, database }) => database ?? data ?? serveFolder,
      async serve(options, given) {
        const { serve } = await import('../../src/operate/serve.ts');
        return serve(options, {
          defaultFolder: serveFolder,
          write: stderr.write,
          now: Date.now,
          random: Math.random,
          ...given,
        });
      },
      async rotateKeys(options, confirm) {
        const { rotateKeys } = await import('../../src/operate/rotate-keys.ts');
        return rotateKeys(options, { defaultFolder: serveFolder, now: Date.now, confirm });
      },
      async backUp(options, file) {
        const { backUp } = await import('../../src/operate/backup.ts');
        return backUp(options, serveFolder, at(file));
      },
      async readAudit(options, take) {
        const { readServerAudit } = await import('../../src/operate/audit.ts');
        return readServerAudit(options, serveFolder, take);
      },
    },
  };
}
