import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { COMPLETE } from '../cli/completion/shells.ts';
import type { RunningServer, ServeSettings, UserFiles } from '../cli/invocation.ts';
import type { TextStream } from '../cli/print/output.ts';
import type { NetworkSettings, World } from '../cli/run.ts';
import { Failure } from '../contract/failure.ts';
import { moveAway } from '../contract/shell-word.ts';
import { cacheFolder, dataFolder, privateFolder } from '../files/private.ts';
import { writeWhole } from '../files/whole.ts';
import type { Connection } from '../session/login/connection.ts';
import { foldersFor } from '../session/profiles/folders.ts';
import { OFFLINE } from '../session/profiles/offline.ts';
import type { Profile } from '../session/profiles/profiles.ts';
import type { LedgerDatabase } from '../session/reservations/ledger.ts';
import { shellHome } from './shell-home.ts';

const { env } = process;
const folders = foldersFor(env, homedir());

/**
 * The command line in the real world: the only place that knows the real clock, files, environment and streams.
 *
 * @param args without the program's own name
 * @param version the package's
 * @returns the exit code
 */
export async function main(args: readonly string[], version: string): Promise<number> {
  stopAtSignals();
  useCompileCache();
  const { run } = await import('../cli/run.ts');
  const exitCode = await run(args, {
    version,
    env,
    folders,
    stdout: textStream(process.stdout),
    stderr: textStream(process.stderr),
    files,
    shellHome: shellHome(homedir(), env),
    now: Date.now,
    newKey: () => crypto.randomUUID(),
    sleep: async (milliseconds) => (await import('node:timers/promises')).setTimeout(milliseconds),
    localZone: () => Intl.DateTimeFormat().resolvedOptions().timeZone,
    openLedger,
    underLock,
    connect,
    serve: startServer,
    rotateKeys: async (settings) =>
      (await import('../operate/rotate-keys.ts')).rotateKeys(settings, serveFolder(), Date.now),
    backUp,
    readAudit: async (settings, take) =>
      (await import('../operate/audit.ts')).readServerAudit(settings, serveFolder(), take),
    stopSignal,
    onStop: (tell) => {
      tellStop = tell;
    },
    openBrowser,
    ...(process.stdin.isTTY && process.stderr.isTTY ? { ask } : {}),
  });
  // A shell waits for its answer: what else is still under way, such as the search for a name, is left.
  if (args[0] === COMPLETE) process.exit(exitCode);
  return exitCode;
}

/** Compiled code is run unseen: it is kept where nobody else could have put any (HOSTILE.md 51). */
function useCompileCache(): void {
  const umask = process.umask(0o077);
  try {
    privateFolder(folders.cache);
    enableCompileCache(cacheFolder(join(folders.cache, 'compiled')));
  } catch {
    // Without it everything works, a little later.
  } finally {
    process.umask(umask);
  }
}

function textStream(stream: NodeJS.WriteStream): TextStream {
  return {
    write: (text) => void stream.write(text),
    isTerminal: stream.isTTY === true,
    columns: stream.columns,
  };
}

async function ask(question: string): Promise<boolean> {
  const { createInterface } = await import('node:readline/promises');
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  // While it reads, the terminal sends no signal for Ctrl-C.
  prompt.once('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  try {
    return /^y(?:es)?$/i.test((await prompt.question(`${question} [y/N] `)).trim());
  } finally {
    prompt.close();
  }
}

const files: UserFiles = {
  async read(path) {
    try {
      if (path !== '-') return readFileSync(path);
      const chunks: Buffer[] = [];
      for await (const chunk of process.stdin) chunks.push(chunk);
      return Buffer.concat(chunks);
    } catch (cause) {
      throw fileFailure('read', path, cause);
    }
  },
  async makeFolder(path) {
    try {
      mkdirSync(path, { recursive: true, mode: 0o700 });
    } catch (cause) {
      throw fileFailure('made', path, cause);
    }
  },
  async remove(path) {
    try {
      rmSync(path, { force: true });
    } catch (cause) {
      throw fileFailure('removed', path, cause);
    }
  },
  async checkAbsent(path) {
    if (existsSync(path))
      throw fileFailure('written', path, new Error('There is one already. Move it away first.'));
  },
  async checkWritable(path) {
    try {
      accessSync(dirname(path), constants.W_OK);
      if (existsSync(path) && !statSync(path).isFile()) throw new Error('It is no file.');
    } catch (cause) {
      throw fileFailure('written', path, cause);
    }
  },
  writePrivate: async (path, text) => write(path, text, 0o600),
  writePublic: async (path, text) => write(path, text, 0o644),
};

function write(path: string, text: string, mode: number): void {
  try {
    writeWhole(path, text, mode);
  } catch (cause) {
    throw fileFailure('written', path, cause);
  }
}

function fileFailure(done: string, path: string, cause: unknown): Failure {
  return new Failure('file_unusable', `The file ${path} can't be ${done}.`, {
    why: cause instanceof Error ? cause.message : String(cause),
    cause,
  });
}

async function startServer(settings: ServeSettings): Promise<RunningServer> {
  const { serve } = await import('../operate/serve.ts');
  const running = await serve(settings, {
    defaultFolder: serveFolder(),
    write: (line) => void process.stderr.write(line),
    now: Date.now,
    random,
  });
  const { reload } = running;
  if (reload) process.on('SIGHUP', () => reload());
  return running;
}

/** A number from 0 to 1. */
function random(): number {
  return (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) / 2 ** 32;
}

/** Where `serve` keeps its data when nothing else is said. */
const serveFolder = (): string => join(privateFolder(folders.state), 'serve');

const backUp: World['backUp'] = async (folder = serveFolder(), file) => {
  const [{ backUp: copy }, { SERVER_FILE }] = await Promise.all([
    import('../store/sqlite/backup.ts'),
    import('../store/stores.ts'),
  ]);
  const source = join(folder, SERVER_FILE);
  if (!existsSync(source)) throw fileFailure('read', source, new Error('No server keeps its data there.'));
  if (existsSync(file)) {
    throw fileFailure('written', file, new Error('There is one already. Move it away first.'));
  }
  try {
    dataFolder(folder);
    return copy(source, file);
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    throw new Failure('file_unusable', `The database ${source} can't be copied to ${file}.`, {
      why: cause instanceof Error ? cause.message : String(cause),
      cause,
    });
  }
};

/** Told to stop, a command that does not wait for it ends at once, with the code that shells expect. */
const STOPPED = { SIGINT: 'interrupted', SIGTERM: 'terminated' } as const;
let tellStop: Parameters<World['onStop']>[0] = (stopped) => (stopped === 'interrupted' ? 130 : 143);

function stopAtSignals(): void {
  for (const [signal, stopped] of Object.entries(STOPPED)) {
    process.once(signal, () => process.exit(tellStop(stopped)));
  }
}

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of Object.keys(STOPPED)) {
      process.removeAllListeners(signal);
      process.once(signal, () => resolve());
    }
  });
}

/** Only where a person sits in front of this terminal: not over ssh, not in CI. */
async function openBrowser(address: string): Promise<boolean> {
  const remote = env['SSH_CONNECTION'] || env['SSH_TTY'] || env['CI'];
  if (!process.stderr.isTTY || remote) return false;
  const opener = env['BROWSER'] || (process.platform === 'darwin' ? 'open' : 'xdg-open');
  if (!env['BROWSER'] && process.platform === 'linux' && !env['DISPLAY'] && !env['WAYLAND_DISPLAY'])
    return false;
  const { spawn } = await import('node:child_process');
  return new Promise((resolve) => {
    // No shell: the address comes from a service.
    const browser = spawn(opener, [address], { stdio: 'ignore', detached: true });
    browser.once('error', () => resolve(false));
    browser.once('spawn', () => {
      browser.unref();
      resolve(true);
    });
  });
}

async function connect(profile: Profile, network: NetworkSettings): Promise<Connection> {
  if (profile.name === OFFLINE) {
    const { connectOffline } = await import('./offline-connection.ts');
    const { trace } = network;
    const stateFolder = folders.state;
    return connectOffline(profile, { stateFolder, now: Date.now, ...(trace ? { trace } : {}) });
  }
  const { connectOverNetwork } = await import('../session/login/network-connection.ts');
  return connectOverNetwork(profile, {
    ...network,
    env,
    stateFolder: folders.state,
    cacheFolder: folders.cache,
    underLock,
    now: Date.now,
    random,
  });
}

/** How long a command waits for another one that refreshes the login, in milliseconds: longer than that may take. */
const LOCK_PATIENCE = 90_000;

async function underLock<Answer>(file: string, work: () => Promise<Answer>): Promise<Answer> {
  const [{ underFileLock }, { StoreUnavailableError }] = await Promise.all([
    import('../store/sqlite/file-lock.ts'),
    import('../allocator/store.ts'),
  ]);
  try {
    return await underFileLock(file, LOCK_PATIENCE, work);
  } catch (cause) {
    if (!(cause instanceof StoreUnavailableError)) throw cause;
    // Only what SQLite says is about a lock.
    if (!(cause.cause instanceof Error && 'errcode' in cause.cause)) {
      throw new Failure('state_unusable', cause.message, { cause });
    }
    throw new Failure('timeout', 'Another slices-conn keeps this locked.', {
      why: `${file}: ${cause.message}`,
      retryable: true,
      cause,
    });
  }
}

async function openLedger(): Promise<LedgerDatabase> {
  const [{ SqliteDatabase }, { LEDGER_FORMAT }] = await Promise.all([
    import('../store/sqlite/database.ts'),
    import('../store/sqlite/ledger-format.ts'),
  ]);
  const path = join(privateFolder(folders.state), 'ledger.sqlite');
  const unusable = (cause: unknown): never => {
    if (cause instanceof Failure) throw cause;
    throw new Failure('state_unusable', `The ledger ${path} can't be used.`, {
      why: cause instanceof Error ? cause.message : String(cause),
      fix: `Mend it, or move it away: ${moveAway(path)}`,
      cause,
    });
  };
  const database = await SqliteDatabase.open(path, LEDGER_FORMAT).catch(unusable);
  return {
    transaction: (work) => database.transaction(work).catch(unusable),
    close: () => database.close(),
  };
}
