import { describe, expect, test } from 'vitest';
import { escapeLines, escapeText, jsonText } from '../../../src/cli/print/output.ts';

const range = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

describe('row 7: a control character is shown as its code', () => {
  test.each<[string, number[]]>([
    ['C0 controls', range(0x00, 0x1f)],
    ['DEL', [0x7f]],
    ['C1 controls', range(0x80, 0x9f)],
    ['bidi marks', [0x200e, 0x200f, 0x061c]],
    ['bidi embeddings and overrides', range(0x202a, 0x202e)],
    ['bidi isolates', range(0x2066, 0x2069)],
    ['zero-width characters', [0x200b, 0x200c, 0x200d, 0x2060, 0xfeff]],
    ['the soft hyphen', [0x00ad]],
    ['line and paragraph separators', [0x2028, 0x2029]],
  ])('%s', (_, codes) => {
    for (const code of codes) {
      const escaped = `\\u${code.toString(16).padStart(4, '0')}`;
      expect(escapeText(`a${String.fromCharCode(code)}b`)).toBe(`a${escaped}b`);
    }
  });

  test.each([
    ['\u001b[31mred\u001b[0m', '\\u001b[31mred\\u001b[0m'],
    ['\u001b]8;;http://x\u001b\\link', '\\u001b]8;;http://x\\u001b\\link'],
    ['\u001b]52;c;eA==\u0007', '\\u001b]52;c;eA==\\u0007'],
    ['real\rfake', 'real\\u000dfake'],
    ['\u0000\u0000', '\\u0000\\u0000'],
  ])('every one of several: %j', (text, escaped) => {
    expect(escapeText(text)).toBe(escaped);
  });
});

describe('row 60: a character without width, or one that looks like a space, is shown as its code', () => {
  test.each<[string, number[]]>([
    ['tags', [0xe0001, ...range(0xe0020, 0xe007f)]],
    ['variation selectors', [...range(0xfe00, 0xfe0f), ...range(0xe0100, 0xe01ef)]],
    ['Mongolian variation selectors', range(0x180b, 0x180f)],
    ['Hangul fillers', [0x115f, 0x1160, 0x3164, 0xffa0]],
    ['Khmer vowels that are not shown', [0x17b4, 0x17b5]],
    [
      'zero width, joiners and invisible operators',
      [0x034f, 0x200b, 0x200c, 0x200d, ...range(0x2060, 0x2064)],
    ],
    ['deprecated format characters', range(0x206a, 0x206f)],
    ['what is set aside for such characters', [0x2065, 0xfff0, 0xe0fff]],
    ['annotations of text', range(0xfff9, 0xfffb)],
    ['shorthand and musical format characters', [...range(0x1bca0, 0x1bca3), ...range(0x1d173, 0x1d17a)]],
    ['blanks: Braille, a notehead, Khitan', [0x2800, 0x1d159, 0x16fe4]],
    ['the soft hyphen, bidi', [0x00ad, 0x061c, ...range(0x202a, 0x202e), ...range(0x2066, 0x2069)]],
  ])('%s', (_, codes) => {
    for (const code of codes) {
      const text = `a${String.fromCodePoint(code)}b`;
      expect(escapeText(text)).toMatch(/^a(?:\\u[0-9a-f]{4}){1,2}b$/);
      const line = jsonText({ text });
      expect(line).toMatch(/^[ -~]+$/);
      expect(JSON.parse(line)).toEqual({ text });
    }
  });
});

test.each([
  '',
  'be-gent1 – pl-poznan1',
  'Poznań, Sztáki, Évry',
  'ελληνικά кириллица עברית العربية',
  '日本語 한국어 ไทย',
  'e\u0301 (a combining accent)',
  '🚀 👍🏽 🇧🇪',
  '\u00a0 no-break space',
  '\\u001b typed as it is',
  '{"json":[1,2]} <a href="x">&amp;</a>',
])('ordinary text is kept: %j', (text) => {
  expect(escapeText(text)).toBe(text);
});

test('escapeLines keeps line ends and escapes the rest', () => {
  expect(escapeLines('one\n\u001b[2Jtwo\r\n')).toBe('one\n\\u001b[2Jtwo\\u000d\n');
});
