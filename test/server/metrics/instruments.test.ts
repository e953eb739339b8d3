import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Counter, expositionText, Histogram } from '../../../src/server/metrics/instruments.ts';
import { anyText } from '../../fixtures/any-text.ts';
import { parseExposition, sampleOf } from '../../fixtures/exposition.ts';

const name = 'slices_conn_things_total';

test('parses the example', () => {
  const things = new Counter({ name, help: 'Things, of\nall \\ kinds "and" more.' });
  things.add({ kind: 'a "b"\\\n' }, 3);
  expect(expositionText([things.family()])).toBe(
    [
      `# HELP ${name} Things, of\\nall \\\\ kinds "and" more.`,
      `# TYPE ${name} counter`,
      `${name}{kind="a \\"b\\"\\\\\\n"} 3`,
      '',
    ].join('\n'),
  );
});

test('any text in a label or in the help can be read back (property)', () => {
  const text = fc.oneof(anyText(), fc.string({ unit: fc.constantFrom('\\', '"', '\n', 'n', ' ') }));
  fc.assert(
    fc.property(text, text, text, (help, one, other) => {
      const things = new Counter({ name, help });
      things.add({ one, other });
      const found = parseExposition(expositionText([things.family()]));
      expect(found.get(name)).toEqual({
        type: 'counter',
        help,
        samples: [{ name, labels: { one, other }, value: 1 }],
      });
    }),
  );
});

test.each([0, -1, 0.1, 1e-9, 1e21, 1.5e300, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN])(
  '%d can be read back',
  (value) => {
    const gauge = new Counter({ name: 'a_gauge', help: '', type: 'gauge' });
    gauge.add({}, value);
    expect(sampleOf(parseExposition(expositionText([gauge.family()])), 'a_gauge')).toBe(value);
  },
);

describe('a counter', () => {
  test('keeps label sets apart', () => {
    const things = new Counter({ name, help: '' }, [{ kind: 'shown' }]);
    things.add({ kind: 'a', size: 'b' });
    things.add({ kind: 'a', size: 'b' });
    things.add({ kind: 'a b' });
    const found = parseExposition(expositionText([things.family()]));
    expect(sampleOf(found, name, { kind: 'shown' })).toBe(0);
    expect(sampleOf(found, name, { kind: 'a', size: 'b' })).toBe(2);
    expect(sampleOf(found, name, { kind: 'a b' })).toBe(1);
  });
});

describe('a histogram', () => {
  test('counts each value in every bucket whose bound is not smaller', () => {
    const sizes = new Histogram({ name: 'sizes', help: '' }, [1, 2, 4]);
    for (const size of [1, 2, 2, 3, 4, 5]) sizes.observe(size);
    const found = parseExposition(expositionText([sizes.family()]));
    const buckets = ['1', '2', '4', '+Inf'].map((le) => sampleOf(found, 'sizes_bucket', { le }));
    expect(buckets).toEqual([1, 3, 5, 6]);
    expect(sampleOf(found, 'sizes_sum')).toBe(17);
    expect(sampleOf(found, 'sizes_count')).toBe(6);
  });
});
