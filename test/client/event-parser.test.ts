import { describe, expect, test } from 'vitest';
import { EventParser, type StreamEvent } from '../../src/client/event-parser.ts';

/** The events of a text that comes in two chunks, cut before a byte. */
function cutAt(bytes: Uint8Array, at: number): { events: StreamEvent[]; id: string | undefined } {
  const parser = new EventParser();
  const events = [...parser.push(bytes.subarray(0, at)), ...parser.push(bytes.subarray(at))];
  return { events, id: parser.lastId };
}

describe('a stream of events is read the same wherever it is cut', () => {
  test.each<[string, string, StreamEvent[], string | undefined]>([
    [
      'LF',
      'id: 1\nevent: a\ndata: x\n\ndata: y\n\n',
      [
        { event: 'a', data: 'x' },
        { event: 'message', data: 'y' },
      ],
      '1',
    ],
    ['CR LF', 'id: 1\r\nevent: a\r\ndata: x\r\n\r\n', [{ event: 'a', data: 'x' }], '1'],
    [
      'CR',
      'id: 1\revent: a\rdata: x\r\rdata: y\r\r',
      [
        { event: 'a', data: 'x' },
        { event: 'message', data: 'y' },
      ],
      '1',
    ],
    ['several lines of data', 'data: x\ndata:y\ndata\n\n', [{ event: 'message', data: 'x\ny\n' }], undefined],
    [
      'comments, unknown fields and retry',
      ': hello\nretry: 2000\nfoo: bar\n:\n\ndata: é€😀\n\n',
      [{ event: 'message', data: 'é€😀' }],
      undefined,
    ],
    ['a byte order mark', '\uFEFFdata: x\n\n', [{ event: 'message', data: 'x' }], undefined],
    ['a later byte order mark', 'data: \uFEFFx\n\n', [{ event: 'message', data: '\uFEFFx' }], undefined],
    ['an id alone', 'id: 1\n\nid: 2\n\n', [], '2'],
    [
      'an event that is cut off',
      'id: 1\ndata: x\n\nid: 2\ndata: y\n',
      [{ event: 'message', data: 'x' }],
      '1',
    ],
    ['an empty event', 'event: a\n\ndata: x\n\n', [{ event: 'message', data: 'x' }], undefined],
    ['an id with NUL', 'id: 1\n\nid: a\0b\ndata: x\n\n', [{ event: 'message', data: 'x' }], '1'],
  ])('%s', (_what, text, events, id) => {
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at <= bytes.length; at += 1) expect(cutAt(bytes, at)).toEqual({ events, id });
    const parser = new EventParser();
    const one = [...bytes].flatMap((byte) => parser.push(Uint8Array.of(byte)));
    expect({ events: one, id: parser.lastId }).toEqual({ events, id });
  });
});

test('an event that does not end is refused', () => {
  const parser = new EventParser();
  const line = new TextEncoder().encode(`data: ${'x'.repeat(65_536)}\n`);
  expect(() => {
    for (let count = 0; count < 20; count += 1) parser.push(line);
  }).toThrow('larger than');
});
