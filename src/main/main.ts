import { fstatSync } from 'node:fs';
import { uptime } from 'node:os';
import { join } from 'node:path';
import { COMPLETE } from '../cli/completion/scripts.ts';
import type { TextStream } from '../cli/print/output.ts';
import { run } from '../cli/run.ts';
import type { ServerCommands } from '../cli/serve/server.ts';
import type { NetworkSettings } from '../cli/world.ts';
import { homeFolder } from '../files/home.ts';
import { privateFolder } from '../files/private.ts';
import {
  type AuditOptions,
  type BackupOptions,
  type RotateKeysOptions,
  SERVER_OPTIONS,
  type ServeOptions,
} from '../operate/options.ts';
import type { Connection } from '../session/login/connection.ts';
import { foldersFor } from '../session/profiles/folders.ts';
import { OFFLINE } from '../session/profiles/profile-keys.ts';
import type { Profile } from '../session/profiles/profiles.ts';
import { files, shellHome } from './files.ts';
import { localZone } from './local-zone.ts';
import { openLedger, underLock } from './state.ts';
import {
  ask,
  onStop,
  openBrowser,
  openProgressLine,
  stopAtFailedOutput,
  stopAtSignals,
  stopSignal,
} from './terminal.ts';

const { env } = process;

/** Where this program keeps things, for this user and this environment. */
const folders = foldersFor(env, homeFolder());

/**
 * The command line in the real world: the only place that knows the real clock, files, environment and streams.
 *
 * @param args without the program's own name
 * @param version the package's
 * @returns the exit code
 */
export async function main(args: readonly string[], version: string): Promise<number> {
  stopAtSignals();
  stopAtFailedOutput();
  const stdinIsTerminal = isStdinTerminal();
  const exitCode = await run(args, {
    version,
    env,
    folders,
    stdout: textStream(process.stdout),
    stderr: textStream(process.stderr),
    ...(process.stderr.isTTY ? { progressLine: () => openProgressLine(process.stderr) } : {}),
    files,
    shellHome: shellHome(homeFolder(), env),
    now: Date.now,
    newKey: () => crypto.randomUUID(),
    sleep,
    localZone: () => localZone(env),
    openLedger: () => openLedger(folders.state),
    underLock,
    connect,
    server,
    processes: {
      check: async (program) => (await import('./processes.ts')).checkProgram(program, env),
      start: async (command, variables) =>
        (await import('./processes.ts')).startCommand(command, variables, env),
      startGuardian: async (args) => (await import('./processes.ts')).startGuardian(args),
      privateFile: async (name) => join(privateFolder(join(privateFolder(folders.state), 'run')), name),
    },
    machine: {
      isRoot: () => process.geteuid?.() === 0,
      runProgram: async (call, options = {}) => (await import('./machine.ts')).runProgram(call, options, env),
    },
    stopSignal,
    onStop,
    openBrowser: (address) => openBrowser(address, env),
    stdinIsTerminal,
    ...(stdinIsTerminal && process.stderr.isTTY ? { ask } : {}),
  });
  // The shell waits: a request that is still under way is abandoned.
  if (args[0] === COMPLETE) process.exit(exitCode);
  return exitCode;
}

/** Whether standard input is a terminal. It is told without `process.stdin`, which is slow to make. */
function isStdinTerminal(): boolean {
  try {
    if (process.platform !== 'win32' && !fstatSync(0).isCharacterDevice()) return false;
  } catch {
    return false;
  }
  return process.getBuiltinModule('node:tty').isatty(0);
}

function textStream(stream: NodeJS.WriteStream): TextStream {
  return {
    write: (text) => void stream.write(text),
    isTerminal: stream.isTTY === true,
    columns: stream.columns,
    rows: stream.rows,
  };
}

/** The commands of an operator. Their code is loaded when one of them runs; their flags are in every help. */
const server: ServerCommands = {
  options: SERVER_OPTIONS,
  async serve(options: ServeOptions, given) {
    const { serve } = await import('../operate/serve.ts');
    const running = await serve(options, {
      defaultFolder: serveFolder(),
      write: (line) => void process.stderr.write(line),
      now: Date.now,
      random,
      ownsProcess: true,
      ...given,
    });
    const { reload } = running;
    // On Windows this signal is the closed window.
    if (reload && process.platform !== 'win32') process.on('SIGHUP', reload);
    return running;
  },
  async rotateKeys(options: RotateKeysOptions, confirm) {
    const { rotateKeys } = await import('../operate/rotate-keys.ts');
    return rotateKeys(options, { defaultFolder: serveFolder(), now: Date.now, confirm });
  },
  async backUp(options: BackupOptions, file) {
    const { backUp } = await import('../operate/backup.ts');
    return backUp(options, serveFolder(), file);
  },
  async readAudit(options: AuditOptions, take) {
    const { readServerAudit } = await import('../operate/audit.ts');
    return readServerAudit(options, serveFolder(), take);
  },
};

async function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  const { setTimeout } = await import('node:timers/promises');
  await setTimeout(milliseconds, undefined, signal ? { signal } : {});
}

/** A number from 0 to 1. */
function random(): number {
  return (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) / 2 ** 32;
}

/** Where `serve` keeps its data when no flag says where. */
const serveFolder = (): string => join(privateFolder(folders.state), 'serve');

async function connect(profile: Profile, network: NetworkSettings): Promise<Connection> {
  if (profile.name === OFFLINE) {
    const { connectOffline } = await import('./offline-connection.ts');
    const { trace } = network;
    const stateFolder = folders.state;
    return connectOffline(profile, { stateFolder, now: Date.now, trace });
  }
  const { connectOverNetwork } = await import('../session/login/connection.ts');
  return connectOverNetwork(profile, {
    ...network,
    env,
    stateFolder: folders.state,
    cacheFolder: folders.cache,
    now: Date.now,
    uptime,
    random,
    sleep,
  });
}
