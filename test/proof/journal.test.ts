import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createNetwork } from '../../src/allocator/network.ts';
import { linkId } from '../../src/contract/links.ts';
import { reservationStore } from '../../src/store/reservations.ts';
import type { SqlDatabase } from '../../src/store/sql.ts';
import { Allocator } from '../allocator/allocator.ts';
import { sweep } from '../allocator/sweep.ts';
import { rowsOf } from '../store/opened-store.ts';
import { halfBatches } from './halves.ts';
import { type Batch, type Booking, Journal } from './journal.ts';
import { LINKS, TOPOLOGY } from './links.ts';
import { replay } from './replay.ts';
import { type OpenedStatements, sqliteStatements } from './statements.ts';

const [HOT] = LINKS;
const ID = linkId(HOT.site1, HOT.site2);
const TERMS = { start: 10, end: 20, bandwidth: 400 };
const LINK = { site1: HOT.site1, site2: HOT.site2 };
const WHO = { experiment: 'exp', createdBy: 'user', expiry: 1000 };
const UPDATE = { by: 'user', expiry: 1000, check: () => undefined };

let opened: OpenedStatements;
let database: SqlDatabase;
let allocator: Allocator;
let journal: Journal;
let booking: Booking;

/** Books under a key, and writes it down as it was answered. */
async function book(key: string): Promise<Booking> {
  const written = journal.begin(key, LINK, TERMS);
  const outcome = await allocator.create({ ...LINK, ...TERMS, ...WHO, key, fingerprint: key });
  if (!outcome.ok) throw new Error('refused');
  written.phase = 'booked';
  written.id = outcome.record.id;
  return written;
}

const found = async (): Promise<string[]> => (await journal.check(rowsOf(database))).map(({ kind }) => kind);
const swept = (): Promise<string[]> => sweep({ rows: rowsOf(database) }, ID, HOT);

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
  const update = (): Promise<unknown> => allocator.update('r0', { bandwidth: 7 }, UPDATE);

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
  expect(await halfBatches(rowsOf(database))).toMatchObject([{ what: 'of the batch x-2 1 are there' }]);
  await database.run(`UPDATE reservation SET name = 'x-2-1' WHERE id = 'r1'`);
  expect(await halfBatches(rowsOf(database))).toEqual([]);
});

test.each<[string, () => unknown, string]>([
  ['a booking that is gone', () => allocator.delete('r0', { by: 'user' }), 'lost'],
  [
    'a row that is missing',
    async () => {
      for (const table of ['idempotency_key', 'hop'])
        await database.run(`DELETE FROM ${table} WHERE reservation = 'r0'`);
      await database.run(`DELETE FROM reservation WHERE id = 'r0'`);
    },
    'lost',
  ],
  ['a deletion that was answered and is undone', () => Object.assign(booking, { deletion: 'done' }), 'lost'],
  ['a change without a request', () => allocator.update('r0', { bandwidth: 7 }, UPDATE), 'lost'],
  [
    'a change that was answered and is undone',
    () => Object.assign(booking, { states: [{ ...TERMS, bandwidth: 7 }] }),
    'lost',
  ],
  [
    'other tags than were answered',
    () => Object.assign(booking, { states: [{ ...TERMS, tags: [1, 1, 1, 1] }] }),
    'lost',
  ],
  [
    'a refused reservation that is in the database',
    () => Object.assign(booking, { phase: 'none' }),
    'doubled',
  ],
  [
    'a reservation without a request',
    () => allocator.create({ ...LINK, ...TERMS, bandwidth: 1, ...WHO }),
    'doubled',
  ],
])('the journal tells of %s', async (_, change, kind) => {
  await change();
  expect(await found()).toEqual([kind]);
});

test('a change without an answer may be there or not; once looked at, it may not change again', async () => {
  const change = { ...TERMS, bandwidth: 7 };
  booking.states.push(change);
  expect(await found()).toEqual([]);
  await allocator.update('r0', change, UPDATE);
  expect(await found()).toEqual(['lost']);
  booking.states.push(TERMS);
  expect(await found()).toEqual([]);
});

/** Has r1 go on from its link over more of them. */
function routedOn(site2: string, ...links: string[]): string[] {
  return [
    `UPDATE reservation SET site2 = '${site2}' WHERE id = 'r1'`,
    ...links.flatMap((link, index) => [
      `INSERT INTO link (id, version) VALUES ('${link}', 1)`,
      `INSERT INTO hop SELECT reservation, ${index + 1}, '${link}', 1, span, start_ms, end_ms, bandwidth,
         site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag, tenant, deleted_ms
       FROM hop WHERE reservation = 'r1' AND position = 0`,
    ]),
  ];
}

/** A statement that changes the row of a hop. */
const hop = (id: string, set: string): string => `UPDATE hop SET ${set} WHERE reservation = '${id}'`;
const reservation = (id: string, set: string): string => `UPDATE reservation SET ${set} WHERE id = '${id}'`;
const AROUND = routedOn('be-gent1', 'fr-lille~pl-poznan1', 'be-gent1~fr-lille');

test.each<[string | RegExp, string[]]>([
  [/^r1 holds site2_c_tag 100 from 10; another does until 20.*$/, [hop('r1', 'site2_c_tag = 100')]],
  // A long one that a short one lies in, after others have come and gone.
  [
    /^r1 holds site1_s_tag 100 from 50; .* 100$/m,
    [hop('r0', 'start_ms = 1, end_ms = 100'), hop('r1', 'start_ms = 50, end_ms = 51, site1_s_tag = 100')],
  ],
  ['1001 of 1000 Mbps at 10', [hop('r1', 'bandwidth = 601'), reservation('r1', 'bandwidth = 601')]],
  ['site1_c_tag 99 is held, outside the range', [hop('r1', 'site1_c_tag = 99')]],
  ['the link is at version 3, its rows at 2', ['UPDATE link SET version = 3']],
  [
    '1 versions of the link stand at two reservations',
    ['UPDATE link SET version = 3', 'UPDATE hop SET version = 3'],
  ],
  ...['start_ms = 9', 'end_ms = 21', 'bandwidth = 399', `tenant = 'other'`, 'deleted_ms = 1'].map(
    (set): [RegExp, string[]] => [
      /^half of r1: its hop and its reservation differ.*$/,
      [reservation('r1', set)],
    ],
  ),
  ['half of r0: it has no hop', [`DELETE FROM hop WHERE reservation = 'r0'`]],
  [`half a route: r1 has ${ID}, no hop 0`, [hop('r1', 'position = 1')]],
  [`half a route: r1 has ${ID}, which does not reach beyond`, [reservation('r1', `site2 = 'beyond'`)]],
  [`no route: r1 has ${ID}, which ends at elsewhere`, [reservation('r1', `site1 = 'elsewhere'`)]],
  // A route over two links is right.
  ['', routedOn('fr-lille', 'fr-lille~pl-poznan1')],
  [
    `half a route: r1 has ${ID} be-gent1~fr-lille, no hop 1`,
    [...AROUND, `DELETE FROM hop WHERE reservation = 'r1' AND position = 1`],
  ],
  [`no route: r1 has ${ID} fr-lille~pl-poznan1 be-gent1~fr-lille, which passes be-gent1 twice`, AROUND],
])('the sweep tells: %s', async (due, statements) => {
  for (const each of statements) await database.run(each);
  const told = (await swept()).join('\n');
  if (typeof due === 'string') expect(told).toBe(due);
  else expect(told).toMatch(due);
});

test.each<[string, string, string]>([
  [
    'a change that the audit does not have',
    `DELETE FROM audit WHERE action = 'update'`,
    'create of null at version 3 is at 3 where 2 is due',
  ],
  [
    'an order in which an answer was wrong',
    `UPDATE audit SET bandwidth = 601 WHERE action = 'update'`,
    'update of r0 at version 3 was accepted: 1001 of 1000 Mbps',
  ],
  [
    'a tag that another held',
    `UPDATE audit SET tags = replace(tags, '101', '100') WHERE reservation = 'r1'`,
    'create of r1 at version 2 was accepted: another holds its site2_c_tag',
  ],
  [
    'a refusal of what fits',
    'UPDATE audit SET bandwidth = 200 WHERE accepted = 0',
    'create of null at version 3 was refused, and fits',
  ],
  [
    'a row that no decision made',
    `UPDATE hop SET bandwidth = 1 WHERE reservation = 'r0'`,
    'r0 stands otherwise',
  ],
])('the replay tells of %s', async (_, statement, due) => {
  const replayed = (): Promise<string[]> => replay(rowsOf(database), HOT, { oracle: 10 });
  await allocator.update('r0', { end: 15 }, UPDATE);
  await expect(book('refused')).rejects.toThrow('refused');
  await allocator.delete('r1', { by: 'user' });
  expect(await replayed()).toEqual([]);
  await database.run(statement);
  expect(await replayed()).toContain(due);
});
