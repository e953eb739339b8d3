import { readlinkSync } from 'node:fs';
import { uptime } from 'node:os';
import { join, resolve } from 'node:path';
import { COMPLETE } from '../cli/completion/scripts.ts';
import type { Environment, Processes, Surroundings } from '../cli/context.ts';
import { run } from '../cli/run.ts';
import { homeFolder } from '../files/home.ts';
import { readInstalled } from '../files/installed.ts';
import { privateFolder } from '../files/private.ts';
import { SERVER_OPTIONS } from '../operate/options.ts';
import { foldersFor, type Variables } from '../session/profiles/folders.ts';
import { OFFLINE } from '../session/profiles/profile-keys.ts';
import { filesOn } from './files.ts';
import { onStop, stopAtFailedOutput, stopAtSignals, stopSignal, terminal } from './terminal.ts';

/** The parts of the surroundings that a test has otherwise, since it runs many commands in one process. */
interface Host
  extends Pick<Surroundings, 'clock' | 'terminal' | 'processes'>,
    Pick<Environment, 'version' | 'executable' | 'variables' | 'home'> {
  /** Whether the process does nothing but one command: its server may change it, and reloads at SIGHUP. */
  ownsProcess?: boolean;
}

/**
 * The command line in the real world: the only place that knows the real clock, environment and streams.
 *
 * @param args without the program's own name
 * @param version the package's
 * @param executable see `Environment`
 * @returns the exit code
 */
export async function main(args: readonly string[], version: string, executable?: string): Promise<number> {
  stopAtSignals();
  stopAtFailedOutput();
  const { env } = process;
  const clock = { now: Date.now, sleep, localZone };
  const exitCode = await run(
    args,
    surroundings({
      ...{ version, executable, variables: env, home: homeFolder(), ownsProcess: true },
      ...{ clock, terminal: terminal(env), processes: processes(env) },
    }),
  );
  // The shell waits: a request that is still under way is abandoned.
  if (args[0] === COMPLETE) process.exit(exitCode);
  return exitCode;
}

/** The surroundings of commands on a machine, with its files and its network. */
export function surroundings(host: Host): Surroundings {
  const { version, executable, variables, home, clock, terminal, processes, ownsProcess } = host;
  const folders = foldersFor(variables, home);
  const env: Environment = {
    ...{ version, executable, variables, folders, home },
    newKey: () => crypto.randomUUID(),
    licences: () => readInstalled('licences', 'notices.txt'),
  };
  /** Where `serve` keeps its data when no flag says where. */
  const serveFolder = (): string => join(privateFolder(folders.state), 'serve');
  return {
    ...{ clock, env, terminal, processes, files: filesOn(folders.state) },
    async connect(profile, network) {
      const { now, sleep } = clock;
      if (profile.name === OFFLINE) {
        const { connectOffline } = await import('./offline-connection.ts');
        return connectOffline(profile, { stateFolder: folders.state, now, trace: network.trace });
      }
      const { connectOverNetwork } = await import('../session/login/connection.ts');
      return connectOverNetwork(profile, {
        ...network,
        ...{ env: variables, stateFolder: folders.state, cacheFolder: folders.cache },
        ...{ now, sleep, uptime, random },
      });
    },
    // Their code is loaded when one of them runs; their flags are in every help.
    server: {
      options: SERVER_OPTIONS,
      databaseOf: ({ data, database }) => database ?? resolve(data ?? serveFolder()),
      async serve(options, given) {
        // systemd and logrotate send it to reload. On Windows this signal is the closed window.
        let reload: (() => void) | undefined;
        if (ownsProcess && process.platform !== 'win32') process.on('SIGHUP', () => reload?.());
        const { serve } = await import('../operate/serve.ts');
        const running = await serve(options, {
          ...{ defaultFolder: serveFolder(), write: terminal.stderr.write, now: clock.now, random },
          ...{ ownsProcess, ...given },
        });
        reload = running.reload;
        return running;
      },
      async rotateKeys(options, confirm) {
        const { rotateKeys } = await import('../operate/rotate-keys.ts');
        return rotateKeys(options, { defaultFolder: serveFolder(), now: clock.now, confirm });
      },
      async backUp(options, file) {
        const { backUp } = await import('../operate/backup.ts');
        return backUp(options, serveFolder(), file);
      },
      async readAudit(options, take) {
        const { readServerAudit } = await import('../operate/audit.ts');
        return readServerAudit(options, serveFolder(), take);
      },
    },
  };
}

async function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  const { setTimeout } = await import('node:timers/promises');
  await setTimeout(milliseconds, undefined, { signal });
}

/**
 * The zone of `/etc/localtime`; `UTC` where it is not known. JavaScript itself is asked last: its own search
 * for the zone takes half as long as Node to start.
 */
function localZone(): string {
  try {
    const [, linked] = /\/zoneinfo\/(?:posix\/|right\/)?(.+)$/.exec(readlinkSync('/etc/localtime')) ?? [];
    if (linked !== undefined) return linked;
  } catch {
    // It is no link.
  }
  // With TZ set, JavaScript's own answer is about TZ.
  if (process.env['TZ'] !== undefined) return 'UTC';
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions() as Partial<Intl.ResolvedDateTimeFormatOptions>;
  return timeZone === undefined || timeZone === 'Etc/Unknown' ? 'UTC' : timeZone;
}

/** This process, and those that it starts. Their code is loaded when one is needed. */
function processes(env: Variables): Processes {
  const loaded = () => import('./processes.ts');
  return {
    check: async (program) => (await loaded()).checkProgram(program, env),
    start: async (command, environment) => (await loaded()).startCommand(command, environment, env),
    startGuardian: async (flags) => (await loaded()).startGuardian(flags),
    terminate(pid) {
      try {
        process.kill(pid, 'SIGTERM');
      } catch {
        // It has ended, or is another user's by now.
      }
    },
    isRoot: () => process.geteuid?.() === 0,
    runProgram: async (call, options = {}) => (await loaded()).runProgram(call, options, env),
    stopSignal,
    onStop,
  };
}

/** A number from 0 to 1. */
function random(): number {
  return (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) / 2 ** 32;
}
