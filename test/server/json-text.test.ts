import { expect, test } from 'vitest';
import { jsonLog } from '../../src/server/log.ts';
import { booking, NOW, openService } from '../fixtures/service.ts';

/** A clear screen as one C1 character, text turned around, an invisible character, and a tag beyond 16 bits. */
const HOSTILE = 'a\u009b2J\u202eb\u200bc\u{e0041}';
const ESCAPED = 'a\\u009b2J\\u202eb\\u200bc\\udb40\\udc41';

test('a log record has C1 and bidi characters as escapes, of the same value (THREATS.md 111)', () => {
  const lines: string[] = [];
  jsonLog(
    (line) => lines.push(line),
    () => NOW,
  )('error', 'refused', { reason: HOSTILE, count: 1 });
  expect(lines).toEqual([expect.stringContaining(ESCAPED)]);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ reason: HOSTILE, count: 1 });
});

test('a reply has C1 and bidi characters as escapes, of the same value (THREATS.md 111)', async () => {
  const lead = await (await openService()).as('lead');
  const { text } = await lead.book(booking({ site1: HOSTILE }));
  expect(text).toContain(ESCAPED);
  expect(JSON.parse(text).detail[0].msg).toContain(HOSTILE);
});
