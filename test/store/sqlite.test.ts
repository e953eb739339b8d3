import { readFileSync } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { yieldToEventLoop } from '../../src/allocator/event-loop.ts';
import { StoreUnavailableError } from '../../src/allocator/store.ts';
import { databaseFailure } from '../../src/operate/database.ts';
import { DatabaseFormatError, type SqlTransaction } from '../../src/store/sql.ts';
import { SqliteDatabase } from '../../src/store/sqlite/database.ts';
import { SERVER_FORMAT } from '../../src/store/sqlite/format.ts';
import { CAN_LIMIT_FILES, underFileLimit } from '../fixtures/file-limit.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { openSqlite } from './opened-store.ts';
import { raceProcesses } from './starting-gate.ts';
import { describeStore } from './store-suite.ts';

let folder: string;
let file: string;
let files = 0;

beforeEach(async () => {
  folder = temporaryFolder();
  files += 1;
  file = join(folder, `${files}.db`);
});

describeStore('SQLite in memory', () => openSqlite());
describeStore('SQLite in a file', () => openSqlite(file));

test('a parameter may be named twice, and one without a value is a mistake', async () => {
  const database = await SqliteDatabase.open(':memory:', SERVER_FORMAT);
  const sql = 'SELECT $two AS two, $one AS one, $two AS again';
  const found = await database.reader.first(sql, { one: null, two: 'b', three: 'c' });
  expect({ ...found }).toEqual({ two: 'b', one: null, again: 'b' });
  await expect(database.reader.first(sql, { two: 'b' })).rejects.toThrow('no value for $one');
  await database.close();
});

describe('SqliteDatabase.open', () => {
  test('a file is in WAL mode, synchronous EXTRA (3) and for its owner alone, on every open', async () => {
    for (const _ of ['new', 'opened again']) {
      const database = await SqliteDatabase.open(file, SERVER_FORMAT);
      expect(await pragma(database, 'synchronous')).toBe(3);
      // What might be taken back stays in memory (2), and the log is brought into the file after so many pages.
      expect(await pragma(database, 'temp_store')).toBe(2);
      expect(await pragma(database, 'wal_autocheckpoint')).toBe(4096);
      expect(await pragma(database, 'journal_mode')).toBe('wal');
      expect(await pragma(database, 'foreign_keys')).toBe(1);
      expect(await pragma(database, 'user_version')).toBe(SERVER_FORMAT.version);
      expect((await stat(file)).mode & 0o777).toBe(0o600);
      await database.close();
    }
  });

  test.each([1, SERVER_FORMAT.version + 1])(
    'a file of version %i is refused, with what to do, and left as it was',
    async (version) => {
      const other = new DatabaseSync(file);
      other.exec(`CREATE TABLE link (id TEXT); PRAGMA user_version = ${version};
        PRAGMA application_id = ${SERVER_FORMAT.applicationId}`);
      other.close();
      const before = await readFile(file);
      const cause = await SqliteDatabase.open(file, SERVER_FORMAT).catch((error: unknown) => error);
      const why = `The database has schema version ${version}; this program knows ${SERVER_FORMAT.version}.`;
      expect(databaseFailure(cause, { file, database: file })).toMatchObject({
        code: 'file_unusable',
        facts: { why, fix: `mv ${file} ${file}.bad` },
      });
      expect(() => SqliteDatabase.openToRead(file, SERVER_FORMAT)).toThrow(why);
      expect(await readFile(file)).toEqual(before);
    },
  );

  test.each<[string, () => Buffer]>([
    ['text', () => Buffer.from('not a database\n'.repeat(500))],
    ['short text', () => Buffer.from('not a database\n')],
    ['zeros', () => Buffer.alloc(8192)],
    ['a damaged database', () => contentOf(SERVER_FORMAT.schema).fill(0xa5, 100)],
    ['a database of another program', () => contentOf('CREATE TABLE recipe (id TEXT)')],
  ])('%s is refused, and left as it was', async (_, contentFor) => {
    const content = contentFor();
    await writeFile(file, content);
    await expect(SqliteDatabase.open(file, SERVER_FORMAT)).rejects.toThrow(DatabaseFormatError);
    expect(() => SqliteDatabase.openToRead(file, SERVER_FORMAT)).toThrow(DatabaseFormatError);
    expect(await readFile(file)).toEqual(content);
  });

  test('a path that can’t be opened is said to be unavailable', async () => {
    await expect(SqliteDatabase.open(join(folder, 'missing', 'a.db'), SERVER_FORMAT)).rejects.toThrow(
      StoreUnavailableError,
    );
  });

  test('two processes may open new files at once', async () => {
    const paths = Array.from({ length: 12 }, (_, index) => join(folder, `new-${index}.db`));
    const openAll = `
      import { text } from 'node:stream/consumers';
      import { SqliteDatabase } from ${JSON.stringify(new URL('../../src/store/sqlite/database.ts', import.meta.url).href)};
      import { SERVER_FORMAT } from ${JSON.stringify(new URL('../../src/store/sqlite/format.ts', import.meta.url).href)};
      process.stdout.write('ready');
      await text(process.stdin);
      for (const path of ${JSON.stringify(paths)}) {
        const database = await SqliteDatabase.open(path, SERVER_FORMAT);
        await database.close();
      }
      process.stdout.write('done');`;
    const args = ['--input-type=module', '--eval', openAll];
    const done = { output: 'done', errors: '' };
    expect(await raceProcesses(args, args)).toEqual([done, done]);
    for (const path of paths) {
      const database = new DatabaseSync(path);
      expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: SERVER_FORMAT.version });
      expect(database.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
      database.close();
    }
  });
});

describe('SqliteDatabase.transaction', () => {
  test('the lock is taken before anything is read', async () => {
    const database = await SqliteDatabase.open(file, SERVER_FORMAT);
    const other = new DatabaseSync(file, { timeout: 0 });
    await database.transaction(async () => {
      expect(() => other.exec('BEGIN IMMEDIATE')).toThrow('locked');
    });
    other.exec('BEGIN IMMEDIATE');
    other.exec('ROLLBACK');
    other.close();
    await database.close();
  });

  test('row 38: what failed work goes on to write is refused: it would be in the work of another', async () => {
    const database = await SqliteDatabase.open(file, SERVER_FORMAT);
    const links = Array.from({ length: 3 }, (_, index) => `${index}`);
    const add = (id: string) => ['INSERT INTO link (id, version) VALUES ($id, 0)', { id }] as const;
    const late: Promise<void>[] = [];
    const failed = database.transaction(async ({ run }) => {
      const writing = async (): Promise<void> => {
        for (const id of links) {
          await run(...add(id));
          await yieldToEventLoop();
        }
      };
      late.push(writing());
      await Promise.all([...late, Promise.reject(new Error('on purpose'))]);
    });
    // It comes next.
    const other = database.transaction(async ({ run }) => {
      await run(...add('other'));
      await yieldToEventLoop();
      await yieldToEventLoop();
    });
    await expect(failed).rejects.toThrow('on purpose');
    await other;
    await expect(late[0]).rejects.toThrow('over');
    expect((await database.reader.all('SELECT id FROM link')).map(({ id }) => id)).toEqual(['other']);
    await database.close();
  });

  describe('row 43: a disk that fails', () => {
    let database: SqliteDatabase;
    const add =
      (id: string) =>
      async ({ run }: SqlTransaction): Promise<void> =>
        run('INSERT INTO link (id, version) VALUES ($id, 0)', { id });

    beforeEach(async () => {
      database = await SqliteDatabase.open(file, SERVER_FORMAT);
    });
    afterEach(async () => {
      await database.close();
    });

    // There is no other way to an I/O error that needs no rights: this process's files may not grow.
    test.skipIf(!CAN_LIMIT_FILES)(
      'at the commit leaves it unknown, and nobody else who waits; what was lost is not there',
      async () => {
        const { size } = await stat(`${file}-wal`);
        await underFileLimit(size, async () => {
          let behind: Promise<unknown> = Promise.resolve();
          const first = database.transaction(async (transaction) => {
            await add('a')(transaction);
            // It waits, and nothing of its own was begun.
            behind = database.transaction(add('b')).catch(nameOf);
          });
          expect(await first.catch(nameOf)).toBe('CommitUnknownError');
          expect(await behind).toBe('StoreUnavailableError');
        });
        await database.transaction(add('c'));
        expect(await database.reader.all('SELECT id FROM link')).toEqual([{ id: 'c' }]);
      },
    );

    test('because it is full at a statement: whoever asked for that learns what it was', async () => {
      let seen: unknown;
      const work = database.transaction(async ({ first, run }) => {
        const pages = Number((await first('PRAGMA page_count'))?.['page_count']);
        await first(`PRAGMA max_page_count = ${pages}`);
        try {
          await run('INSERT INTO link (id, version) VALUES ($id, 0)', { id: 'x'.repeat(100_000) });
        } catch (error) {
          seen = nameOf(error);
          throw new Error('not done', { cause: error });
        }
      });
      await expect(work).rejects.toThrow('not done');
      expect(seen).toBe('StoreUnavailableError');
    });
  });

  describe('while another process holds the lock', () => {
    let database: SqliteDatabase;
    let other: DatabaseSync;
    const work = async (): Promise<string> => 'done';
    /** Lets work begin, which takes rounds of the event loop, and then the time pass. */
    const pass = async (milliseconds: number): Promise<void> => {
      for (let round = 0; round < 5; round += 1) await new Promise((resolve) => setImmediate(resolve));
      await vi.advanceTimersByTimeAsync(milliseconds);
    };

    beforeEach(async () => {
      database = await SqliteDatabase.open(file, SERVER_FORMAT);
      other = new DatabaseSync(file);
      other.exec('BEGIN IMMEDIATE');
      vi.useFakeTimers({ toFake: ['setTimeout'] });
    });
    afterEach(async () => {
      vi.useRealTimers();
      other.close();
      await database.close();
    });

    test('a writer gives up after a while, says that the database is unavailable, and may try again', async () => {
      const refused = expect(database.transaction(work)).rejects.toThrow(StoreUnavailableError);
      await pass(20_000);
      await refused;
      other.exec('ROLLBACK');
      expect(await database.transaction(work)).toBe('done');
    });
  });

  test('one that comes when the last was just answered is not forgotten', async () => {
    const database = await SqliteDatabase.open(file, SERVER_FORMAT);
    const insert = (id: string): Promise<void> =>
      database.transaction(async (sql) => sql.run('INSERT INTO link (id, version) VALUES ($id, 0)', { id }));
    for (let at = 0; at < 20; at += 1) await insert(`${at}`).then(() => insert(`${at}+`));
    expect(await database.reader.all('SELECT count(*) AS n FROM link')).toEqual([{ n: 40 }]);
    await database.close();
  });

  test('without a log, a commit waits for those who read', async () => {
    const format = { ...SERVER_FORMAT, journal: 'DELETE' } as const;
    await (await SqliteDatabase.open(file, format)).close();
    const reader = new DatabaseSync(file);
    const reading = reader.prepare('SELECT type FROM sqlite_schema').iterate();
    reading.next();
    // Opening it again writes nothing, and so waits for nobody.
    const database = await SqliteDatabase.open(file, format);
    let done = false;
    const writing = database
      .transaction(async (sql) => sql.run("INSERT INTO link (id, version) VALUES ('a', 0)"))
      .finally(() => {
        done = true;
      });
    for (let round = 0; round < 20; round += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(done).toBe(false);
    reading.return?.();
    reader.close();
    await writing;
    expect(await database.reader.all('SELECT id FROM link')).toEqual([{ id: 'a' }]);
    await database.close();
  });

  test('who reads waits for no writer, and sees what is committed', async () => {
    const database = await SqliteDatabase.open(file, SERVER_FORMAT);
    await database.transaction(async (sql) => sql.run("INSERT INTO link (id, version) VALUES ('a', 0)"));
    const other = new DatabaseSync(file);
    other.exec("BEGIN IMMEDIATE; INSERT INTO link (id, version) VALUES ('b', 0)");
    expect(await database.reader.all('SELECT id FROM link')).toEqual([{ id: 'a' }]);
    await expect(database.reader.all("DELETE FROM link WHERE id = 'a'")).rejects.toThrow();
    other.exec('COMMIT');
    expect(await database.reader.all('SELECT id FROM link ORDER BY id')).toEqual([{ id: 'a' }, { id: 'b' }]);
    other.close();
    await database.close();
  });

  test('closing waits for what is under way', async () => {
    const database = await SqliteDatabase.open(file, SERVER_FORMAT);
    const turns = ['1', '2', '3'].map((id) =>
      database.transaction(async (sql) => sql.run('INSERT INTO link (id, version) VALUES ($id, 0)', { id })),
    );
    await database.close();
    await Promise.all(turns);
    const after = new DatabaseSync(file);
    expect(after.prepare('SELECT count(*) AS links FROM link').get()).toEqual({ links: 3 });
    after.close();
  });
});

/** What a file holds in which these statements ran. */
function contentOf(statements: string): Buffer {
  const path = `${file}.made`;
  const database = new DatabaseSync(path);
  database.exec(statements);
  database.close();
  return readFileSync(path);
}

async function pragma(database: SqliteDatabase, name: string): Promise<unknown> {
  return (await database.transaction(async (sql) => sql.first(`PRAGMA ${name}`)))?.[name];
}

function nameOf(error: unknown): unknown {
  return error instanceof Error && error.name;
}
