import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Client, types } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { createReferenceServer } from '../../src/reference-server.ts';
import type { SqlRow } from '../../src/store/sql.ts';
import { SqliteDatabase } from '../../src/store/sqlite/database.ts';
import { LEDGER_FORMAT } from '../../src/store/sqlite/format.ts';
import type { Rows } from '../allocator/sweep.ts';
import { commandWorld, tokenOf } from '../fixtures/command-world.ts';
import { CAN_LIMIT_FILES } from '../fixtures/file-limit.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { openMessageProxy } from '../fixtures/proxy.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { NOW } from '../fixtures/tokens.ts';
import { type DiskRoom, faultOf, fileLimit, smallDisk } from './disk-room.ts';
import { quiet } from './fleet.ts';
import { TOPOLOGY } from './links.ts';
import { expectNothingFound } from './nothing-found.ts';
import { type OutcomeOptions, type Person, proveOutcomes } from './outcomes.ts';
import { rowsAfterCrash } from './place.ts';
import { newReport } from './report.ts';

const postgres = usePostgres();

/** A person and a server in this process, at an hour of the test's own. */
async function personAt(database: string): Promise<{ person: Person; bugs: string[]; dawn: number }> {
  const bugs: string[] = [];
  const server = await createReferenceServer({
    database,
    topology: TOPOLOGY,
    now: () => NOW,
    log: (_level, event, { why }) => void (event === 'bug' && bugs.push(String(why))),
  });
  const ledger = await SqliteDatabase.open(':memory:', LEDGER_FORMAT);
  onTestFinished(async () => {
    await server.close();
    await ledger.close();
  });
  // Logged in before anything goes wrong.
  const token = await server.signIn('lead');
  const connection = {
    fetch: server.fetch,
    userToken: tokenOf(async () => token),
    close: async () => undefined,
  };
  const world = commandWorld(connection, {
    openLedger: async () => ({
      transaction: (work) => ledger.transaction(work),
      close: async () => undefined,
    }),
  });
  const person: Person = {
    run: (args) => world.run('--offline', '--json', ...args),
    write: (name, text) => void world.files.set(name, text),
    ledger: () => ledger.reader.all('SELECT key, outcome, requested FROM attempt'),
  };
  return { person, bugs, dawn: NOW };
}

/** The commit on its way, and its answer; then each so-manieth message. The long form cuts each. */
const COMMIT = ['to the database: Q COMMIT', 'from the database: C COMMIT'];
const STEP = 24;

test.each([
  ['and is back at once', 'back'],
  ['and stays away', 'away'],
] as const)(
  'row 43: PostgreSQL is cut at messages of a booking, an update, a deletion and a batch, %s: what is said is true',
  async (_, then) => {
    const database = await postgres.withTables();
    const proxy = await openMessageProxy(database);
    onTestFinished(proxy.close);
    const { person, bugs, dawn } = await personAt(proxy.url);
    const rows = await rowsOn(database);
    const report = newReport('outcomes', 'PostgreSQL', 0);
    const fault = {
      begin: (at: number) => proxy.cut(COMMIT[at] ?? (at - COMMIT.length) * STEP, then),
      end: () => proxy.end(),
    };
    await proveOutcomes({ person, fault, rows, quiet: () => quiet(rows), report, dawn });
    expectNothingFound(report, { kills: 10 });
    // Who is back at once is asked again, and says what became of it.
    const unknown = then === 'away' ? /unknown and done/ : /[1-9] done/;
    for (const note of report.notes) expect(note).toMatch(unknown);
    expect(bugs).toEqual([]);
  },
);

/** Asks a database past everything, on one connection. */
async function rowsOn(connectionString: string): Promise<Rows> {
  const client = new Client({ connectionString, types: { getTypeParser: numbers } });
  await client.connect();
  onTestFinished(() => client.end());
  return async (sql, ...values) => (await client.query<SqlRow>(sql, [...values])).rows;
}

const numbers: typeof types.getTypeParser = (oid: number, format?: 'text' | 'binary') =>
  oid === types.builtins.INT8 ? Number : types.getTypeParser(oid, format);

const disk = smallDisk();
disk?.close();

test.skipIf(!disk)(
  'row 43: SQLite, with room for a few pages more each time on a full disk: what is said is true',
  async () => {
    const room = smallDisk();
    if (!room) throw new Error('there is no disk');
    onTestFinished(() => room.close());
    await proveWithRoom(room, join(room.folder, 'slices-conn.sqlite'));
  },
);

test.skipIf(!CAN_LIMIT_FILES)(
  'row 43: SQLite, whose file may grow by a few pages more each time: what is said is true',
  async () => {
    const folder = temporaryFolder();
    const file = join(folder, 'slices-conn.sqlite');
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const room = fileLimit(folder, file, () => process.pid);
    await proveWithRoom(room, file);
  },
);

async function proveWithRoom(room: DiskRoom, file: string): Promise<void> {
  const { person, bugs, dawn } = await personAt(file);
  const report = newReport('outcomes', 'SQLite', 0);
  const options: Omit<OutcomeOptions, 'fault'> = {
    person,
    rows: rowsAfterCrash(file),
    quiet: async () => undefined,
    report,
    dawn,
  };
  const fault = faultOf(room, file, { pages: 6, points: 5 });
  await proveOutcomes({ ...options, fault });
  expectNothingFound(report, { rounds: 20, acknowledged: 4 });
  expect(report.refused + report.unanswered).toBeGreaterThan(4);
  expect(bugs).toEqual([]);
}
