import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import * as v from 'valibot';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { createPortalClient } from '../../src/client/portal.ts';
import { Reservation } from '../../src/contract/reservation.ts';
import {
  EXPERIMENT_TOKEN_HEADER,
  EXPERIMENTS_API_GROUP,
  PROJECTS_API_GROUP,
} from '../../src/contract/routes.ts';
import { Secret } from '../../src/contract/secret.ts';
import { createReferenceServer } from '../../src/reference-server.ts';
import { listenOnLoopback } from '../fixtures/loopback.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { CONNECTIVITY } from '../fixtures/service.ts';
import { type Ended, type Report, reportOf } from './command.ts';
import { type Client, newClient, pointingAt } from './served.ts';

const LINK = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G'];
const LATER = ['reserve', ...LINK, '--start', '+1h', '--for', '2h'];

/** How a request is handled: answered, left without an answer, or cut off. */
type Way = (request: Request, deliver: () => Promise<Response>) => Promise<Response | 'hang' | 'cut'>;

const deliver: Way = (_, forward) => forward();

/** A reference server behind an HTTP server that can hold replies back. */
interface Service {
  /** How requests for reservations are handled. */
  way: Way;
  /** Requests for reservations, such as `POST`, as they came. */
  readonly seen: string[];
  /** Whether it lists, and honours keys. */
  extended: boolean;
  readonly client: Client;
  /** The environment of the client's commands. */
  readonly env: Record<string, string>;
  /** The reservations that the service holds, also when it has no list. */
  booked(): Promise<Reservation[]>;
}

const servers: { close(): unknown }[] = [];
afterAll(async () => {
  for (const server of servers.splice(0).toReversed()) await server.close();
});

/** @param ownProcess whether each command of its client is a process of its own */
async function newService({ ownProcess = false } = {}): Promise<Service> {
  const listening: Server = createServer((request, response) => void handle(request, response));
  const baseUrl = `http://127.0.0.1:${await listenOnLoopback(listening)}`;
  const server = await createReferenceServer({ baseUrl });
  servers.push(server, {
    close: () => {
      listening.close();
      listening.closeAllConnections();
    },
  });
  const user = await server.signIn('lead');

  async function handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { method = '', url = '', headers } = incoming;
    const request = new Request(baseUrl + url, {
      method,
      headers: Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]),
      ...(chunks.length > 0 ? { body: Buffer.concat(chunks) } : {}),
    });
    const answer = await answerTo(request);
    if (answer === 'hang') return;
    if (answer === 'cut') {
      incoming.socket.destroy();
      return;
    }
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.end(Buffer.from(await answer.arrayBuffer()));
  }

  async function answerTo(request: Request): Promise<Response | 'hang' | 'cut'> {
    const { pathname } = new URL(request.url);
    const { extended } = service;
    if (!extended && pathname === '/api-spec') return new Response(null, { status: 404 });
    if (!pathname.startsWith(CONNECTIVITY)) return server.fetch(request);
    service.seen.push(request.method);
    if (!extended) request.headers.delete('idempotency-key');
    const isList = request.method === 'GET' && pathname === CONNECTIVITY;
    if (!extended && isList) return new Response(null, { status: 405 });
    return service.way(request, () => server.fetch(request));
  }

  // Read anew for each command.
  const env: Record<string, string> = {
    ...pointingAt(baseUrl),
    SLICES_CONN_USER_TOKEN: user,
  };
  const service: Service = {
    way: deliver,
    seen: [],
    extended: true,
    env,
    client: newClient(env, { ownProcess }),
    async booked() {
      const portal = createPortalClient({
        fetch: server.fetch,
        portalUrl: server.addresses.portal,
        projectsApiGroup: PROJECTS_API_GROUP,
        experimentsApiGroup: EXPERIMENTS_API_GROUP,
        userToken: async () => new Secret(user),
      });
      const demo = (await portal.experiments()).find(({ name }) => name === 'demo');
      const token = await portal.experimentToken(demo?.id ?? '');
      const headers = { authorization: `Bearer ${user}`, [EXPERIMENT_TOKEN_HEADER]: token };
      const reply = await server.fetch(new Request(baseUrl + CONNECTIVITY, { headers }));
      return v.parse(v.object({ items: v.array(Reservation) }), await reply.json()).items;
    },
  };
  return service;
}

const ledgerOf = ({ state }: Client): string => join(state, 'ledger.sqlite');

/** The rows of the ledger's file, which another process may have open. */
function rowsOf(client: Client): object[] {
  const database = new DatabaseSync(ledgerOf(client), { readOnly: true });
  try {
    return database
      .prepare('SELECT key, asked, outcome, reservation_id, requested FROM attempt ORDER BY asked_ms')
      .all()
      .map((row) => ({ ...row, requested: JSON.parse(String(row['requested'])) }));
  } finally {
    database.close();
  }
}

async function failed(client: Client, ...args: string[]): Promise<Report> {
  return reportOf(await client.command('--json', ...args));
}

const bookedIn = (printed: Readonly<Record<string, unknown>>): Reservation =>
  v.parse(v.object({ reservation: Reservation }), printed).reservation;

describe('row 12: a reply that never arrives', () => {
  test('reserve is killed: its attempt was in the ledger before the request left, and list finds the reservation', async () => {
    const service = await newService();
    const { client } = service;
    let atArrival: object[] | undefined;
    service.way = async (request, forward) => {
      if (request.method !== 'POST') return forward();
      atArrival = rowsOf(client);
      await forward();
      return 'hang';
    };
    const reserving = client.start(...LATER);
    await vi.waitUntil(() => atArrival !== undefined, { timeout: PATIENCE, interval: 10 });
    await vi.waitFor(async () => expect(await service.booked()).toHaveLength(1), { timeout: PATIENCE });
    reserving.signal('SIGKILL');
    await reserving.ended;
    const unknown = { asked: 'reserve', outcome: 'unknown', reservation_id: null };
    expect(atArrival).toMatchObject([{ ...unknown, requested: { site1: 'be-gent1', bandwidth: 1000 } }]);
    expect(rowsOf(client)).toMatchObject([unknown]);
    service.way = deliver;
    const [reservation] = await service.booked();
    const { items } = await client.result('list');
    expect(items).toEqual([
      {
        id: reservation?.id,
        reservation,
        state: 'scheduled',
        source: 'service',
        requested: {
          site1: 'be-gent1',
          site2: 'pl-poznan1',
          bandwidth: 1000,
          start_date: reservation?.start_date,
          end_date: reservation?.end_date,
        },
      },
    ]);
    expect(rowsOf(client)).toMatchObject([{ outcome: 'booked', reservation_id: reservation?.id }]);
    expect(service.seen.filter((method) => method === 'POST')).toHaveLength(1);
  });

  test.each([
    ['SIGINT', 130, 'interrupted'],
    ['SIGTERM', 143, 'terminated'],
  ] as const)(
    'row 44: %s meanwhile: exit %i, says that it may be booked, and list settles it',
    async (signal, exitCode, code) => {
      const service = await newService();
      const { client } = service;
      service.way = async (request, forward) => {
        if (request.method !== 'POST') return forward();
        await forward();
        return 'hang';
      };
      const reserving = client.start('--json', ...LATER);
      await vi.waitFor(async () => expect(await service.booked()).toHaveLength(1), { timeout: PATIENCE });
      reserving.signal(signal);
      expect(reportOf(await reserving.ended)).toMatchObject({
        code,
        exitCode,
        why: expect.stringContaining('may have taken effect'),
        fix: 'slices-conn list',
        maybeDone: true,
      });
      expect(rowsOf(client)).toMatchObject([{ outcome: 'unknown', reservation_id: null }]);
      service.way = deliver;
      expect((await client.result('list'))['items']).toMatchObject([
        { state: 'scheduled', source: 'service' },
      ]);
      expect(await service.booked()).toHaveLength(1);
    },
  );

  test('without --json: says that the link may be booked, and the suggested command settles it', async () => {
    const service = await newService();
    const { client } = service;
    service.extended = false;
    service.way = async (request, forward) => (request.method === 'POST' ? 'cut' : forward());
    const ended: Ended = await client.command(...LATER);
    expect(ended.exitCode).toBe(7);
    expect(ended.stdout).toBe('');
    expect(ended.stderr).toMatch(/may have taken effect/);
    service.extended = true;
    const listed = await client.command('list');
    expect(listed.stdout).toMatch(/unknown.*be-gent1 – pl-poznan1/);
    expect(listed.stderr).toMatch(/no valid answer came to the request of .+ UTC, so the link may be booked/);
    const [, advised = ''] = /To settle it: slices-conn (.+)\n/.exec(listed.stderr) ?? [];
    service.way = deliver;
    const reservation = bookedIn(await client.result(...advised.split(' ')));
    expect((await service.booked()).map(({ id }) => id)).toEqual([reservation.id]);
  });
});

describe('the file', () => {
  test.each<[string, (path: string) => void]>([
    ['garbage', (path) => writeFileSync(path, 'garbage '.repeat(1000))],
    ['cut', (path) => truncateSync(path, 5000)],
    ['of a newer version', (path) => execIn(path, 'PRAGMA user_version = 99')],
    ['another program’s', (path) => execIn(path, 'PRAGMA application_id = 7')],
  ])(
    'that is %s: reserve is 2, nothing is sent, nothing is deleted; list still shows the service’s',
    async (_, damage) => {
      const service = await newService();
      const { client } = service;
      const { id } = bookedIn(await client.result(...LATER));
      damage(ledgerOf(client));
      const before = readFileSync(ledgerOf(client));
      service.seen.length = 0;
      for (const args of [LATER, [...LATER, '--idempotency-key', 'k'], ['delete', '--yes', id]]) {
        const report = await failed(client, ...args);
        expect(report).toMatchObject({ code: 'state_unusable', exitCode: 2 });
        expect(report.message).toContain(ledgerOf(client));
        expect(report.fix).toContain('mv ');
      }
      expect(service.seen.filter((method) => method !== 'GET')).toEqual([]);
      const update = await failed(client, 'update', id, '--extend', '1h');
      expect(update).toMatchObject({ code: 'state_unusable', exitCode: 2 });
      const listed = await client.command('--json', 'list');
      expect(JSON.parse(listed.stdout)).toMatchObject({ items: [{ id, source: 'service' }] });
      expect(listed.stderr).toMatch(/warning: .*ledger/i);
      expect(service.seen.filter((method) => method !== 'GET')).toEqual([]);
      expect(readFileSync(ledgerOf(client)).equals(before)).toBe(true);
    },
  );
});

function execIn(path: string, sql: string): void {
  const database = new DatabaseSync(path);
  database.exec(sql);
  database.close();
}
