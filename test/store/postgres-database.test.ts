import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { TAG_PLACES } from '../../src/allocator/demand.ts';
import { CommitUnknownError, StoreUnavailableError } from '../../src/allocator/store.ts';
import { Failure } from '../../src/contract/failure.ts';
import { databaseFailure } from '../../src/operate/database.ts';
import { PostgresDatabase } from '../../src/store/postgres/database.ts';
import { SCHEMA_VERSION } from '../../src/store/schema.ts';
import { DatabaseFormatError } from '../../src/store/sql.ts';
import { openStores } from '../../src/store/stores.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { openProxy, type TcpProxy } from '../fixtures/proxy.ts';
import { openPostgres } from './opened-store.ts';
import { raceProcesses } from './starting-gate.ts';

const postgres = usePostgres();

let url: string;
const takeNewDatabase = async (): Promise<void> => {
  url = await postgres.database();
};

/** For what does not look at how the tables are made. */
const takeTables = async (): Promise<void> => {
  url = await postgres.withTables();
};

const opened: PostgresDatabase[] = [];
async function open(address = url): Promise<PostgresDatabase> {
  const database = await PostgresDatabase.open(address);
  opened.push(database);
  return database;
}
afterEach(async () => {
  for (const database of opened.splice(0)) await database.close();
});

describe.each(TAG_PLACES)('the exclusion constraint on %s, past all of our code', (place) => {
  let database: PostgresDatabase;
  const held = `${place}_held_once`;

  beforeAll(async () => {
    database = await PostgresDatabase.open(await postgres.emptied());
  });
  afterAll(() => database.close());
  beforeEach(async () => {
    url = await postgres.emptied();
    await database.run("INSERT INTO link (id, version) VALUES ('a~b', 0), ('c~d', 0)");
    await reserve('r1', 100, 200);
    await reserve('r2', 300, 400);
    await reserve('r3', 100, 400, { tag: 2 });
  });

  let others = 10;
  /** The hop of a reservation that shares nothing with any other but, perhaps, the tag at this place. */
  const reserve = (id: string, start: number, end: number, { tag = 1, link = 'a~b' } = {}): Promise<void> => {
    others += 1;
    const tags = TAG_PLACES.map((each) => (each === place ? tag : others));
    return database.run(
      `WITH reserved AS (
         INSERT INTO reservation (id, site1, site2, start_ms, end_ms, bandwidth, experiment, tenant, created_by, created_ms,
           answer)
         VALUES ($id, 'a', 'b', $start, $end, 1, 'exp', 'proj', 'user', 0, '{}'))
       INSERT INTO hop (reservation, position, link, version, span, start_ms, end_ms, bandwidth, tenant,
         ${TAG_PLACES.join(', ')})
       VALUES ($id, 0, $link, 1, 0, $start, $end, 1, 'proj', $0, $1, $2, $3)`,
      { ...tags, id, link, start, end },
    );
  };
  const update = (set: string, id = 'r3'): Promise<void> =>
    database.run(`UPDATE hop SET ${set} WHERE reservation = $id`, { id });
  const rows = (): Promise<unknown> => database.all('SELECT * FROM hop ORDER BY reservation');

  const CASES = [
    { rule: 'touches on both sides', start: 200, end: 300, taken: true },
    { rule: 'touches before', start: 50, end: 100, taken: true },
    { rule: 'touches after', start: 400, end: 500, taken: true },
    { rule: 'overlaps the end of one by a millisecond', start: 199, end: 300, taken: false },
    { rule: 'overlaps the start of one by a millisecond', start: 200, end: 301, taken: false },
    { rule: 'lies inside one', start: 120, end: 130, taken: false },
    { rule: 'lies around one', start: 250, end: 500, taken: false },
    { rule: 'lies around all', start: 50, end: 500, taken: false },
  ];

  test.each(CASES)('$start to $end, which $rule; taken: $taken', async ({ start, end, taken }) => {
    const before = await rows();
    const insert = () => reserve('r4', start, end);
    const move = () => update(`${place} = 1, start_ms = ${start}, end_ms = ${end}`);
    if (taken) {
      await insert();
      await update('deleted_ms = 1', 'r4');
      await move();
    } else {
      await expect(insert()).rejects.toThrow(held);
      await expect(move()).rejects.toThrow(held);
      expect(await rows()).toEqual(before);
    }
  });

  test('other tags and links are others, and what is cancelled holds nothing until it is not', async () => {
    await reserve('r4', 100, 200, { tag: 3 });
    await reserve('r5', 100, 200, { link: 'c~d' });
    await expect(reserve('r6', 100, 200)).rejects.toThrow(held);
    await update('deleted_ms = 1', 'r1');
    await reserve('r6', 100, 200);
    await expect(update('deleted_ms = NULL', 'r1')).rejects.toThrow(held);
  });

  test('it is exact to the millisecond and to the tag, as late as a number can say', async () => {
    const latest = Number.MAX_SAFE_INTEGER;
    await reserve('r4', latest - 20, latest - 10);
    await reserve('r5', latest - 10, latest);
    await reserve('r6', latest - 20, latest, { tag: 2 });
    await expect(reserve('r7', latest - 21, latest - 19)).rejects.toThrow(held);
  });

  test.each([
    [150, 150],
    [150, 149],
  ])('no time is refused: %i to %i', async (start, end) => {
    await expect(update(`start_ms = ${start}, end_ms = ${end}, ${place} = 9`)).rejects.toThrow();
  });

  test.each([0, 4095])('a tag that is none is refused: %i', async (tag) => {
    await expect(update(`${place} = ${tag}`)).rejects.toThrow();
  });

  test('two that hold one tag at once, each before the other has committed: one waits, and loses', async () => {
    const other = new Client({ connectionString: url });
    await other.connect();
    await other.query(
      `BEGIN; UPDATE hop SET ${place} = 7, start_ms = 0, end_ms = 10 WHERE reservation = 'r1'`,
    );
    const waiting = expect(update(`${place} = 7, start_ms = 9, end_ms = 20`)).rejects.toThrow(held);
    await vi.waitUntil(async () => (await postgres.waiting(url)) > 0, PATIENCE);
    await other.query('COMMIT');
    await other.end();
    await waiting;
  });
});

describe('PostgresDatabase.open', () => {
  beforeEach(takeNewDatabase);

  test.each([SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])(
    'a database of version %i is refused, until its tables are moved away',
    async (version) => {
      await (await open()).run("INSERT INTO link (id, version) VALUES ('a~b', 5)");
      await postgres.ask(url, `UPDATE slices_conn_version SET version = ${version}`);
      const why = `The database has schema version ${version}; this program knows ${SCHEMA_VERSION}.`;
      await expect(PostgresDatabase.openToRead(url)).rejects.toThrow(why);
      const cause = await open().catch((error: unknown) => error);
      expect(cause).toBeInstanceOf(DatabaseFormatError);
      const failure = databaseFailure(cause, { database: url });
      expect(failure).toMatchObject({ facts: { why } });
      const [, sql = ''] =
        / -c '(.*)'$/.exec(failure instanceof Failure ? String(failure.facts.fix) : '') ?? [];
      await postgres.ask(url, sql);
      expect(await (await open()).all('SELECT id FROM link')).toEqual([]);
    },
  );

  test('a database of another program is refused, and left as it was', async () => {
    await postgres.ask(url, 'CREATE TABLE recipe (id TEXT)');
    await expect(open()).rejects.toThrow(DatabaseFormatError);
    const tables =
      "SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'public'";
    expect(await postgres.ask(url, tables)).toEqual([{ relname: 'recipe' }]);
  });

  test('three processes may open a new database at once', async () => {
    const program = `
      import { text } from 'node:stream/consumers';
      import { PostgresDatabase } from ${JSON.stringify(new URL('../../src/store/postgres/database.ts', import.meta.url).href)};
      process.stdout.write('ready');
      await text(process.stdin);
      const database = await PostgresDatabase.open(${JSON.stringify(url)});
      await database.close();
      process.stdout.write('done');`;
    const args = ['--input-type=module', '--eval', program];
    const done = { output: 'done', errors: '' };
    expect(await raceProcesses(args, args, args)).toEqual([done, done, done]);
    expect(await postgres.ask(url, 'SELECT * FROM slices_conn_version')).toHaveLength(1);
  });

  test.each([
    ['where nobody listens', (address: URL) => Object.assign(address, { port: '1' })],
    ['that is not there', (address: URL) => Object.assign(address, { pathname: '/nothing' })],
  ])('a database %s is unavailable', async (_, change) => {
    await expect(open(change(new URL(url)).href)).rejects.toThrow(StoreUnavailableError);
  });
});

describe('a transaction', () => {
  beforeEach(takeTables);

  test('is READ COMMITTED, whatever the database’s default', async () => {
    const name = new URL(url).pathname.slice(1);
    await postgres.ask(url, `ALTER DATABASE ${name} SET default_transaction_isolation = 'serializable'`);
    const database = await open();
    const level = await database.transaction((sql) => sql.first('SHOW transaction_isolation'));
    expect(level).toEqual({ transaction_isolation: 'read committed' });
  });

  test('that swallows the error of a statement is not taken for committed', async () => {
    const database = await open();
    const swallowing = database.transaction(async (sql) => {
      await sql.run("INSERT INTO link (id, version) VALUES ('a~b', 0)");
      await sql.run('SELECT nonsense').catch(() => undefined);
    });
    await expect(swallowing).rejects.toThrow('rolled back');
    expect(await database.all('SELECT * FROM link')).toEqual([]);
  });

  test('that rejects gives its connection back as it was', async () => {
    const database = await open();
    const failure = new Error('on purpose');
    // More often than there are connections.
    for (let round = 0; round < 25; round += 1) {
      await expect(database.transaction(async () => Promise.reject(failure))).rejects.toBe(failure);
    }
    expect(await connections(url)).toBe(1);
  });

  test('keeps no NUL in a text, and finds nothing by one', async () => {
    const database = await open();
    await database.run('INSERT INTO link (id, version) VALUES ($id, 0)', { id: 'a\0b' });
    expect(await database.all('SELECT id FROM link')).toEqual([{ id: 'a\uFFFDb' }]);
    expect(await database.first('SELECT id FROM link WHERE id = $id', { id: '\0' })).toBeUndefined();
  });
});

describe('a database that fails', () => {
  beforeEach(takeTables);

  let proxy: TcpProxy;
  let database: PostgresDatabase;
  const write = (id: string): Promise<void> =>
    database.transaction((sql) => sql.run('INSERT INTO link (id, version) VALUES ($id, 0)', { id }));
  const kept = async (): Promise<unknown[]> =>
    (await postgres.ask(url, 'SELECT id FROM link ORDER BY id')).map(({ id }) => id);

  beforeEach(async () => {
    proxy = await openProxy(url);
    database = await open(proxy.url);
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('by ending every connection is unavailable until it is back', async () => {
    await Promise.all(['a', 'b', 'c'].map(write));
    proxy.refuse();
    await expect(write('d')).rejects.toThrow(StoreUnavailableError);
    await expect(database.all('SELECT 1')).rejects.toThrow(StoreUnavailableError);
    proxy.mend();
    await write('e');
    expect(await kept()).toEqual(['a', 'b', 'c', 'e']);
  });

  test.each([
    ['with a connection that was open', false],
    ['with a connection that must be made', true],
  ])('by saying nothing more is given up within 10 s: %s', async (_, anew) => {
    if (anew) proxy.mend();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    proxy.silence();
    const refused = expect(write('a')).rejects.toThrow(StoreUnavailableError);
    await vi.advanceTimersByTimeAsync(10_000);
    await refused;
    vi.useRealTimers();
    proxy.mend();
    await write('b');
    expect(await kept()).toEqual(['b']);
  });

  test.each([true, false])('at the commit is not known to have done it; it did: %s', async (arrives) => {
    proxy.arm('COMMIT\0', 1, arrives ? 'when its answer came' : 'before it is passed on');
    await expect(write('a')).rejects.toThrow(CommitUnknownError);
    await write('b');
    expect(await kept()).toEqual(arrives ? ['a', 'b'] : ['b']);
  });

  test.each([true, false])(
    'row 43: at a statement of its own is not known to have done it; it did: %s',
    async (arrives) => {
      const add = (id: string): Promise<void> =>
        database.run('INSERT INTO link (id, version) VALUES ($id, 0)', { id });
      await add('a');
      proxy.arm('b-which-is-lost', 1, arrives ? 'when its answer came' : 'before it is passed on');
      await expect(add('b-which-is-lost')).rejects.toThrow(CommitUnknownError);
      await add('c');
      expect(await kept()).toEqual(arrives ? ['a', 'b-which-is-lost', 'c'] : ['a', 'c']);
    },
  );

  test('row 43: before a statement was sent, or at one that only reads, is known to have changed nothing', async () => {
    await write('a');
    proxy.arm('read-this', 1, 'when its answer came');
    const reading = database.reader.first('SELECT id FROM link WHERE id = $id', { id: 'read-this' });
    expect(await failureIn(reading)).toEqual('StoreUnavailableError');
    proxy.refuse();
    const writing = database.run('INSERT INTO link (id, version) VALUES ($id, 0)', { id: 'b' });
    expect(await failureIn(writing)).toEqual('StoreUnavailableError');
  });

  test('a link that somebody keeps locked is unavailable within 10 s, and the others are not', async () => {
    const { store, close } = await openPostgres(url);
    await store.changeLinks({ links: ['a~b'] }, async () => undefined);
    const holder = new Client({ connectionString: url });
    await holder.connect();
    await holder.query("BEGIN; SELECT id FROM link WHERE id = 'a~b' FOR UPDATE");
    const began = performance.now();
    const change = (): Promise<void> => store.changeLinks({ links: ['a~b'] }, async () => undefined);
    const refused = Promise.all(
      [change(), change()].map((each) => expect(each).rejects.toThrow(StoreUnavailableError)),
    );
    expect(await store.changeLinks({ links: ['c~d'] }, async () => 'done')).toBe('done');
    expect(await store.find('r1')).toBeUndefined();
    await refused;
    expect(performance.now() - began).toBeLessThan(10_000);
    await holder.end();
    expect(await store.changeLinks({ links: ['a~b'] }, async () => 'done')).toBe('done');
    await close();
  });
});

describe('what a start says', () => {
  beforeEach(takeNewDatabase);

  const asOwner = (setting: string): Promise<unknown> =>
    postgres.ask(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET ${setting}`);

  test.each([
    ['synchronous_commit = on', 'synchronous_standby_names is empty: a failover'],
    ['synchronous_commit = local', 'synchronous_commit is local: a failover'],
    ['synchronous_commit = off', 'synchronous_commit is off: a crash'],
  ])('with %s: %s … loses what was confirmed last', async (setting, words) => {
    await asOwner(setting);
    const loses = await (await open()).failoverLoses();
    expect(loses?.startsWith(words)).toBe(true);
    expect(loses).toContain('loses what was confirmed last');
  });

  test('that the database is new, once', async () => {
    const log: unknown[] = [];
    const events = async (): Promise<unknown[]> => {
      await (await openStores(url, (level, event) => log.push([level, event]))).close();
      return log.splice(0);
    };
    expect(await events()).toEqual([
      ['info', 'database_made'],
      ['info', 'failover_loses'],
    ]);
    expect(await events()).toEqual([['info', 'failover_loses']]);
  });

  test('a role that is no administrator may open it', async () => {
    const role = `role_${randomBytes(6).toString('hex')}`;
    const { pathname } = new URL(url);
    await postgres.ask(url, `CREATE ROLE ${role} LOGIN PASSWORD 'x'`);
    try {
      await postgres.ask(
        url,
        `ALTER DATABASE ${pathname.slice(1)} OWNER TO ${role}; GRANT ALL ON SCHEMA public TO ${role}`,
      );
      const database = await open(Object.assign(new URL(url), { username: role, password: 'x' }).href);
      expect(database.isNew).toBe(true);
      expect(database.history).not.toBe('');
    } finally {
      await Promise.all(opened.splice(0).map((database) => database.close()));
      await postgres.ask(
        url,
        `REASSIGN OWNED BY ${role} TO CURRENT_USER; DROP OWNED BY ${role}; DROP ROLE ${role}`,
      );
    }
  });
});

async function failureIn(asked: Promise<unknown>): Promise<unknown> {
  const error = await asked.catch((thrown: unknown) => thrown);
  return error instanceof Error && error.name;
}

async function connections(address: string): Promise<number> {
  const [row] = await postgres.ask(
    address,
    `SELECT count(*)::int AS open FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'slices-conn'`,
  );
  return Number(row?.['open']);
}
