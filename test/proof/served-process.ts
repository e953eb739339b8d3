import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { COMPILED } from '../fixtures/compiled.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { withoutPassword } from '../fixtures/postgres-server.ts';
import { LAUNCHER } from '../fixtures/program.ts';
import { HttpCaller } from './caller.ts';

/** What a server is started with. */
export interface ServedOptions {
  port: number;
  /** The address that the replicas share. */
  base: string;
  /** `--data`, `--database`, `--topology` and the like. */
  args: readonly string[];
  /** Its home folder. */
  home: string;
  /** Turns the command into the one that is run, which must not be another process than the server. */
  under?: (command: readonly string[]) => [program: string, ...args: string[]];
}

/** `slices-conn serve` as a process, to be killed and started again under the same address. */
export class ServedProcess {
  readonly caller: HttpCaller;
  readonly #options: ServedOptions;
  /** The lines of its log that tell of a bug, since it was made. */
  readonly bugs: string[] = [];
  #child: ChildProcess | undefined;
  #errors = '';

  constructor(options: ServedOptions) {
    this.#options = options;
    this.caller = new HttpCaller(options.port, options.base);
  }

  /** The process's id. @throws Error when it does not run */
  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error('the server does not run');
    return pid;
  }

  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  /** What it wrote to stderr since it was started last. */
  get errors(): string {
    return this.#errors;
  }

  /** Starts it and waits until it answers. @throws Error when it ends instead */
  async start(): Promise<void> {
    const { port, base, args, home, under } = this.#options;
    // All that is sent comes from a few users.
    const limits = ['--max-changes', '1000000000'];
    const given = withoutPassword(['serve', '--port', String(port), '--base-url', base, ...limits, ...args]);
    const command = [process.execPath, LAUNCHER, ...given.args] as const;
    const [program, ...rest] = under?.(command) ?? command;
    const child = spawn(program, rest, {
      cwd: home,
      env: { PATH: '/usr/bin:/bin', HOME: home, ...COMPILED, ...given.env },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#errors = '';
    this.#child = child;
    if (child.stderr) {
      createInterface(child.stderr).on(
        'line',
        (line) => line.includes('"event":"bug"') && this.bugs.push(line),
      );
    }
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      // The log of requests is long; what went wrong is at its end.
      this.#errors = (this.#errors + text).slice(-20_000);
    });
    child.once('exit', () => {
      if (this.#child === child) this.#child = undefined;
    });
    for (const limit = performance.now() + PATIENCE; ; await sleep(20)) {
      if (!this.isRunning) throw new Error(`the server ended: ${this.#errors}`);
      const answer = await this.caller.send('GET', '/.well-known/jwks.json').catch(() => undefined);
      if (answer?.status === 200) return;
      if (performance.now() > limit) throw new Error(`the server does not answer: ${this.#errors}`);
    }
  }

  /** Waits until it has ended. */
  async gone(): Promise<void> {
    const child = this.#child;
    if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }

  /** Ends it with SIGKILL and waits until it is gone. */
  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL');
    await this.gone();
  }

  /** Ends it with SIGTERM, so that it finishes the requests it has begun, and waits until it has ended. */
  async stop(): Promise<void> {
    this.#child?.kill('SIGTERM');
    await this.gone();
  }

  async close(): Promise<void> {
    await this.kill();
    this.caller.close();
  }
}
