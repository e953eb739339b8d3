import { existsSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { AuditEntry } from '../../src/allocator/store.ts';
import { type AuditQuery, type AuditRecord, readAudit } from '../../src/store/audit.ts';
import { DatabaseFormatError, type ReadDatabase } from '../../src/store/sql.ts';
import { openToRead } from '../../src/store/stores.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { type OpenedStore, openEither } from './opened-store.ts';

const postgres = usePostgres();
const newFile = async (): Promise<string> => join(temporaryFolder(), 'audit.db');

const NOON = 1_800_000_000_000;
const TAGS = { site1_s_tag: 1, site1_c_tag: 2, site2_s_tag: 3, site2_c_tag: 4 };

/** A decision, on whichever link. */
type Entry = Omit<AuditEntry, 'link'>;

/** A decision so many milliseconds after noon. */
function accepted(after: number, changes: Partial<Entry> = {}): Entry {
  return {
    at: NOON + after,
    action: 'update',
    by: 'user_1',
    experiment: 'exp_1',
    reservation: `r${after}`,
    demand: { start: NOON, end: NOON + 1000, bandwidth: 7 },
    tags: TAGS,
    why: null,
    ...changes,
  };
}

describe.each([
  ['SQLite', newFile],
  ['PostgreSQL', () => postgres.emptied()],
])('the audit on %s', (_, newDatabase) => {
  let place: string;
  let server: OpenedStore;
  let reader: ReadDatabase;

  beforeEach(async () => {
    place = await newDatabase();
    server = await openEither(place);
    reader = await openToRead(place);
  });
  afterEach(async () => {
    await reader.close();
    await server.close();
  });

  const decide = (link: string, ...entries: Entry[]): Promise<void> =>
    server.store.changeLinks({ links: [link] }, (transaction) =>
      transaction.write({ changes: [], audit: entries.map((entry) => ({ ...entry, link })) }, NOON),
    );
  const found = async (query: Partial<AuditQuery> = {}) => {
    const portions: AuditRecord[][] = [];
    const more = await readAudit(reader, { limit: 100, ...query }, async (portion) => {
      portions.push([...portion]);
    });
    return { records: portions.flat(), more, portions };
  };
  const times = async (query: Partial<AuditQuery>) => {
    const { records, more } = await found(query);
    return { at: records.map(({ at }) => at - NOON), more };
  };

  test('says who, what, when, and why not, with the version that it made or was decided on', async () => {
    const refused = accepted(1, {
      action: 'create',
      reservation: null,
      tags: null,
      why: 'bandwidth: 0 of 1',
    });
    const released = accepted(2, { action: 'delete', why: 'its job died' });
    const early = { ...refused, at: NOON - 1 };
    await decide('a~b', early, accepted(0), refused, released);
    expect(await found()).toMatchObject({
      records: [
        { ...early, link: 'a~b', version: 0, accepted: false },
        { ...accepted(0), link: 'a~b', version: 1, accepted: true },
        { ...refused, link: 'a~b', version: 1, accepted: false },
        { ...released, link: 'a~b', version: 2, accepted: true },
      ],
      more: false,
    });
  });

  test('is what matches every condition', async () => {
    const refused = { tags: null, why: 'bandwidth: 0 of 1' };
    await decide('a~b', accepted(0), accepted(10, { by: 'user_2' }), accepted(20, { experiment: 'exp_2' }));
    await decide('c~d', accepted(30, refused), accepted(40, { ...refused, by: 'user_2' }));
    expect(await times({ by: 'user_2' })).toEqual({ at: [10, 40], more: false });
    expect(await times({ experiment: 'exp_2' })).toEqual({ at: [20], more: false });
    expect(await times({ reservation: 'r30' })).toEqual({ at: [30], more: false });
    expect(await times({ link: 'a~b' })).toEqual({ at: [0, 10, 20], more: false });
    expect(await times({ refused: true })).toEqual({ at: [30, 40], more: false });
    expect(await times({ refused: false })).toMatchObject({ at: [0, 10, 20, 30, 40] });
    expect(await times({ since: NOON + 10, until: NOON + 30 })).toEqual({ at: [10, 20], more: false });
    expect(await times({ refused: true, by: 'user_2', link: 'c~d', since: NOON, until: NOON + 41 })).toEqual({
      at: [40],
      more: false,
    });
    expect(await times({ by: 'user_2', link: 'c~d', reservation: 'r30' })).toEqual({ at: [], more: false });
    expect(await times({ by: "user_2' OR '1'='1" })).toEqual({ at: [], more: false });
  });

  test('is the newest of what matches, oldest first; it is told that there are more', async () => {
    await decide('a~b', accepted(0), accepted(1), accepted(2));
    await decide('c~d', accepted(3));
    expect(await times({ limit: 1 })).toEqual({ at: [3], more: true });
    expect(await times({ limit: 3 })).toEqual({ at: [1, 2, 3], more: true });
    expect(await times({ limit: 4 })).toEqual({ at: [0, 1, 2, 3], more: false });
    expect(await times({ limit: 2, link: 'a~b' })).toEqual({ at: [1, 2], more: true });
    expect(await times({ limit: 3, link: 'a~b' })).toEqual({ at: [0, 1, 2], more: false });
  });

  test('comes in portions, of one instant, while the server goes on to decide', async () => {
    const many = 12_000;
    await decide('a~b', ...Array.from({ length: many }, (_each, after) => accepted(after)));
    const sizes: number[] = [];
    const more = await readAudit(reader, { limit: many }, async (portion) => {
      sizes.push(portion.length);
      await decide('a~b', accepted(many + sizes.length));
    });
    expect(more).toBe(false);
    expect(sizes.length).toBeGreaterThan(2);
    expect(sizes.reduce((sum, size) => sum + size)).toBe(many);
    expect(await times({ limit: 2 })).toEqual({
      at: [many + sizes.length - 1, many + sizes.length],
      more: true,
    });
  });

  test('with a row that no server wrote is told to be damaged', async () => {
    await decide('a~b', accepted(0));
    await server.rows("UPDATE audit SET tags = '{'");
    await expect(found()).rejects.toThrow(DatabaseFormatError);
  });
});

describe('who reads a database changes nothing', () => {
  test('one of PostgreSQL is left', async () => {
    const place = await postgres.database();
    await expect(openToRead(place)).rejects.toThrow('No server has kept its data there yet.');
    expect(await postgres.ask(place, "SELECT relname FROM pg_class WHERE relname LIKE 'slices%'")).toEqual(
      [],
    );
  });

  test('nothing is made where nothing is, or followed where a link leads', async () => {
    const file = await newFile();
    await expect(openToRead(file)).rejects.toThrow();
    expect(existsSync(file)).toBe(false);
    await (await openEither(file)).close();
    const link = await newFile();
    symlinkSync(file, link);
    await expect(openToRead(link)).rejects.toMatchObject({
      code: 'state_unusable',
      facts: { why: expect.stringMatching(/^It is not a file, or a symbolic link to one\./) },
    });
  });
});
