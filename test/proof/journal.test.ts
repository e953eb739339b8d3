import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Allocator } from '../../src/allocator/allocator.ts';
import { createNetwork, linkId } from '../../src/allocator/network.ts';
import { reservationStore } from '../../src/store/reservations.ts';
import type { SqlDatabase } from '../../src/store/sql.ts';
import { sweep } from '../allocator/sweep.ts';
import { halfBatches } from './half-batches.ts';
import { type Batch, type Booking, Journal } from './journal.ts';
import { LINKS, TOPOLOGY } from './links.ts';
import { replay } from './replay.ts';
import { type OpenedStatements, sqliteStatements } from './statements.ts';

const [HOT] = LINKS;
const ID = linkId(HOT.site1, HOT.site2);
const TERMS = { start: 10, end: 20, bandwidth: 400 };

let opened: OpenedStatements;
let database: SqlDatabase;
let allocator: Allocator;
let journal: Journal;
let booking: Booking;

/** Books under a key, and writes it down as it was answered. */
async function book(key: string): Promise<Booking> {
  const written = journal.begin(key, 0, TERMS);
  const { site1, site2 } = HOT;
  const who = { experiment: 'exp', createdBy: 'user', expiry: 1000 };
  const outcome = await allocator.create({ site1, site2, ...TERMS, ...who, key, fingerprint: key });
  if (!outcome.ok) throw new Error('refused');
  written.phase = 'booked';
  written.id = outcome.record.id;
  return written;
}

const found = async (): Promise<string[]> => (await journal.check(database.all)).map(({ kind }) => kind);
const swept = (): Promise<string[]> => sweep({ rows: database.all }, ID, HOT);

beforeEach(async () => {
  opened = await sqliteStatements();
  database = opened.database;
  let ids = 0;
  allocator = new Allocator({
    network: createNetwork(TOPOLOGY),
    store: reservationStore(database, opened.locking),
    now: () => 0,
    newId: () => `r${ids++}`,
  });
  journal = new Journal();
  booking = await book('first');
  await book('second');
});
afterEach(() => opened.close());

test('an acknowledged reservation that is in the database gives no finding', async () => {
  expect(await found()).toEqual([]);
  expect(await swept()).toEqual([]);
});

describe('the journal tells of a batch without an answer', () => {
  let batch: Batch;
  const update = (): Promise<unknown> =>
    allocator.update<never>('r0', { bandwidth: 7 }, { by: 'user', expiry: 1000, check: () => undefined });

  beforeEach(() => {
    const terms = { ...TERMS, bandwidth: 7 };
    booking.states.push(terms);
    const other = [...journal.bookings.values()][1] ?? booking;
    other.deletion = 'asked';
    batch = journal.beginBatch('both', [
      { action: 'update', booking, terms },
      { action: 'delete', booking: other },
    ]);
  });

  test('nothing, where nothing of it is there', async () => {
    expect(await found()).toEqual([]);
    expect(batch.phase).toBe('none');
  });

  test('half of which is there', async () => {
    await update();
    expect(await found()).toContain('wrong');
  });

  test('that is there without its key', async () => {
    await update();
    await allocator.delete('r1', { by: 'user' });
    expect(await found()).toEqual(['wrong']);
    expect(batch.phase).toBe('done');
  });
});

test('names tell which reservations of a batch are missing', async () => {
  await database.run(`UPDATE reservation SET name = 'x-2-0' WHERE id = 'r0'`);
  expect(await halfBatches(database.all)).toMatchObject([{ what: 'of the batch x-2 1 are there' }]);
  await database.run(`UPDATE reservation SET name = 'x-2-1' WHERE id = 'r1'`);
  expect(await halfBatches(database.all)).toEqual([]);
});

describe('the journal tells of', () => {
  test('a booking that is gone', async () => {
    await allocator.delete('r0', { by: 'user' });
    expect(await found()).toEqual(['lost']);
  });

  test('a row that is missing', async () => {
    for (const table of ['idempotency_key', 'tag_hold']) {
      await database.run(`DELETE FROM ${table} WHERE reservation = $1`, 'r0');
    }
    await database.run('DELETE FROM reservation WHERE id = $1', 'r0');
    expect(await found()).toEqual(['lost']);
  });

  test('a deletion that was answered and is undone', async () => {
    booking.deletion = 'done';
    expect(await found()).toEqual(['lost']);
  });

  test('a change without a request', async () => {
    await allocator.update<never>(
      'r0',
      { bandwidth: 7 },
      { by: 'user', expiry: 1000, check: () => undefined },
    );
    expect(await found()).toEqual(['lost']);
  });

  test('a change that was answered and is undone', async () => {
    booking.states = [{ ...TERMS, bandwidth: 7 }];
    expect(await found()).toEqual(['lost']);
  });

  test('other tags than were answered', async () => {
    booking.states = [{ ...TERMS, tags: [1, 1, 1, 1] }];
    expect(await found()).toEqual(['lost']);
  });

  test('a refused reservation that is in the database', async () => {
    booking.phase = 'none';
    expect(await found()).toEqual(['doubled']);
  });

  test('a reservation without a request', async () => {
    const { site1, site2 } = HOT;
    const who = { experiment: 'exp', createdBy: 'user', expiry: 1000 };
    await allocator.create({ site1, site2, ...TERMS, bandwidth: 1, ...who });
    expect(await found()).toEqual(['doubled']);
  });
});

test('a change without an answer may be there or not; once looked at, it may not change again', async () => {
  const change = { ...TERMS, bandwidth: 7 };
  booking.states.push(change);
  expect(await found()).toEqual([]);
  await allocator.update<never>('r0', change, { by: 'user', expiry: 1000, check: () => undefined });
  expect(await found()).toEqual(['lost']);
  booking.states.push(TERMS);
  expect(await found()).toEqual([]);
});

describe('the sweep tells of', () => {
  // The database's own guard would not let it happen.
  const without = async (...statements: string[]): Promise<void> => {
    await database.run('DROP TRIGGER tag_hold_insert');
    await database.run('DROP TRIGGER tag_hold_update');
    for (const each of statements) await database.run(each);
  };

  test('a tag that two hold', async () => {
    await without(`UPDATE reservation SET site2_c_tag = 100 WHERE id = 'r1'`);
    expect(await swept()).toEqual([
      expect.stringMatching(/^r1 holds site2_c_tag 100 from 10; another does until 20/),
      expect.stringMatching(/^not held: r1 site2_c_tag 100/),
      expect.stringMatching(/^leak: .* r1 site2_c_tag 101/),
    ]);
  });

  test('a long one that a short one lies in, after others have come and gone', async () => {
    await without(
      `UPDATE reservation SET start_ms = 1, end_ms = 100 WHERE id = 'r0'`,
      `UPDATE reservation SET start_ms = 50, end_ms = 51, site1_s_tag = 100 WHERE id = 'r1'`,
    );
    expect(await swept()).toContainEqual(expect.stringMatching(/^r1 holds site1_s_tag 100 from 50; .* 100$/));
  });

  test('more than the link has', async () => {
    await database.run(`UPDATE reservation SET bandwidth = 601 WHERE id = 'r1'`);
    expect(await swept()).toEqual(['1001 of 1000 Mbps at 10']);
  });

  test('a hold without a reservation', async () => {
    await database.run(`UPDATE reservation SET deleted_ms = 1 WHERE id = 'r0'`);
    expect(await swept()).toEqual(Array.from({ length: 4 }, () => expect.stringMatching(/^leak: .* r0 /)));
  });

  test('a tag outside the range', async () => {
    await without(
      `UPDATE tag_hold SET tag = 99 WHERE reservation = 'r1' AND place = 'site1_c_tag'`,
      `UPDATE reservation SET site1_c_tag = 99 WHERE id = 'r1'`,
    );
    expect(await swept()).toEqual(['site1_c_tag 99 is held, outside the range']);
  });

  test('a version that does not fit, and one that two changes had', async () => {
    await database.run('UPDATE link SET version = 3 WHERE id = $1', ID);
    expect(await swept()).toEqual(['the link is at version 3, its rows at 2']);
    await database.run('UPDATE reservation SET version = 3');
    expect(await swept()).toEqual(['1 versions of the link stand at two reservations']);
  });
});

describe('the replay tells of', () => {
  const replayed = (): Promise<string[]> => replay(database.all, HOT, { oracle: 10 });

  beforeEach(async () => {
    await allocator.update<never>('r0', { end: 15 }, { by: 'user', expiry: 1000, check: () => undefined });
    await expect(book('refused')).rejects.toThrow('refused');
    await allocator.delete('r1', { by: 'user' });
    expect(await replayed()).toEqual([]);
  });

  test('a change that the audit does not have', async () => {
    await database.run(`DELETE FROM audit WHERE action = 'update'`);
    expect(await replayed()).toContain('create of null at version 3 is at 3 where 2 is due');
  });

  test('an order in which an answer was wrong', async () => {
    await database.run(`UPDATE audit SET bandwidth = 601 WHERE action = 'update'`);
    expect(await replayed()).toContain('update of r0 at version 3 was accepted: 1001 of 1000 Mbps');
  });

  test('a tag that another held', async () => {
    await database.run(`UPDATE audit SET tags = replace(tags, '101', '100') WHERE reservation = 'r1'`);
    expect(await replayed()).toContain(
      'create of r1 at version 2 was accepted: another holds its site2_c_tag',
    );
  });

  test('a refusal of what fits', async () => {
    await database.run('UPDATE audit SET bandwidth = 200 WHERE accepted = 0');
    expect(await replayed()).toContain('create of null at version 3 was refused, and fits');
  });

  test('a row that no decision made', async () => {
    await database.run(`UPDATE reservation SET bandwidth = 1 WHERE id = 'r0'`);
    expect(await replayed()).toEqual(['r0 stands otherwise']);
  });
});
