import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, describe, expect, test } from 'vitest';
import type { ReferenceServerOptions } from '../../src/reference-server.ts';
import {
  at,
  booked,
  booking,
  type Caller,
  DAY,
  HOUR,
  hours,
  MINUTE,
  openService,
  openWithLead,
  outcome,
  problemIn,
  type Reply,
  reservationIn,
  SIGNED,
  smallTopology,
  type TestService,
  verified,
} from '../fixtures/service.ts';

const REUSED = '409 idempotency_key_reused';

/** Books under a key. */
function bookAs(
  caller: Caller,
  key: string,
  changes: Readonly<Record<string, unknown>> = {},
  query = '',
): Promise<Reply> {
  return caller.book(booking(changes), query, { 'idempotency-key': key });
}

/** A reply in short, and whether it says that it was given before. */
function answered(reply: Reply): string {
  return `${outcome(reply)}${reply.headers.get('idempotency-replayed') === 'true' ? ' again' : ''}`;
}

/** A service that shares the other's file, as a second process would. */
function openBeside(other: TestService, options: ReferenceServerOptions = {}): Promise<TestService> {
  let drawn = 0;
  const random = (bytes: number): Uint8Array => {
    drawn += 1;
    return createHash('sha256').update(`beside ${drawn}`).digest().subarray(0, bytes);
  };
  return openService({ database: other.file, random, ...options });
}

describe('the same request under the same key', async () => {
  const service = await openService();
  beforeEach(() => service.moveTo(0));

  test('is answered with the same reservation, marked as a repeat, and nothing is booked', async () => {
    const lead = await service.as('lead');
    const first = await bookAs(lead, 'twice');
    expect(answered(first)).toBe('201');
    expect(first.headers.has('idempotency-replayed')).toBe(false);
    const before = service.rows();
    for (const _ of [2, 3]) {
      const repeat = await bookAs(lead, 'twice');
      expect(answered(repeat)).toBe('201 again');
      expect(repeat.body).toEqual(first.body);
      expect(repeat.headers.get('location')).toBe(first.headers.get('location'));
      expect(repeat.headers.get('cache-control')).toBe('no-store');
    }
    expect(service.rows()).toEqual(before);
  });

  test('is answered in the form that each asks for', async () => {
    const lead = await service.as('lead');
    const first = await lead.book(booking(), '', { ...SIGNED, 'idempotency-key': 'forms' });
    const { connectivity } = await verified(service, first);
    const plain = await bookAs(lead, 'forms');
    expect([answered(plain), plain.body]).toEqual(['201 again', connectivity]);
    const signed = await lead.book(booking(), '', { ...SIGNED, 'idempotency-key': 'forms' });
    expect(answered(signed)).toBe('201 again');
    expect((await verified(service, signed, connectivity.id)).connectivity).toEqual(connectivity);
  });

  test.each<[string, Record<string, unknown> | string]>([
    [
      'other zones, another spelling of the bandwidth',
      { start_date: '2026-11-01T15:00:00+02:00', bandwidth: '0100' },
    ],
    ['members that nobody knows', { comment: 'try two' }],
    ['another order', JSON.stringify(Object.fromEntries(Object.entries(booking()).toReversed()))],
  ])('is the same in %s', async (how, body) => {
    const lead = await service.as('lead');
    const first = reservationIn(await bookAs(lead, how));
    const repeat = await lead.book(typeof body === 'string' ? body : booking(body), '', {
      'idempotency-key': how,
    });
    expect([answered(repeat), reservationIn(repeat)]).toEqual(['201 again', first]);
  });

  test('is the same with the tokens of after a refresh', async () => {
    const lead = await service.as('lead');
    const own = await service.userToken('lead');
    const first = reservationIn(await bookAs(lead, 'tokens', { tokens: [own] }));
    service.moveTo(5 * MINUTE);
    const refreshed = await service.userToken('lead');
    expect(refreshed).not.toBe(own);
    for (const tokens of [[refreshed], [refreshed, own], []]) {
      const repeat = await bookAs(await service.as('lead'), 'tokens', { tokens });
      expect([answered(repeat), reservationIn(repeat).id]).toEqual(['201 again', first.id]);
    }
  });

  test('that starts now is the same later: it started then', async () => {
    const lead = await service.as('lead');
    const starting = { start_date: null };
    const first = reservationIn(await bookAs(lead, 'now', starting, 'start_now=true'));
    service.moveTo(MINUTE);
    const repeat = await bookAs(lead, 'now', starting, 'start_now=1');
    expect([answered(repeat), reservationIn(repeat).start_date]).toEqual(['201 again', first.start_date]);
  });

  test.each<[string, Record<string, unknown>, string?]>([
    ['bandwidth', { bandwidth: '101' }],
    ['start, which is now', { start_date: null }, 'start_now=true'],
    ['end', { end_date: at(2 * HOUR + 1) }],
    ['site', { site2: 'fr-lille' }],
    ['name', { name: 'other' }],
    ['route', { direct: true }],
    ['order of the sites', { site1: 'pl-poznan1', site2: 'be-gent1' }],
  ])('another %s is another request: 409, and nothing is booked', async (difference, changes, query) => {
    const lead = await service.as('lead');
    const first = await bookAs(lead, difference);
    const before = service.rows();
    const other = await bookAs(lead, difference, changes, query);
    expect(outcome(other)).toBe(REUSED);
    expect(problemIn(other).detail).toEqual([
      { loc: [], msg: expect.stringContaining('another request'), type: 'NotValid', code: REUSED.slice(4) },
    ]);
    expect(service.rows()).toEqual(before);
    expect((await bookAs(lead, difference)).body).toEqual(first.body);
  });
});

describe('a repeat is answered though a new request would be refused', async () => {
  const service = await openService();
  beforeEach(() => service.moveTo(0));

  test('its period has passed', async () => {
    const first = await bookAs(await service.as('lead'), 'late');
    service.moveTo(3 * HOUR);
    const lead = await service.as('lead');
    expect(outcome(await lead.book())).toBe('422 date_past Date');
    const repeat = await bookAs(lead, 'late');
    expect([answered(repeat), repeat.body]).toEqual(['201 again', first.body]);
  });

  test('its link has left the topology', async () => {
    const lead = await service.as('lead');
    const lille = { site2: 'fr-lille' };
    const first = await bookAs(lead, 'gone', lille);
    const smaller = await openBeside(service, { topology: smallTopology(1) });
    const there = smaller.with(lead.headers);
    expect(outcome(await there.book(booking(lille)))).toBe('422 sites_not_connected Site');
    const repeat = await bookAs(there, 'gone', lille);
    expect([answered(repeat), repeat.body]).toEqual(['201 again', first.body]);
  });

  test('but not when its reservation was deleted: 409 names it', async () => {
    const lead = await service.as('lead');
    const { id } = reservationIn(await bookAs(lead, 'deleted'));
    await lead.delete(id);
    const repeat = await bookAs(lead, 'deleted');
    expect(outcome(repeat)).toBe(REUSED);
    expect(problemIn(repeat).detail[0]?.msg).toMatch(new RegExp(`${id}.*deleted`));
  });
});

describe('a refused request leaves its key free', async () => {
  const { lead } = await openWithLead({ topology: smallTopology(1) });

  test('by the link or by a rule: it is decided anew, and may be another one', async () => {
    const first = await booked(lead);
    expect(outcome(await bookAs(lead, 'link'))).toMatch(/^422 vlans_unavailable/);
    expect(outcome(await bookAs(lead, 'link', hours(-1, 5)))).toBe('422 date_past Date');
    await lead.delete(first.id);
    expect(answered(await bookAs(lead, 'link', { bandwidth: '7' }))).toBe('201');
    expect(answered(await bookAs(lead, 'link', { bandwidth: '7' }))).toBe('201 again');
  });

  test('a dry run neither takes it nor asks for it, however it is spelt', async () => {
    const dry = await bookAs(lead, 'dry', hours(7, 8), 'dry_run=true');
    expect(outcome(dry)).toBe('200');
    expect(answered(await bookAs(lead, 'dry', hours(8, 9)))).toBe('201');
    expect(outcome(await bookAs(lead, 'dry', hours(8, 9), 'dry_run=true'))).toMatch(/^422/);
    expect(outcome(await bookAs(lead, 'dry', hours(9, 10), 'dry_run=true'))).toBe('200');
    expect(outcome(await bookAs(lead, 'é', hours(9, 10), 'dry_run=true'))).toBe('200');
  });
});

test('a key stands for 24 hours, and is free then', async () => {
  const service = await openService();
  const period = hours(48, 49);
  const first = reservationIn(await bookAs(await service.as('lead'), 'day', period));
  service.moveTo(DAY - 1);
  expect(reservationIn(await bookAs(await service.as('lead'), 'day', period)).id).toBe(first.id);
  service.moveTo(DAY);
  expect(answered(await bookAs(await service.as('lead'), 'day', hours(50, 51)))).toBe('201');
});

describe('the text of a key', async () => {
  const { service, lead } = await openWithLead();
  const twice = new Headers([
    ['Idempotency-Key', 'one'],
    ['Idempotency-Key', 'other'],
  ]);

  test.each([
    ['a quoted string is its text', '"8e03978e-40d5"', '8e03978e-40d5'],
    ['with what is escaped in it', String.raw`"a\"b\\c"`, String.raw`a"b\c`],
    ['a lone quote is a character', '"', String.raw`"\""`],
    ['space around it is none of it', ' padded\t', 'padded'],
    ['255 characters', 'k'.repeat(255), `"${'k'.repeat(255)}"`],
    ['given twice: one text', twice.get('idempotency-key') ?? '', '"one, other"'],
  ])('%s', async (_, one, other) => {
    expect(answered(await bookAs(lead, one))).toBe('201');
    expect(answered(await bookAs(lead, other))).toBe('201 again');
  });

  test('capitals count, and so does every character', async () => {
    const ids = new Set<string>();
    for (const key of ['abc', 'ABC', 'ab c', "' OR 1=1 --", '__proto__']) {
      ids.add(reservationIn(await bookAs(lead, key)).id);
    }
    expect(ids.size).toBe(5);
  });

  test.each(['', '""', `"${'k'.repeat(256)}"`, 'clé', 'a\tb', 'a\u007f'])(
    '%j: 400, and nothing is booked',
    async (key) => {
      const before = service.rows();
      const reply = await bookAs(lead, key);
      expect(outcome(reply)).toBe('400 request_invalid');
      expect(problemIn(reply).detail[0]?.msg).toContain('Idempotency-Key');
      expect(service.rows()).toEqual(before);
    },
  );
});

describe('a key is the user’s own, in one experiment', async () => {
  const { service, lead } = await openWithLead();
  const first = reservationIn(await bookAs(lead, 'own'));

  test('in another experiment it is another key', async () => {
    const second = await service.as('lead', await service.newExperiment('second'));
    const there = await bookAs(second, 'own', { bandwidth: '7' });
    expect(answered(there)).toBe('201');
    expect(reservationIn(there).id).not.toBe(first.id);
    expect(reservationIn(await bookAs(lead, 'own')).id).toBe(first.id);
  });

  test('another lead of the same experiment has their own', async () => {
    const database = new DatabaseSync(service.file);
    database
      .prepare("UPDATE membership SET role = 'lead' WHERE role = 'admin' AND scope = ?")
      .run(service.experiment);
    database.close();
    const other = await service.as('admin');
    const theirs = await bookAs(other, 'own', { bandwidth: '7' });
    expect(answered(theirs)).toBe('201');
    expect(reservationIn(theirs).created_by).not.toBe(first.created_by);
    expect(answered(await bookAs(other, 'own', { bandwidth: '7' }))).toBe('201 again');
    expect(reservationIn(await bookAs(lead, 'own')).id).toBe(first.id);
  });

  test('a repeat needs the right to book', async () => {
    for (const key of ['own', 'é']) {
      expect(outcome(await bookAs(await service.as('viewer'), key))).toBe('403 role_not_allowed');
    }
    expect(outcome(await bookAs(service.with({}), 'own'))).toBe('403 token_missing');
  });
});

test('at once, on two servers with one file, 20 requests under one key make one reservation, and every answer names it', async () => {
  const service = await openService({ topology: smallTopology(9) });
  const beside = await openBeside(service, { topology: smallTopology(9) });
  const lead = await service.as('lead');
  const twenty = Array.from({ length: 10 }, () => [lead, beside.with(lead.headers)]).flat();
  const replies = await Promise.all(twenty.map((caller) => bookAs(caller, 'race')));
  expect(replies.map(answered).toSorted()).toEqual(['201', ...Array(19).fill('201 again')]);
  expect(new Set(replies.map((reply) => reservationIn(reply).id)).size).toBe(1);
  expect(service.rows().reservations).toBe(1);
});
