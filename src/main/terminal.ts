import { fstatSync } from 'node:fs';
import type { Processes, Terminal } from '../cli/context.ts';
import type { TextStream } from '../cli/print/output.ts';
import type { ProgressLine } from '../cli/print/progress.ts';
import type { Stopped } from '../cli/sent-changes.ts';
import type { Variables } from '../session/profiles/folders.ts';

/** The standard streams of this process. */
export function terminal(env: Variables): Terminal {
  const { stdout, stderr } = process;
  const stdinIsTerminal = isStdinTerminal();
  return {
    stdout: textStream(stdout),
    stderr: textStream(stderr),
    stdinIsTerminal,
    progressLine: stderr.isTTY ? (what) => openProgressLine(stderr, what) : undefined,
    ask: stdinIsTerminal && stderr.isTTY ? ask : undefined,
    openBrowser: (address) => openBrowser(address, env),
  };
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
  };
}

/** The reason to stop that each signal gives a command. */
const STOPPED = { SIGINT: 'interrupted', SIGTERM: 'terminated' } as const;
let tellStop: Parameters<Processes['onStop']>[0] = (stopped) =>
  stopped === 'interrupted' ? 130 : stopped === 'terminated' ? 143 : 2;

/** Lets SIGINT and SIGTERM end the process at once, with the exit code of {@link onStop}'s function. */
export function stopAtSignals(): void {
  for (const [signal, stopped] of Object.entries(STOPPED)) {
    // Not `once`: without a listener, a second one would end the process before it has said why it stops.
    process.on(signal, () => process.exit(tellStop(stopped)));
  }
}

/**
 * Ends the process when standard output takes no more: with 0 where its reader has gone, as in `slices-conn
 * list | head -1`; else, on a full disk for one, with the exit code that {@link onStop}'s function returns.
 */
export function stopAtFailedOutput(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? 0 : tellStop(error));
  });
}

/** See `Processes.onStop`. Without a function the exit code is the shells' own: 130 or 143. */
export function onStop(tell: Parameters<Processes['onStop']>[0]): void {
  tellStop = tell;
}

/** Lines that were typed before their question, and the beginning of one more. */
const typedAhead: string[] = [];
let begun = '';

/** See `Terminal.ask`. Ctrl-C ends the process as everywhere else. */
async function ask(question: string): Promise<string | undefined> {
  const typed = typedAhead.shift();
  if (typed !== undefined) {
    process.stderr.write(`${question}${typed}\n`);
    return typed;
  }
  const { createInterface } = await import('node:readline');
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  // A terminal that is gone, or is another process's, ends the question as Ctrl-D does.
  prompt.once('error', () => prompt.close());
  return new Promise((resolve) => {
    // While readline reads, the terminal sends no signal for Ctrl-C. One sent from here would end the program
    // unheard on Windows.
    prompt.once('SIGINT', () => process.emit('SIGINT') || process.exit(tellStop('interrupted')));
    let answer: string | undefined;
    prompt.once('close', () => {
      // After Ctrl-D the line holds the question still.
      if (answer === undefined) process.stderr.write('\n');
      resolve(answer);
    });
    prompt.on('line', (line) => typedAhead.push(line));
    prompt.question(question, (line) => {
      answer = line;
      // The rest of what came with it is read first.
      setImmediate(() => {
        begun = prompt.line;
        prompt.close();
      });
    });
    prompt.write(begun);
    begun = '';
  });
}

/**
 * For how long a second signal is a copy of the first, in milliseconds: a launcher, a shell or a supervisor passes on a signal
 * that the whole process group has got.
 */
const COPIES_MS = 500;

/** Waits for SIGINT or SIGTERM, which do not end the process from now on; a second one does. @returns the first of them */
export function stopSignal(): Promise<Stopped> {
  return new Promise((resolve) => {
    for (const [signal, stopped] of Object.entries(STOPPED)) {
      process.removeAllListeners(signal);
      const heard = (): void => {
        resolve(stopped);
        setTimeout(() => process.off(signal, heard), COPIES_MS).unref();
      };
      process.on(signal, heard);
    }
  });
}

/** The programs that open an address without a shell, by platform; elsewhere it is `xdg-open`. */
const OPENERS: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

/**
 * Opens an address in the person's browser, if a person sits in front of this terminal: not over ssh, not in
 * CI.
 *
 * @returns whether a browser was started
 */
async function openBrowser(address: string, env: Variables): Promise<boolean> {
  const remote = env['SSH_CONNECTION'] || env['SSH_TTY'] || env['CI'];
  if (!process.stderr.isTTY || remote) return false;
  const [opener = 'xdg-open', ...leading] = env['BROWSER']
    ? [env['BROWSER']]
    : (OPENERS[process.platform] ?? []);
  if (!env['BROWSER'] && process.platform === 'linux' && !env['DISPLAY'] && !env['WAYLAND_DISPLAY'])
    return false;
  const [{ spawn }, { childEnvironment }] = await Promise.all([
    import('node:child_process'),
    import('../session/login/token-source.ts'),
  ]);
  return new Promise((resolve) => {
    // No shell: the address comes from a service.
    const browser = spawn(opener, [...leading, address], {
      stdio: 'ignore',
      detached: true,
      env: childEnvironment(env),
    });
    browser.once('error', () => resolve(false));
    browser.once('spawn', () => {
      browser.unref();
      resolve(true);
    });
  });
}

/**
 * A line with ora's spinner. ora is loaded here, so that only commands that wait pay for it. It hides no cursor, reads no keys,
 * and stops for good at an error of the terminal, and where the terminal says that it has no columns: ora would clear lines for ever.
 */
export async function openProgressLine(
  terminal: NodeJS.WriteStream,
  what: () => string,
): Promise<ProgressLine> {
  const { default: ora } = await import('ora');
  const spinner = ora({
    ...{ stream: terminal, color: false, hideCursor: false, discardStdin: false },
    ...{ text: 'Waiting for', suffixText: what },
  });
  const end = (): void => {
    spinner.isEnabled = false;
    spinner.stop();
  };
  terminal.on('error', end).on('resize', () => {
    if (!(terminal.columns > 0)) end();
  });
  if (!(terminal.columns > 0)) end();
  return {
    start: () => {
      if (spinner.isEnabled) spinner.start();
    },
    stop: () => {
      if (spinner.isSpinning) spinner.stop();
    },
  };
}
