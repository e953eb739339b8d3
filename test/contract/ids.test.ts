import fc from 'fast-check';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import {
  ExperimentId,
  ID_PREFIXES,
  type IdKind,
  idKind,
  newId,
  ProjectId,
  ReservationId,
  UserId,
} from '../../src/contract/fields.ts';
import { processorTime } from '../fixtures/processor-time.ts';

const SCHEMAS = { user: UserId, project: ProjectId, experiment: ExperimentId, reservation: ReservationId };
const KINDS = Object.keys(ID_PREFIXES) as IdKind[];
const LAST_TIME = 2 ** 48 - 1;
const zeros = new Uint8Array(10);
const ones = new Uint8Array(10).fill(255);

test('the prefixes are those of the API as it is given', () => {
  expect(ID_PREFIXES).toEqual({ user: 'user', project: 'proj', experiment: 'exp', reservation: 'con' });
});

describe('newId', () => {
  test.each<[IdKind, number, Uint8Array, string]>([
    ['user', 0, zeros, 'user_h.example_00000000000000000000000000'],
    ['project', LAST_TIME, ones, 'proj_h.example_7zzzzzzzzzzzzzzzzzzzzzzzzz'],
    ['experiment', 1.9, zeros, 'exp_h.example_00000000010000000000000000'],
    ['reservation', 0, new Uint8Array(16).fill(31, 9), 'con_h.example_0000000000000000000000000z'],
    // The example of the ULID specification: 01ARYZ6S41 is 1469918176385.
    ['user', 1_469_918_176_385, zeros, 'user_h.example_01aryz6s410000000000000000'],
  ])('%s at %i', (kind, now, random, id) => {
    expect(newId(kind, 'h.example', now, random)).toBe(id);
  });

  const times = fc.integer({ min: 0, max: LAST_TIME });
  const randoms = fc.uint8Array({ minLength: 10, maxLength: 10 });
  const hosts = fc.constantFrom('h.example', '127.0.0.1', '[::1]', 'LOCALHOST', 'a'.repeat(255));
  test('has the prefix of its kind and 26 characters without ambiguous letters, and is of no other kind (property)', () => {
    fc.assert(
      fc.property(fc.constantFrom(...KINDS), hosts, times, randoms, (kind, host, now, random) => {
        const id = newId(kind, host, now, random);
        const opened = `${ID_PREFIXES[kind]}_${host}_`;
        expect([id.slice(0, opened.length), idKind(id)]).toEqual([opened, kind]);
        expect(id.slice(opened.length)).toMatch(/^[0-7][0-9a-hjkmnp-tv-z]{25}$/);
        expect(KINDS.filter((each) => v.is(SCHEMAS[each], id))).toEqual([kind]);
      }),
    );
  });

  test('sorts by age as text, and changes with each random byte (property)', () => {
    const changes = fc.integer({ min: 1, max: 255 });
    fc.assert(
      fc.property(times, times, randoms, randoms, fc.nat(9), changes, (a, b, x, y, index, change) => {
        const [one, other] = [newId('user', 'h', a, x), newId('user', 'h', b, y)];
        if (a !== b) expect(one < other).toBe(a < b);
        const changed = x.map((byte, at) => (at === index ? byte ^ change : byte));
        expect(newId('user', 'h', a, changed)).not.toBe(one);
      }),
    );
  });
});

describe('an id of a reservation', () => {
  test('may have another service’s opaque part', () => {
    for (const opaque of ['01jd3x', 'a', 'A-b_c', 'x'.repeat(128)]) {
      expect(v.is(ReservationId, `con_conn.example.org_${opaque}`)).toBe(true);
    }
  });

  test.each<[string, ...unknown[]]>([
    ['a part that is missing', '', 'con', 'con__x', 'con_h_', 'con_h'],
    ['another prefix', 'conn_h_x', 'CON_h_x'],
    ['more around it', ' con_h_x', 'con_h_x\n', 'x\ncon_h_x'],
    ['what would be another address', 'con_h_../x', 'con_h_..', 'con_h_%2e', 'con_h_x?y'],
    ['characters that are not ASCII', 'con_h_\u001b[2J', 'con_h_ö', 'con_exämple_x'],
    ['a part that is too long', `con_h_${'x'.repeat(129)}`, `con_${'h'.repeat(256)}_x`],
    ['another type', 5, null, ['con_h_x']],
  ])('has not %s', (_, ...ids) => {
    expect(ids.filter((id) => v.is(ReservationId, id))).toEqual([]);
  });

  test('is read quickly where it is long', () => {
    const started = processorTime();
    for (const part of ['_', 'a']) expect(v.is(ReservationId, `con_${part.repeat(1_000_000)}`)).toBe(false);
    expect(processorTime() - started).toBeLessThan(2000);
  });
});

test('the kind of an id is that of its prefix, and nothing else has one', () => {
  const ids = ['user_h_x', 'proj_h_x', 'exp_h_x', 'con_conn.example.org_01jd3x'];
  expect(ids.map(idKind)).toEqual(['user', 'project', 'experiment', 'reservation']);
  const others = ['', '_', '_user_h_x', 'user', 'users', 'conn', 'project_h_x', 'User_h_x', ' user_h_x'];
  expect([...others, 'toString_h_x', '__proto___h_x'].filter(idKind)).toEqual([]);
});
