import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Reservation } from '../../src/contract/reservation.ts';
import { IDEMPOTENCY_KEY_HEADER, IDEMPOTENCY_REPLAYED_HEADER } from '../../src/contract/routes.ts';
import { createReferenceServer, type ReferenceServer } from '../../src/reference-server.ts';
import type { Rows } from '../allocator/sweep.ts';
import { signedBy } from '../fixtures/asked-server.ts';
import { checkDescribed } from '../fixtures/described-replies.ts';
import { CAN_LIMIT_FILES, underFileLimit } from '../fixtures/file-limit.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { openMessageProxy } from '../fixtures/proxy.ts';
import { addressOf, HOUR, hours, NOW } from '../fixtures/service.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { sweepAll, TWENTY } from '../proof/links.ts';
import { rowsOf } from '../proof/place.ts';

/** A database, and a way to lose its answer to a commit. */
interface Engine {
  database: string;
  /** Asks past everything. */
  rows: Rows;
  /** Sends a request whose commit is not answered. */
  losing: (request: () => Promise<Reply>) => Promise<Reply>;
  /** Whether what was lost is there all the same. */
  isDone: boolean;
  close: () => void;
}

interface Reply {
  status: number;
  headers: Headers;
  // Of a batch that was made, or of a problem.
  body: { items: { connectivity: Reservation | null }[]; code: string; detail: { item?: number }[] };
}

const postgres = usePostgres();
/** The links that something is booked on. */
const TOUCHED = TWENTY.links.filter((_, index) => index < 3 || index === 19);

async function sqlite(): Promise<Engine> {
  const folder = temporaryFolder();
  const database = join(folder, 'service.sqlite');
  return {
    database,
    rows: rowsOf(database),
    // The log can't grow, so the commit meets an error of the disk.
    losing: (request) => underFileLimit(statSync(`${database}-wal`).size, request),
    isDone: false,
    close: () => rmSync(folder, { recursive: true }),
  };
}

async function postgresql(): Promise<Engine> {
  const database = await postgres.withTables();
  const proxy = await openMessageProxy(database);
  return {
    database: proxy.url,
    rows: rowsOf(database),
    async losing(request) {
      proxy.cut('from the database: C COMMIT', 'back');
      const reply = await request();
      expect(proxy.end()).toBeDefined();
      return reply;
    },
    isDone: true,
    close: () => proxy.close(),
  };
}

describe.each([
  ['SQLite', sqlite, CAN_LIMIT_FILES],
  ['PostgreSQL', postgresql, true],
] as const)('batches over HTTP on %s', (_, open, canLose) => {
  let engine: Engine;
  let server: ReferenceServer;
  let headers: Record<string, string>;
  /** Each test has an hour of its own. */
  let hour = 0;

  beforeEach(() => {
    hour += 1;
  });
  beforeAll(async () => {
    engine = await open();
    server = await createReferenceServer({ database: engine.database, topology: TWENTY, now: () => NOW });
    headers = await signedBy(server);
  });
  afterAll(async () => {
    expect(await sweepAll(engine.rows, TOUCHED)).toEqual([]);
    await server.close();
    engine.close();
  });

  async function batch(items: readonly object[], key?: string): Promise<Reply> {
    const request = new Request(`${server.addresses.connectivity}${addressOf('batchReservations')}`, {
      method: 'POST',
      headers: {
        ...headers,
        'content-type': 'application/json',
        ...(key === undefined ? {} : { [IDEMPOTENCY_KEY_HEADER]: key }),
      },
      body: JSON.stringify({ items, tokens: [] }),
    });
    const {
      status,
      headers: received,
      ...response
    } = await server.fetch(request).then(async (answer) => ({
      ...{ status: answer.status, headers: answer.headers, text: await answer.text() },
    }));
    checkDescribed(request, { status, headers: received, text: response.text });
    return { status, headers: received, body: JSON.parse(response.text) };
  }

  /** A create on one of the twenty links. */
  const create = (link: number, bandwidth = '100') => {
    const { site1, site2 } = TWENTY.links[link] ?? {};
    return { action: 'create', site1, site2, bandwidth, ...hours(hour, hour + 1) };
  };
  const idsIn = ({ body }: Reply) => body.items.map(({ connectivity }) => connectivity?.id);
  /** What stands in this test's hour: bandwidths, from link to link. */
  async function standing(): Promise<unknown[]> {
    const live = `SELECT link, bandwidth FROM hop
      WHERE start_ms = $1 AND deleted_ms IS NULL ORDER BY link, bandwidth`;
    return (await engine.rows(live, NOW + hour * HOUR)).map(({ bandwidth }) => bandwidth);
  }

  test('create, update and delete on several links; the same again under its key', async () => {
    const made = await batch([create(0), create(1), create(2)]);
    expect(made.status).toBe(200);
    const [first, second] = idsIn(made);
    const items = [
      { action: 'update', id: first, bandwidth: '900' },
      { action: 'delete', id: second },
      create(1, '1000'),
      create(19, '7'),
    ];
    const changed = await batch(items, 'once');
    expect(changed.status).toBe(200);
    expect(changed.body.items.map(({ connectivity }) => connectivity?.bandwidth ?? null)).toEqual([
      900,
      null,
      1000,
      7,
    ]);
    const again = await batch(items, 'once');
    expect(again.headers.get(IDEMPOTENCY_REPLAYED_HEADER)).toBe('true');
    expect(idsIn(again)).toEqual(idsIn(changed));
    expect((await standing()).toSorted()).toEqual([100, 1000, 7, 900]);
  });

  test.skipIf(!canLose)(
    'row 43: whose commit may have happened are outcome_unknown, and the same again is made once',
    async () => {
      const [kept] = idsIn(await batch([create(0)]));
      const items = [{ action: 'update', id: kept, bandwidth: '300' }, create(1), create(2)];
      const lost = await engine.losing(() => batch(items, 'lost'));
      expect([lost.status, lost.body.code]).toEqual([503, 'outcome_unknown']);
      expect(lost.headers.has('retry-after')).toBe(false);
      expect(await standing()).toEqual(engine.isDone ? [300, 100, 100] : [100]);
      const again = await batch(items, 'lost');
      expect([again.status, again.headers.has(IDEMPOTENCY_REPLAYED_HEADER)]).toEqual([200, engine.isDone]);
      expect(await standing()).toEqual([300, 100, 100]);
      expect(idsIn(await batch(items, 'lost'))).toEqual(idsIn(again));
      expect(await standing()).toEqual([300, 100, 100]);
    },
  );
});
