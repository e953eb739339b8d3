import fc from 'fast-check';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { ExperimentId, ProjectId, ReservationId, UserId } from '../../src/contract/fields.ts';
import { ID_PREFIXES, type IdKind, idKind, newId, randomPool } from '../../src/contract/ids.ts';
import { processorTime } from '../fixtures/processor-time.ts';

const SCHEMAS = { user: UserId, project: ProjectId, experiment: ExperimentId, reservation: ReservationId };
const IDS = Object.keys(ID_PREFIXES) as IdKind[];
const LAST_TIME = 2 ** 48 - 1;
const opaque = (id: string) => id.slice(id.lastIndexOf('_') + 1);
const zeros = new Uint8Array(10);
const ones = new Uint8Array(10).fill(255);

test('the prefixes are those of the API as it is given', () => {
  expect(ID_PREFIXES).toEqual({ user: 'user', project: 'proj', experiment: 'exp', reservation: 'con' });
});

describe('newId', () => {
  test.each<[IdKind, number, Uint8Array, string]>([
    ['user', 0, zeros, 'user_h.example_00000000000000000000000000'],
    ['project', LAST_TIME, ones, 'proj_h.example_7zzzzzzzzzzzzzzzzzzzzzzzzz'],
    ['experiment', 1, zeros, 'exp_h.example_00000000010000000000000000'],
    [
      'reservation',
      0,
      new Uint8Array([0, 0, 0, 0, 0, 0, 0, 0, 0, 31]),
      'con_h.example_0000000000000000000000000z',
    ],
    // The example of the ULID specification: 01ARYZ6S41 is 1469918176385.
    ['user', 1_469_918_176_385, zeros, 'user_h.example_01aryz6s410000000000000000'],
  ])('%s at %i', (kind, now, random, id) => {
    expect(newId(kind, 'h.example', now, random)).toBe(id);
  });

  const times = fc.integer({ min: 0, max: LAST_TIME });
  const randoms = fc.uint8Array({ minLength: 10, maxLength: 10 });
  const hosts = fc.constantFrom(
    'h.example',
    'offline.localhost',
    '127.0.0.1',
    '[::1]',
    'LOCALHOST',
    'a'.repeat(255),
  );
  test('has the prefix of its kind and 26 characters without ambiguous letters (property)', () => {
    fc.assert(
      fc.property(fc.constantFrom(...IDS), hosts, times, randoms, (kind, host, now, random) => {
        const id = newId(kind, host, now, random);
        expect(v.is(SCHEMAS[kind], id)).toBe(true);
        expect(id.startsWith(`${ID_PREFIXES[kind]}_${host}_`)).toBe(true);
        expect(opaque(id)).toMatch(/^[0-7][0-9a-hjkmnp-tv-z]{25}$/);
        expect(idKind(id)).toBe(kind);
      }),
    );
  });

  test('sorts by age as text, with any random bytes (property)', () => {
    fc.assert(
      fc.property(times, times, randoms, randoms, (a, b, x, y) => {
        const [one, other] = [newId('user', 'h', a, x), newId('user', 'h', b, y)];
        if (a !== b) expect(one < other).toBe(a < b);
      }),
    );
  });

  test('two ids of one millisecond differ with every random byte (property)', () => {
    fc.assert(
      fc.property(randoms, fc.nat(9), fc.integer({ min: 1, max: 255 }), (random, index, change) => {
        const other = random.map((byte, at) => (at === index ? byte ^ change : byte));
        expect(newId('user', 'h', 5, random)).not.toBe(newId('user', 'h', 5, other));
      }),
    );
  });

  test('reads ten random bytes and does not change them', () => {
    const more = new Uint8Array(16).fill(7);
    expect(newId('user', 'h', 5, more)).toBe(newId('user', 'h', 5, more.subarray(0, 10)));
    expect(more).toEqual(new Uint8Array(16).fill(7));
  });

  test('accepts a clock with fractions', () => {
    expect(newId('user', 'h', 5.9, zeros)).toBe(newId('user', 'h', 5, zeros));
  });
});

describe('schemas', () => {
  test.each(IDS)('the schema of %s refuses every other kind', (kind) => {
    for (const other of IDS) {
      expect(v.is(SCHEMAS[kind], newId(other, 'h.example', 5, ones))).toBe(other === kind);
    }
  });

  test.each(['01jd3x', 'a', 'A-b_c', 'x'.repeat(128)])('accept another service’s opaque id: %s', (id) => {
    expect(v.is(ReservationId, `con_conn.example.org_${id}`)).toBe(true);
  });

  test.each<[string, unknown]>([
    ['nothing', ''],
    ['the prefix alone', 'con'],
    ['no host', 'con__x'],
    ['no opaque id', 'con_h_'],
    ['no second underscore', 'con_h'],
    ['another prefix', 'conn_h_x'],
    ['capitals in the prefix', 'CON_h_x'],
    ['a space before', ' con_h_x'],
    ['a newline after', 'con_h_x\n'],
    ['a line before', 'x\ncon_h_x'],
    ['a slash', 'con_h_../x'],
    ['dots in the opaque id', 'con_h_..'],
    ['a percent sign', 'con_h_%2e'],
    ['a question mark', 'con_h_x?y'],
    ['an escape', 'con_h_\u001b[2J'],
    ['a letter that is not ASCII', 'con_h_ö'],
    ['a host that is not ASCII', 'con_exämple_x'],
    ['an opaque id of 129 characters', `con_h_${'x'.repeat(129)}`],
    ['a host of 256 characters', `con_${'h'.repeat(256)}_x`],
    ['a number', 5],
    ['null', null],
    ['an array', ['con_h_x']],
  ])('refuses %s', (_, id) => {
    expect(v.is(ReservationId, id)).toBe(false);
  });

  test('is quick on a long id', () => {
    const started = processorTime();
    expect(v.is(ReservationId, `con_${'_'.repeat(1_000_000)}`)).toBe(false);
    expect(v.is(ReservationId, `con_${'a'.repeat(1_000_000)}`)).toBe(false);
    expect(processorTime() - started).toBeLessThan(2000);
  });
});

describe('idKind', () => {
  test.each<[string, IdKind | undefined]>([
    ['user_h_x', 'user'],
    ['proj_h_x', 'project'],
    ['exp_h_x', 'experiment'],
    ['con_conn.example.org_01jd3x', 'reservation'],
    ['', undefined],
    ['_', undefined],
    ['_user_h_x', undefined],
    ['user', undefined],
    ['users', undefined],
    ['user1', undefined],
    ['conn', undefined],
    ['expo', undefined],
    ['project_h_x', undefined],
    ['reservation_h_x', undefined],
    ['User_h_x', undefined],
    [' user_h_x', undefined],
    ['toString_h_x', undefined],
    ['__proto___h_x', undefined],
  ])('%j is %s', (id, kind) => {
    expect(idKind(id)).toBe(kind);
  });
});

/** Bytes that count up through all draws, so that one given twice shows; and how often was drawn. */
function counting() {
  const draws: number[] = [];
  let next = 0;
  const draw = (bytes: number) => {
    draws.push(bytes);
    return Uint8Array.from({ length: bytes }, () => next++ % 251);
  };
  return { draws, draw };
}

describe('a pool of random bytes', () => {
  test('gives each byte once, in order, and draws thousands at a time', () => {
    const { draws, draw } = counting();
    const random = randomPool(draw);
    let at = 0;
    for (let round = 0; round < 1000; round += 1) {
      const bytes = random(10);
      expect(bytes).toHaveLength(10);
      // Six bytes are left of each draw of 4096.
      if (at % 4096 > 4086) at += 4096 - (at % 4096);
      expect([...bytes]).toEqual(Array.from({ length: 10 }, (_, index) => (at + index) % 251));
      at += 10;
    }
    expect(draws).toEqual([4096, 4096, 4096]);
  });

  test('what was given out is not touched by later draws', () => {
    const { draw } = counting();
    const random = randomPool(draw);
    const first = random(10);
    const copy = [...first];
    for (let round = 0; round < 1000; round += 1) random(10);
    expect([...first]).toEqual(copy);
  });

  test('gives as much as a whole draw, and no more', () => {
    const random = randomPool(counting().draw);
    expect(random(4096)).toHaveLength(4096);
    expect(() => random(4097)).toThrow(RangeError);
  });
});
