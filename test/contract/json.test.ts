import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isObject, type JsonFault, MAX_NESTING, readJson } from '../../src/contract/json.ts';
import { processorTime } from '../fixtures/processor-time.ts';

/** The fault of a text, or `ok`; the same in bytes. */
function fault(input: string | Uint8Array): JsonFault | 'ok' {
  const [found = 'ok', inBytes] = [input, Buffer.from(input)].map((one) => {
    const reading = readJson(one);
    return reading.ok ? 'ok' : reading.fault;
  });
  expect(inBytes).toBe(found);
  return found;
}

describe('a member named twice', () => {
  test.each([
    ['with another value', '{"a":1,"b":2,"a":{}}'],
    ['at depth', '{"a":[{"b":{"c":1,"c":1}}]}'],
    ['in the second of two siblings', '[{"a":1},{"a":1,"a":2}]'],
    ['after an object that has it, too', '{"a":{"a":1},"a":1}'],
    ['after an array', '{"a":[1,[2]],"a":1}'],
    ['once escaped', '{"a":1,"\\u0061":1}'],
    ['escaped in two ways', '{"\\u00e9":1,"\\u00E9":2}'],
    ['as a quote', '{"\\"":1,"\\u0022":1}'],
    ['as a backslash', '{"\\\\":1,"\\u005c":1}'],
    ['as a slash', '{"/":1,"\\/":1}'],
    ['as a surrogate pair', '{"😀":1,"\\ud83d\\ude00":1}'],
    ['as nothing', '{"":1,"":2}'],
    ['as __proto__', '{"__proto__":1,"__proto__":2}'],
    ['with spaces before the colon', '{"a" \t\r\n:1,"a":1}'],
    ['with values that look like structure', '{"a":"}","a":"{"}'],
    // V8 13.6 confuses the first name with another one.
    ['beside an escaped one', String.raw`{"a":1,"\u0062":2,"b":3}`],
    ['beside an escaped one, at depth', String.raw`{"a":1,"c":{"\u0062":2},"b":{"\u0062":2,"b":3}}`],
  ])('row 24: %s is refused', (_, json) => expect(fault(json)).toBe('duplicate'));

  test.each([
    ['in sibling objects', '[{"a":1},{"a":1}]'],
    ['in an object and the one inside', '{"a":{"a":{"a":1}}}'],
    ['in another case', '{"a":1,"A":1}'],
    ['as a value', '{"a":"a","b":["a","a"]}'],
    ['inside a string', '{"a":"\\"a\\":1,\\"a\\":2"}'],
    ['in another normal form', '{"\u00e9":1,"e\u0301":1}'],
    ['behind an escaped backslash', '{"a":"\\\\","b":"\\\\","\\\\":2}'],
    ['by inheritance only', '{"toString":1,"__proto__":1,"hasOwnProperty":1}'],
  ])('row 24: the same name %s is allowed', (_, json) => expect(fault(json)).toBe('ok'));

  /** A JSON text, made from lists of members, so that it can name one twice; and whether it does. */
  const { document } = fc.letrec<{ document: { text: string; twice: boolean } }>((tie) => {
    const name = fc
      .tuple(fc.constantFrom('a', 'b', '"', '\\', 'é', '', ':', '}'), fc.boolean())
      .map(([char, escaped]) => {
        const code = char.charCodeAt(0).toString(16).padStart(4, '0');
        return { char, text: escaped && char !== '' ? `"\\u${code}"` : JSON.stringify(char) };
      });
    const space = fc.constantFrom('', ' ', '\n\t');
    const object = fc.array(fc.tuple(name, space, tie('document')), { maxLength: 4 }).map((members) => ({
      text: `{${members.map(([key, gap, value]) => `${gap}${key.text}${gap}:${value.text}`).join(',')}}`,
      twice:
        new Set(members.map(([key]) => key.char)).size < members.length ||
        members.some(([, , value]) => value.twice),
    }));
    const array = fc.array(tie('document'), { maxLength: 3 }).map((items) => ({
      text: `[${items.map(({ text }) => text).join(' , ')}]`,
      twice: items.some(({ twice }) => twice),
    }));
    const leaf = fc
      .constantFrom('1', 'null', '"a"', '"\\"a\\":1,\\"a\\":"', '"{"', '"]"', '"\\\\"', '-0.5e3')
      .map((text) => ({ text, twice: false }));
    return { document: fc.oneof({ maxDepth: 5 }, leaf, object, array) };
  });
  test('row 24: is found if and only if there is one (property)', () => {
    fc.assert(
      fc.property(document, ({ text, twice }) => {
        expect(fault(text)).toBe(twice ? 'duplicate' : 'ok');
      }),
      { numRuns: 500 },
    );
  });
});

describe('the result', () => {
  test('is the value (property)', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 2), (value, indent) => {
        const text = ` ${JSON.stringify(value, null, indent)} `;
        expect(fault(text)).toBe('ok');
        expect(readJson(text)).toEqual({ ok: true, value: JSON.parse(text) });
      }),
    );
  });

  test.each([
    ...['', ' ', '{', '{}}', '{}{}', '{"a":1,}', '[1,]', "{'a':1}", '{a:1}', '01', '+1', '.5', 'NaN'],
    ...['undefined', '// x\n{}', '"\n"', '"\\x41"', '{"a":1,"a"}', '\u00a0{}', '{}\0', '\uFEFF{}'],
  ])('row 36: %j is not JSON', (text) => expect(fault(text)).toBe('syntax'));

  test.each([
    ['a byte that is none', [0x22, 0xff, 0x22]],
    ['a sequence that breaks off', [0x22, 0xc3, 0x22]],
    ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22]],
    ['a surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['beyond U+10FFFF', [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22]],
    ['UTF-16 with its mark', [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
  ])('row 36: %s is not UTF-8', (_, bytes) => expect(fault(Uint8Array.from(bytes))).toBe('encoding'));
});

describe('row 36: large and deep texts are handled quickly', () => {
  const [DEPTH, MEGABYTES] = [100_000, 3_000_000];
  const inArrays = (inner: string) => `${'['.repeat(DEPTH)}${inner}${']'.repeat(DEPTH)}`;
  const inObjects = (inner: string) => `${'{"a":'.repeat(DEPTH)}${inner}${'}'.repeat(DEPTH)}`;
  test.each<[string, () => string, JsonFault | 'ok']>([
    ['arrays', () => inArrays(''), 'nesting'],
    ['objects in arrays', () => `${'[{"a":'.repeat(DEPTH)}1${'}]'.repeat(DEPTH)}`, 'nesting'],
    ['a duplicate at the bottom', () => inObjects('{"b":1,"b":2}'), 'nesting'],
    ['a duplicate after it', () => `{"b":${inArrays('')},"b":1}`, 'nesting'],
    ['objects left open', () => '{"a":'.repeat(DEPTH), 'nesting'],
    ['many arrays beside each other', () => `[${'[],'.repeat(MEGABYTES / 4)}1]`, 'ok'],
    ['closed before they are opened', () => `${']'.repeat(DEPTH)}${'['.repeat(DEPTH)}`, 'syntax'],
    ['brackets in a string', () => JSON.stringify(['['.repeat(DEPTH), '{'.repeat(DEPTH)]), 'ok'],
    ['brackets behind escaped quotes', () => JSON.stringify(`${'"['.repeat(DEPTH)}\\`), 'ok'],
    ['backslashes before brackets', () => JSON.stringify(['\\'.repeat(DEPTH), '['.repeat(DEPTH)]), 'ok'],
    ['brackets behind backslashes', () => `["${'\\\\'.repeat(3)}",${'['.repeat(DEPTH)}`, 'nesting'],
    ['a long string of escapes', () => `"${'\\n'.repeat(MEGABYTES / 2)}"`, 'ok'],
    ['a long string left open', () => `"${'x'.repeat(MEGABYTES)}`, 'syntax'],
    ['a long name', () => `{"${'x'.repeat(MEGABYTES)}":1}`, 'ok'],
    ['long white space', () => `{"a"${' '.repeat(MEGABYTES)}:${' '.repeat(MEGABYTES)}1}`, 'ok'],
    ['many members', () => `{${Array.from({ length: 200_000 }, (_, n) => `"${n}":1`).join()}}`, 'ok'],
  ])('%s', (_, make, due) => {
    const text = make();
    const started = processorTime();
    expect(fault(text)).toBe(due);
    expect(processorTime() - started).toBeLessThan(5000);
  });
});

describe('row 47: nesting is bounded before a text is parsed', () => {
  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
  /** The value of a top member when null replaces nested values below the limit. */
  const shallow = JSON.parse(`${'['.repeat(MAX_NESTING - 1)}null${']'.repeat(MAX_NESTING - 1)}`);

  test('the allowed depth is read, one level more is refused, and the text behind is not read', () => {
    expect(fault(nested(MAX_NESTING))).toBe('ok');
    expect(fault(`{"a":${nested(MAX_NESTING - 1)}}`)).toBe('ok');
    expect(fault(`{"a":${nested(MAX_NESTING)}}`)).toBe('nesting');
    expect(fault(`${nested(MAX_NESTING)}nonsense`)).toBe('syntax');
    expect(fault(`${nested(MAX_NESTING + 1)}nonsense`)).toBe('nesting');
    expect(fault(`${'['.repeat(MAX_NESTING + 1)}nonsense`)).toBe('nesting');
  });

  const deep = nested(MAX_NESTING);
  test.each([
    [`{"a":${nested(100_000)},"b":"x"}`, { a: shallow, b: 'x' }],
    [`{"a":${deep},"b":[${deep},1]}`, { a: shallow, b: [shallow[0], 1] }],
    ['{"a":[[]]}', { a: [[]] }],
  ])('what is too deep may be read as null', (text, value) => {
    expect(readJson(text, 'null')).toEqual({ ok: true, value });
  });

  test('an unclosed array is not JSON, and not read as null', () => {
    expect(readJson(`{"a":${'['.repeat(100_000)}`, 'null')).toEqual({ ok: false, fault: 'syntax' });
  });
});

test('neither null nor an array is an object', () => {
  expect([{}, { a: 1 }, [], null, undefined, 'x', 1].filter(isObject)).toEqual([{}, { a: 1 }]);
});
