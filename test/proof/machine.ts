import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import * as v from 'valibot';
import type { SqlRow } from '../../src/store/sql.ts';
import { COMPILED } from '../fixtures/compiled.ts';
import type { Ended, Person } from './outcomes.ts';
import type { Place } from './place.ts';
import { LAUNCHER } from './served-process.ts';

const Listed = v.object({
  items: v.array(v.object({ id: v.nullable(v.string()), requested: v.nullable(v.unknown()) })),
});

/** A person's machine whose commands go to the server, with one ledger for all of them. */
export class ProofMachine implements Person {
  readonly #home: string;
  readonly #env: Readonly<Record<string, string>>;

  constructor({ folder }: Place, base: string, userToken: string) {
    this.#home = folder;
    this.#env = {
      PATH: '/usr/bin:/bin',
      HOME: folder,
      XDG_CONFIG_HOME: join(folder, 'config'),
      XDG_STATE_HOME: join(folder, 'state'),
      XDG_CACHE_HOME: join(folder, 'cache'),
      ...COMPILED,
      SLICES_CONN_BASE_URL: base,
      SLICES_CONN_PORTAL_URL: `${base}/portal`,
      SLICES_CONN_AUTH_URL: `${base}/auth`,
      SLICES_CONN_USER_TOKEN: userToken,
    };
  }

  start(args: readonly string[]): { kill: () => void; ended: Promise<Ended> } {
    const child = spawn(process.execPath, [LAUNCHER, '--json', ...args], {
      cwd: this.#home,
      env: this.#env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const output: Ended = { exitCode: null, stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        output[name] += text;
      });
    }
    const ended = new Promise<Ended>((resolve, reject) => {
      child.on('error', reject).on('close', (exitCode) => resolve({ ...output, exitCode }));
    });
    return { kill: () => void child.kill('SIGKILL'), ended };
  }

  run(args: readonly string[]): Promise<Ended> {
    return this.start(args).ended;
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.#home, name), text);
  }

  /** Runs all, two at a time, in order. */
  async runEach(attempts: readonly { args: readonly string[] }[]): Promise<Ended[]> {
    const ended: Ended[] = [];
    for (let index = 0; index < attempts.length; index += 2) {
      const pair = attempts.slice(index, index + 2);
      ended.push(...(await Promise.all(pair.map(({ args }) => this.start(args).ended))));
    }
    return ended;
  }

  async list(): Promise<v.InferOutput<typeof Listed>['items']> {
    const { stdout, stderr } = await this.start(['list', '--all']).ended;
    if (stdout === '') throw new Error(`no list: ${stderr}`);
    return v.parse(Listed, JSON.parse(stdout)).items;
  }

  /** The ledger's rows, read beside it. */
  async ledger(): Promise<SqlRow[]> {
    const file = join(this.#home, 'state', 'slices-conn', 'ledger.sqlite');
    // No command has come so far.
    if (!existsSync(file)) return [];
    // A killed command may have left its journal, which only a connection that may write takes back.
    const database = new DatabaseSync(file, { timeout: 5000 });
    try {
      return database.prepare('SELECT key, outcome, reservation_id, requested FROM attempt').all();
    } finally {
      database.close();
    }
  }
}
