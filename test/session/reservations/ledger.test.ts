import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, describe, expect, test } from 'vitest';
import type { ChangeItem, ReservationRequest } from '../../../src/contract/reservation-request.ts';
import { Ledger, type LedgerDatabase } from '../../../src/session/reservations/ledger.ts';
import { SqliteDatabase } from '../../../src/store/sqlite/database.ts';
import { LEDGER_FORMAT } from '../../../src/store/sqlite/format.ts';
import { failureOf } from '../../fixtures/failures.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';
import { IDS, NOW, RESERVATION } from '../../fixtures/tokens.ts';

const SERVICE = 'https://conn.example.org';
const NAME = { experiment: IDS.experiment, key: 'key' };
const OTHER = { ...NAME, key: 'other' };
const ID = RESERVATION.id;
const REQUESTED: ReservationRequest = {
  site1: 'be-gent1',
  site2: 'pl-poznan1',
  bandwidth: 1000,
  start: Date.parse(RESERVATION.start_date),
  end: Date.parse(RESERVATION.end_date),
};
const CREATE: ChangeItem = { action: 'create', request: REQUESTED };
const CHANGE: ReservationRequest = { ...REQUESTED, bandwidth: 5 };
const CHANGED = { ...RESERVATION, bandwidth: 5 };

const left: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of left.splice(0).toReversed()) await end();
});

/** A new file without a ledger. */
function newFile(): string {
  const folder = temporaryFolder();
  left.push(() => rmSync(folder, { recursive: true }));
  return join(folder, 'ledger.sqlite');
}

async function open(path: string, service = SERVICE): Promise<Ledger> {
  const database = await SqliteDatabase.open(path, LEDGER_FORMAT);
  left.push(() => database.close());
  return new Ledger(database, service);
}

type Step = (ledger: Ledger) => Promise<void>;
const begin: Step = (ledger) => ledger.begin(CREATE, NAME, NOW);
const booked: Step = (ledger) => ledger.booked(NAME, { reservation: RESERVATION, token: 'token' });
const named: Step = (ledger) => ledger.named(NAME, ID);
const refused: Step = (ledger) => ledger.refused(NAME);
const update: Step = (ledger) => ledger.begin({ action: 'update', id: ID, request: CHANGE }, OTHER, NOW + 1);
const remove: Step = (ledger) => ledger.begin({ action: 'delete', id: ID }, OTHER, NOW + 1);
const changeRefused: Step = (ledger) => ledger.changeRefused(ID);
const observed: Step = (ledger) => ledger.observed({ reservation: CHANGED, token: null });
const deleted: Step = (ledger) => ledger.deleted(ID);

const SENT = {
  ...NAME,
  asked: 'reserve',
  askedAt: NOW,
  beganAt: NOW,
  requested: REQUESTED,
  pending: null,
  outcome: 'unknown',
  id: undefined,
  reservation: undefined,
  token: undefined,
};
const BOOKED = { ...SENT, outcome: 'booked', id: ID, reservation: RESERVATION, token: 'token' };
const UPDATING = { ...BOOKED, asked: 'update', askedAt: NOW + 1, pending: CHANGE, outcome: 'unknown' };
const DELETING = { ...BOOKED, asked: 'delete', askedAt: NOW + 1, outcome: 'unknown' };
/** An update of a reservation that this machine did not create. */
const STRANGE = {
  ...SENT,
  ...OTHER,
  asked: 'update',
  askedAt: NOW + 1,
  beganAt: NOW + 1,
  requested: null,
  pending: CHANGE,
  id: ID,
};

describe.each([
  ['a file', newFile],
  ['memory', () => ':memory:'],
])('in %s', (_, pathOf) => {
  test.each<[string, Step[], readonly object[]]>([
    ['sent', [begin], [SENT]],
    ['sent, booked', [begin, booked], [BOOKED]],
    ['booked twice: the same', [begin, booked, booked], [BOOKED]],
    ['sent, refused', [begin, refused], [{ ...SENT, outcome: 'refused' }]],
    ['refused, sent again', [begin, refused, begin], [SENT]],
    ['refused, sent again, booked', [begin, refused, begin, booked], [BOOKED]],
    ['booked is not refused any more', [begin, booked, refused], [BOOKED]],
    ['named: unknown still, with its id', [begin, named], [{ ...SENT, id: ID }]],
    ['named, seen', [begin, named, observed], [{ ...SENT, outcome: 'booked', id: ID, reservation: CHANGED }]],
    ['named, gone', [begin, named, deleted], [{ ...SENT, outcome: 'deleted', id: ID }]],
    ['named, booked after all', [begin, named, booked], [BOOKED]],
    ['changing', [begin, booked, update], [UPDATING]],
    [
      'changed',
      [begin, booked, update, observed],
      [{ ...UPDATING, outcome: 'booked', pending: null, reservation: CHANGED }],
    ],
    ['change refused: as it was', [begin, booked, update, changeRefused], [BOOKED]],
    ['deleting', [begin, booked, remove], [DELETING]],
    ['deleted', [begin, booked, remove, deleted], [{ ...DELETING, outcome: 'deleted' }]],
    ['deletion refused: as it was', [begin, booked, remove, changeRefused], [BOOKED]],
    [
      'deleted, and asked for again: gone',
      [begin, booked, remove, deleted, remove, changeRefused],
      [{ ...DELETING, outcome: 'deleted' }],
    ],
    ['changing what somebody else booked', [update], [STRANGE]],
    ['refused then: nothing is left of it', [update, changeRefused], []],
    [
      'changed what somebody else booked',
      [update, observed],
      [{ ...STRANGE, outcome: 'booked', pending: null, reservation: CHANGED }],
    ],
    ['an answer without an attempt', [observed, deleted, changeRefused, refused, named], []],
  ])('%s', async (_name, steps, entries) => {
    const ledger = await open(pathOf());
    for (const step of steps) await step(ledger);
    expect(await ledger.entries({ experiment: IDS.experiment })).toEqual(entries);
    expect(await ledger.entries()).toEqual(entries);
  });

  test('a token stays when an answer has no token, and is replaced when it has one', async () => {
    const ledger = await open(pathOf());
    for (const step of [begin, booked, observed]) await step(ledger);
    expect(await ledger.entries(NAME)).toMatchObject([{ token: 'token', reservation: CHANGED }]);
    await ledger.observed({ reservation: RESERVATION, token: 'newer' });
    expect(await ledger.entries(NAME)).toMatchObject([{ token: 'newer', reservation: RESERVATION }]);
  });

  test('one reservation is one entry, with the key that returned it last', async () => {
    const ledger = await open(pathOf());
    for (const step of [begin, booked]) await step(ledger);
    await ledger.begin(CREATE, OTHER, NOW + 1);
    await ledger.booked(OTHER, { reservation: RESERVATION, token: 'again' });
    expect(await ledger.entries()).toMatchObject([
      { key: 'other', id: ID, outcome: 'booked', token: 'again' },
    ]);
  });

  test('an id stays with its first key', async () => {
    const ledger = await open(pathOf());
    for (const step of [begin, booked]) await step(ledger);
    await ledger.begin(CREATE, OTHER, NOW + 1);
    await ledger.named(OTHER, ID);
    expect(await ledger.entries()).toEqual([
      BOOKED,
      { ...SENT, ...OTHER, askedAt: NOW + 1, beganAt: NOW + 1 },
    ]);
  });

  test('find reads one key of one experiment, and entries one experiment, oldest first', async () => {
    const ledger = await open(pathOf());
    await ledger.begin(CREATE, { ...NAME, key: 'late' }, NOW + 2);
    await ledger.begin(CREATE, { ...NAME, key: 'b' }, NOW);
    await ledger.begin(CREATE, { ...NAME, key: 'a' }, NOW);
    await ledger.begin({ action: 'create', request: CHANGE }, { experiment: 'elsewhere', key: 'a' }, NOW);
    const keys = (await ledger.entries({ experiment: IDS.experiment })).map(({ key }) => key);
    expect(keys).toEqual(['a', 'b', 'late']);
    expect(await ledger.entries({ experiment: 'elsewhere', key: 'a' })).toMatchObject([
      { requested: CHANGE },
    ]);
    expect(await ledger.entries({ experiment: 'elsewhere', key: 'b' })).toEqual([]);
    expect(await ledger.entries()).toHaveLength(4);
  });
});

describe('killed between two commits', () => {
  /** A ledger whose process is killed after this many commits. */
  function killedAfter(database: LedgerDatabase, commits: number): Ledger {
    let left = commits;
    return new Ledger(
      {
        transaction: async (work) => {
          if (left === 0) throw new Error('killed');
          left -= 1;
          return database.transaction(work);
        },
        close: async () => undefined,
      },
      SERVICE,
    );
  }

  test.each([0, 1, 2])('the id is in the ledger after %i commits of an earlier answer', async (commits) => {
    const database = await SqliteDatabase.open(':memory:', LEDGER_FORMAT);
    left.push(() => database.close());
    const ledger = new Ledger(database, SERVICE);
    for (const step of [begin, booked]) await step(ledger);
    await ledger.begin(CREATE, OTHER, NOW + 1);
    const answer = { reservation: RESERVATION, token: 'again' };
    await killedAfter(database, commits)
      .booked(OTHER, answer)
      .catch(() => undefined);
    expect((await ledger.entries()).filter(({ id }) => id === ID)).toHaveLength(1);
  });
});

describe('past reservations', () => {
  const END = Date.parse(RESERVATION.end_date);

  test.each<[string, Step[], number, boolean]>([
    ['unknown', [begin], END * 2, true],
    ['booked, before its end', [begin, booked], END - 1, true],
    ['booked, after its end', [begin, booked], END + 1000, false],
    ['changing, after its end', [begin, booked, update], END + 1000, true],
    ['deleted', [begin, booked, deleted], NOW, false],
    ['refused', [begin, refused], NOW, false],
  ])('%s', async (_name, steps, now, isCurrent) => {
    const ledger = await open(':memory:');
    for (const step of steps) await step(ledger);
    const whole = await ledger.entries();
    expect(whole).toHaveLength(1);
    expect(await ledger.entries({ now })).toEqual(isCurrent ? whole : []);
    expect(await ledger.entries({ experiment: IDS.experiment, now })).toEqual(isCurrent ? whole : []);
    expect(await ledger.entries({ experiment: 'elsewhere', now })).toEqual([]);
  });

  test('about reads one reservation, also a past one', async () => {
    const ledger = await open(':memory:');
    for (const step of [begin, booked, deleted]) await step(ledger);
    expect(await ledger.about(ID)).toEqual({ ...BOOKED, outcome: 'deleted' });
    expect(await ledger.about('con_conn.example.org_other')).toBeUndefined();
  });
});

describe('two ledgers on one file', () => {
  test('services do not see each other’s entries, even with the same key and id', async () => {
    const file = newFile();
    const [one, other] = [await open(file), await open(file, 'https://other.example.org')];
    for (const step of [begin, booked]) await step(one);
    expect(await other.entries()).toEqual([]);
    for (const step of [begin, booked, remove, deleted]) await step(other);
    expect(await one.entries()).toEqual([BOOKED]);
  });
});

describe('a file that another program has changed', () => {
  test.each<[string, string]>([
    ['requested', `'{"site1":5}'`],
    ['requested', `'garbage'`],
    ['requested', `'[]'`],
    ['reservation', `'{"id":"x"}'`],
    ['reservation', `'garbage'`],
    ['pending', `'null'`],
  ])('%s that holds %s is state_unusable', async (column, value) => {
    const file = newFile();
    const ledger = await open(file);
    for (const step of [begin, booked]) await step(ledger);
    const beside = new DatabaseSync(file);
    beside.exec(`UPDATE attempt SET ${column} = ${value}`);
    beside.close();
    expect(await failureOf(() => ledger.entries())).toMatchObject({ code: 'state_unusable' });
  });
});
