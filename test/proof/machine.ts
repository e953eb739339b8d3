import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import * as v from 'valibot';
import type { SqlRow } from '../../src/store/sql.ts';
import { freePort } from '../fixtures/postgres-server.ts';
import { type Ended, startCommand } from '../fixtures/program.ts';
import { openProxy, type TcpProxy } from '../fixtures/proxy.ts';
import { logIn } from './caller.ts';
import type { Person } from './outcomes.ts';
import type { Place } from './place.ts';
import type { Run } from './run.ts';
import { ServedProcess } from './served-process.ts';

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
      SLICES_CONN_BASE_URL: base,
      SLICES_CONN_PORTAL_URL: `${base}/portal`,
      SLICES_CONN_AUTH_URL: `${base}/auth`,
      SLICES_CONN_USER_TOKEN: userToken,
    };
  }

  start(args: readonly string[]): { kill: () => void; ended: Promise<Ended> } {
    const { signal, ended } = startCommand(['--json', ...args], { home: this.#home, env: this.#env });
    return { kill: () => signal('SIGKILL'), ended };
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

/** A server as a process, and a person who is logged in there, whose commands go through a proxy. */
export interface ProxiedServer {
  readonly server: ServedProcess;
  readonly machine: ProofMachine;
  readonly proxy: TcpProxy;
}

/**
 * See {@link ProxiedServer}. All of it ends with the proof.
 *
 * @param where the flags that say where the server keeps its data; default: the place
 * @param seen is shown every piece that goes to the server
 */
export async function proxiedServer(
  { place, atEnd, serveFlags }: Run,
  {
    topology,
    where,
    seen,
  }: { topology?: object; where?: readonly string[]; seen?: (piece: Buffer) => void } = {},
): Promise<ProxiedServer> {
  const port = await freePort();
  const proxy = await openProxy(`http://127.0.0.1:${port}`, seen);
  const base = proxy.url.replace(/\/$/, '');
  const server = new ServedProcess({ port, base, home: place.folder, args: serveFlags(topology, where) });
  atEnd(async () => {
    await server.close();
    proxy.close();
  });
  await server.start();
  return { server, proxy, machine: new ProofMachine(place, base, await logIn(server.caller)) };
}
