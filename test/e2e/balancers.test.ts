import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import { expect, test, vi } from 'vitest';
import { createReferenceServer } from '../../src/reference-server.ts';
import { signedBy } from '../fixtures/asked-server.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { freePort, usePostgres } from '../fixtures/postgres.ts';
import { startProgram } from '../fixtures/program.ts';
import { CONNECTIVITY, EVENTS } from '../fixtures/service.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { type OverWire, sendOverWire } from '../fixtures/wire.ts';
import { serveWith } from './served.ts';

/**
 * The balancers of the operators' README, each with the README's own text, in front of two replicas that are restarted
 * one after the other under load. They come from the system (`apt-get install nginx-light caddy haproxy`): one that is
 * not installed is not tried, and the title of its test says so.
 */
const README = readFileSync(new URL('../../src/operate/README.md', import.meta.url), 'utf8');
const HOST = 'slices.example.org';
/** How long the README waits until the balancers have seen a server that is ready, in milliseconds. */
const SEEN = 3000;
const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const postgres = usePostgres();
const folder = temporaryFolder();

/** A balancer: how its example in the README starts, and how it is run with that text on a port. */
interface Balancer {
  name: string;
  begins: string;
  /** @returns the program's arguments */
  configure(example: string, port: number): string[];
}

function written(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** Changes an example for this machine. @throws Error when the README has no such text any more */
function replaced(example: string, changes: readonly (readonly [from: string, to: string])[]): string {
  return changes.reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`The README's example lacks ${from}`);
    return text.replaceAll(from, to);
  }, example);
}

// TLS between client and balancer plays no part here: the clients of this test speak plain http.
const BALANCERS: readonly Balancer[] = [
  {
    name: 'nginx',
    begins: 'upstream slices',
    configure(example, port) {
      const site = replaced(example, [
        ['listen 443 ssl', `listen 127.0.0.1:${port}`],
        ['ssl_certificate_key /etc/ssl/slices.key', ''],
        ['ssl_certificate /etc/ssl/slices.pem', ''],
      ]).replace(/^\s*;$/gm, '');
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (kind) => `${kind}_temp_path ${join(folder, kind)};`,
      );
      const config = written(
        'nginx.conf',
        `daemon off; master_process off; pid ${join(folder, 'nginx.pid')}; error_log stderr;
events { worker_connections 512; }
http { access_log off; ${temporary.join(' ')}
${site}}`,
      );
      return ['-e', 'stderr', '-c', config];
    },
  },
  {
    name: 'caddy',
    begins: 'slices.example.org {',
    configure(example, port) {
      const site = replaced(example, [[`${HOST} {`, `http://${HOST}:${port} {\n\tbind 127.0.0.1`]]);
      const config = written('Caddyfile', `{\n\tadmin off\n}\n${site}`);
      return ['run', '--adapter', 'caddyfile', '--config', config];
    },
  },
  {
    name: 'haproxy',
    begins: 'defaults',
    configure(example, port) {
      const bind = [':443 ssl crt /etc/haproxy/slices.pem', `127.0.0.1:${port}`] as const;
      return ['-db', '-f', written('haproxy.cfg', replaced(example, [bind]))];
    },
  },
];

function isInstalled(name: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${name}`], { env: { PATH: SYSTEM_PATH } }).status === 0;
}

function exampleOf({ begins }: Balancer): string {
  const blocks = [...README.matchAll(/^```.*\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
  const found = blocks.find((block) => block.startsWith(begins));
  if (found === undefined) throw new Error(`The README has no example that begins with ${begins}`);
  return found;
}

/** Starts a balancer in front of two ports. @returns its own port */
async function startBalancer(balancer: Balancer, ports: readonly number[]): Promise<number> {
  const port = await freePort();
  const example = replaced(exampleOf(balancer), [
    ['127.0.0.1:4281', `127.0.0.1:${ports[0]}`],
    ['127.0.0.1:4282', `127.0.0.1:${ports[1]}`],
  ]);
  const { output } = startProgram([balancer.name, ...balancer.configure(example, port)], {
    cwd: folder,
    env: { PATH: SYSTEM_PATH, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
  });
  const agent = new Agent();
  await vi.waitFor(
    async () => {
      if (output.exitCode !== null) throw new Error(`${balancer.name} ended: ${output.stderr}`);
      const { status } = await send(agent, port, 'GET', '/readyz');
      if (status !== 200) throw new Error(`${balancer.name} answers ${status}: ${output.stderr}`);
    },
    { timeout: PATIENCE, interval: 50 },
  );
  agent.destroy();
  return port;
}

const send = (agent: Agent, port: number, method: string, path: string, content: OverWire = {}) =>
  sendOverWire({ port, base: `https://${HOST}` }, method, path, { ...content, agent });

/** A user token and an experiment token, from a server of this process on the same database. */
async function credentials(database: string): Promise<Record<string, string>> {
  const server = await createReferenceServer({ baseUrl: `https://${HOST}`, database });
  try {
    return { ...(await signedBy(server)), 'content-type': 'application/json' };
  } finally {
    await server.close();
  }
}

/** Opens a stream of events through a balancer. */
async function eventsThrough(port: number, headers: Readonly<Record<string, string>>) {
  const asked = request({ host: '127.0.0.1', port, path: EVENTS, headers: { ...headers, host: HOST } }).end();
  const [reply] = await once(
    asked.on('error', () => undefined),
    'response',
  );
  let told = '';
  let isAtOnce = true;
  reply.setEncoding('utf8').on('error', () => undefined);
  reply.on('data', (text: string) => {
    told += text;
    // A balancer that holds an event back would pass it on with the next comment.
    if (/event: reservation[\s\S]*^:$/m.test(text)) isAtOnce = false;
  });
  const saw = (text: string) => vi.waitUntil(() => told.includes(text), { timeout: PATIENCE, interval: 5 });
  return { saw, isAtOnce: () => isAtOnce, close: () => asked.destroy() };
}

/** Between the bookings of one client, in milliseconds: so much load that each moment of a restart is hit. */
const PAUSE = 300;

/** How many requests must have been sent through each balancer. */
const ENOUGH = 100;

/** Books, reads and deletes through a balancer until it is told to stop. */
function load(port: number, headers: Record<string, string>) {
  const agent = new Agent({ keepAlive: true });
  const lost: string[] = [];
  let [requests, stopping] = [0, false];
  const end_date = new Date(Date.now() + 3_600_000).toISOString();
  const body = JSON.stringify({
    ...{ site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: '10' },
    ...{ start_date: null, end_date, tokens: [] },
  });
  const expectStatus = async (status: number, method: string, path: string, sent = ''): Promise<string> => {
    requests += 1;
    try {
      const answer = await send(agent, port, method, path, { headers, body: sent });
      if (answer.status === status) return answer.text;
      lost.push(`${method}: ${answer.status} ${answer.text.slice(0, 200)}`);
    } catch (error) {
      lost.push(`${method}: ${error}`);
    }
    return '';
  };
  const worker = async (): Promise<void> => {
    while (!stopping) {
      const booked = await expectStatus(201, 'POST', `${CONNECTIVITY}?start_now=true`, body);
      if (booked === '') continue;
      const { id } = v.parse(v.object({ id: v.string() }), JSON.parse(booked));
      await expectStatus(200, 'GET', `${CONNECTIVITY}/${id}`);
      await expectStatus(204, 'DELETE', `${CONNECTIVITY}/${id}`);
      await sleep(PAUSE);
    }
  };
  const workers = Promise.all([worker(), worker()]);
  /** Stops once it was enough, however long that takes. @returns the requests that were not answered as they should */
  return async (): Promise<string[]> => {
    await vi.waitUntil(() => requests > ENOUGH, PATIENCE);
    stopping = true;
    await workers;
    agent.destroy();
    return lost;
  };
}

const installed = BALANCERS.filter(({ name }) => isInstalled(name));
for (const { name } of BALANCERS.filter((balancer) => !installed.includes(balancer))) {
  test.skip(`${name} is not installed here, so its example in the README was not tried`, () => undefined);
}

test.skipIf(installed.length === 0)(
  `behind ${installed.map(({ name }) => name).join(', ')}: a rolling restart under load loses no request, and events come at once`,
  async () => {
    const database = await postgres.withTables();
    const ports = [await freePort(), await freePort()];
    const replica = (port: number) =>
      serveWith(
        ...['--database', database, '--port', String(port), '--base-url', `https://${HOST}`],
        ...['--behind-proxy', '--insecure-built-in-users', '--drain', '5'],
      );
    const replicas = await Promise.all(ports.map(replica));
    const headers = await credentials(database);
    const loads = await Promise.all(
      installed.map(async (balancer) => {
        const port = await startBalancer(balancer, ports);
        const stream = await eventsThrough(port, headers);
        await stream.saw('event: cursor');
        const stop = load(port, headers);
        await stream.saw('event: reservation');
        stream.close();
        return { name: balancer.name, stop, isAtOnce: stream.isAtOnce() };
      }),
    );
    for (const [index, { process }] of replicas.entries()) {
      process.signal('SIGTERM');
      expect((await process.ended).exitCode).toBe(0);
      await replica(ports[index] ?? 0);
      await sleep(SEEN);
    }
    const stopped = loads.map(async ({ stop, ...told }) => ({ ...told, lost: await stop() }));
    const results = await Promise.all(stopped);
    expect(results).toEqual(installed.map(({ name }) => ({ name, isAtOnce: true, lost: [] })));
  },
);
