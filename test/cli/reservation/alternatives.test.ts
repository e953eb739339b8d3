import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { retyped } from '../../../src/cli/command-line.ts';
import { type Offer, offerItem, offerLines, Refusal } from '../../../src/cli/print/failure-report.ts';
import { type Refused, refusalOf, timeWord } from '../../../src/cli/reservation/alternatives.ts';
import { Failure, type FailureCode, type FailureFacts, ownCommand } from '../../../src/contract/failure.ts';
import type { Alternative, Limit } from '../../../src/contract/problems.ts';
import type { ReservationRequest } from '../../../src/contract/reservation-request.ts';
import { commandLines } from '../../fixtures/command-world.ts';
import { NOW } from '../../fixtures/tokens.ts';

const typedAs = await commandLines();
const HOUR = 3_600_000;
const iso = (offset: number) => new Date(NOW + offset).toISOString();
const at = (offset: number) => timeWord(NOW + offset);

const START = NOW + HOUR;
const request: ReservationRequest = {
  site1: 'be-gent1',
  site2: 'pl-poznan1',
  bandwidth: 9000,
  start: START,
  end: START + 8 * HOUR,
};
const LINK = 'reserve be-gent1 pl-poznan1 --bandwidth 9G';

const [most, earliest, longest] = (
  [
    ['most_bandwidth', 6000, 1, 9],
    ['earliest', 9000, 5, 13],
    ['longest', 9000, 1, 3],
  ] as const
).map(([kind, bandwidth, from, until]) => ({
  ...{ kind, start_now: false, bandwidth },
  ...{ start_date: iso(from * HOUR), end_date: iso(until * HOUR) },
})) as [Alternative, Alternative, Alternative];
const other: Alternative = { ...most, kind: 'other_route', bandwidth: 9000, via: ['fr-slices'] };
const limit: Limit = {
  ...{ limit: 'bandwidth', site: null, layer: null, capacity: 10_000, free: 6000 },
  ...{ start_date: iso(3 * HOUR), end_date: iso(5 * HOUR) },
};

/** What a refusal of {@link request}, typed like this, becomes. */
function refused(
  alternatives: Alternative[],
  {
    typed = `${LINK} --start ${at(HOUR)} --for 8h`,
    code = 'bandwidth_unavailable',
    facts = {},
    text = 'Not enough.',
    ...asked
  }: Partial<Omit<Refused, 'typed'>> & {
    typed?: string;
    code?: FailureCode;
    facts?: FailureFacts;
    text?: string;
  } = {},
): { failure: Failure; offers: readonly (Offer & { command: string })[] } {
  const words = typed.split(' ');
  const error = new Failure(code, text, { ...facts, alternatives });
  const failure = refusalOf(error, { request, typed: typedAs(words), now: NOW, ...asked });
  if (!(failure instanceof Failure)) throw failure;
  const offers = failure instanceof Refusal ? failure.offers : [];
  const line = typedAs(words);
  return {
    failure,
    offers: offers.map((offer) => ({ ...offer, command: retyped(line, offer.changes, ...offer.more) })),
  };
}

/** The commands that are offered, without the part that all have in common. */
function commands(...given: Parameters<typeof refused>): string[] {
  return refused(...given).offers.map(({ command }) =>
    command.replace('slices-conn reserve be-gent1 pl-poznan1 ', ''),
  );
}

describe('the command of an alternative changes only the flags that differ', () => {
  test('of a start and a duration', () => {
    expect(commands([most, earliest, longest, other])).toEqual([
      `--bandwidth 6G --start ${at(HOUR)} --for 8h`,
      `--bandwidth 9G --start ${at(HOUR)} --for 8h --via fr-slices`,
      `--bandwidth 9G --start ${at(5 * HOUR)} --for 8h`,
      `--bandwidth 9G --start ${at(HOUR)} --for 2h`,
    ]);
  });

  test('of a start and an end', () => {
    expect(commands([most, earliest, longest], { typed: `${LINK} --start ${at(HOUR)} --end=soon` })).toEqual([
      `--bandwidth 6G --start ${at(HOUR)} --end=soon`,
      `--bandwidth 9G --start ${at(5 * HOUR)} --end ${at(13 * HOUR)}`,
      `--bandwidth 9G --start ${at(HOUR)} --end ${at(3 * HOUR)}`,
    ]);
  });

  test('row 45: everything else that was typed stays as it stands, quoted for a shell', () => {
    const flags = '--dry-run --idempotency-key ci-7 --allow-unsigned --save';
    const line = `--offline ${LINK} ${flags} $HOME's --start ${at(HOUR)} --for 8h`;
    const { offers } = refused([most], { typed: line });
    const { command } = offers[0] ?? {};
    const { stdout } = spawnSync('sh', ['-c', `set -- ${command}; printf '%s\\n' "$@"`], {
      encoding: 'utf8',
    });
    expect(stdout.trimEnd().split('\n')).toEqual(`slices-conn ${line.replace('9G', '6G')}`.split(' '));
  });

  test('with a start after now, the same duration would end later when it is pasted later', () => {
    const typed = `${LINK} --start +1h --for 8h`;
    expect(commands([most, longest], { typed })).toEqual([
      '--bandwidth 6G --start +1h --for 8h',
      `--bandwidth 9G --start +1h --end ${at(3 * HOUR)}`,
    ]);
  });

  describe('to start now', () => {
    // 5 s later than the duration says.
    const now: ReservationRequest = { ...request, start: 'now', end: NOW + 8 * HOUR + 5000 };
    const atOnce = { start_now: true, start_date: null };
    const asked = { request: now, typed: `${LINK} --start-now --for 8h` };

    test('the duration stays where it fits, and else the end is named', () => {
      const same = { ...most, ...atOnce, end_date: iso(8 * HOUR + 5000) };
      const moved = { ...earliest, end_date: iso(13 * HOUR + 5000) };
      expect(commands([same, moved, { ...longest, ...atOnce }], asked)).toEqual([
        '--bandwidth 6G --start-now --for 8h',
        `--bandwidth 9G --start ${at(5 * HOUR)} --for 8h`,
        `--bandwidth 9G --start-now --end ${at(3 * HOUR)}`,
      ]);
    });

    test('what starts later ends when its command ends it', () => {
      const moved = { ...earliest, end_date: iso(13 * HOUR + 5000) };
      expect(refused([moved], asked).offers).toMatchObject([{ end: NOW + 13 * HOUR }]);
    });

    test.each<[string, Alternative, label: string, words: string]>([
      ['less for all of it', { ...most, end_date: iso(65_000) }, '6 Gbps, same period', '6G --for 1m'],
      [
        'a part of it',
        { ...longest, end_date: iso(3 * HOUR - 1) },
        '9 Gbps for 2 h 58 min',
        '9G --for 2h58m',
      ],
    ])('with a command, %s: the label says what its command books', (_, alternative, label, words) => {
      const short: ReservationRequest = { ...now, end: NOW + 65_000 };
      const { offers } = refused([{ ...alternative, ...atOnce }], {
        request: short,
        typed: 'run be-gent1 pl-poznan1 --bandwidth 9G --for 1m -- true',
      });
      expect(offers.map((offer) => [String(offer.label), offer.command])).toEqual([
        [label, `slices-conn run be-gent1 pl-poznan1 --bandwidth ${words} -- true`],
      ]);
    });
  });

  describe('of a search', () => {
    const search: ReservationRequest = { ...request, duration: 2 * HOUR };
    const typed = `${LINK} --earliest --for 2h --end ${at(9 * HOUR)}`;

    test('for a duration', () => {
      const slower = { ...most, end_date: iso(3 * HOUR) };
      const after = { ...earliest, start_date: iso(12 * HOUR), end_date: iso(14 * HOUR) };
      const { offers } = refused([after, slower], { request: search, typed });
      expect(offers.map(({ command }) => command)).toEqual([
        `slices-conn ${typed.replace('9G', '6G')}`,
        `slices-conn ${typed.replace(at(9 * HOUR), at(14 * HOUR))}`,
      ]);
    });

    test('for a volume', () => {
      const { bandwidth: _rate, ...carried } = { ...request, volume: 50e12 };
      const line = `reserve be-gent1 pl-poznan1 --volume 50T --end ${at(9 * HOUR)}`;
      const { offers, failure } = refused([earliest], { request: carried, typed: line });
      expect(offers[0]?.command).toBe(`slices-conn ${line.replace(at(9 * HOUR), at(13 * HOUR))}`);
      expect(failure.message).toBe(
        `50 TB can't be carried from ${iso(HOUR)} to ${iso(9 * HOUR)}: too little is free.`,
      );
    });
  });

  describe('of an update', () => {
    const update = { id: 'con_a_1', start: START, end: START + HOUR };

    test('a start that was not asked for is not offered', () => {
      const typed = 'update con_a_1 --for 8h';
      expect(commands([most, earliest, longest], { update, typed })).toEqual([
        'slices-conn update con_a_1 --for 8h --bandwidth 6G',
        'slices-conn update con_a_1 --for 2h',
      ]);
      expect(commands([earliest], { update, typed: `${typed} --start +2h` })).toEqual([
        `slices-conn update con_a_1 --for 8h --start ${at(5 * HOUR)}`,
      ]);
    });

    test('it is extended by less', () => {
      expect(commands([longest], { update, typed: 'update con_a_1 --extend 7h' })).toEqual([
        'slices-conn update con_a_1 --extend 1h',
      ]);
    });

    test('the id is added where it was chosen from a list', () => {
      const typed = 'update --bandwidth 9G --extend 7h';
      expect(commands([most], { update, typed })).toEqual([
        'slices-conn update --bandwidth 6G --extend 7h con_a_1',
      ]);
    });
  });
});

describe('a refusal', () => {
  test('has the alternatives in their order, each in words, and the first one’s command as the next step', () => {
    const { failure, offers } = refused([longest, most, earliest], { facts: { httpStatus: 422 } });
    expect(offers.map(({ kind, label }) => [kind, String(label)])).toEqual([
      ['most_bandwidth', '6 Gbps, same period'],
      ['earliest', `9 Gbps from ${iso(5 * HOUR)}`],
      ['longest', '9 Gbps for 2 h'],
    ]);
    expect(failure.facts).toMatchObject({ fix: offers[0]?.changes, httpStatus: 422 });
    expect(offerItem(offers[0] ?? never(), offers[0]?.command ?? '')).toEqual({
      kind: 'most_bandwidth',
      bandwidth: 6000,
      start_date: iso(HOUR),
      end_date: iso(9 * HOUR),
      start_now: false,
      command: offers[0]?.command,
    });
  });

  test('of a search says a share, but not the tightest part of its time', () => {
    const search = { request: { ...request, duration: HOUR }, code: 'share_exceeded' } as const;
    const share: Limit = { ...limit, limit: 'share' };
    const { message, facts } = refused([], { ...search, facts: { limits: [limit, share] } }).failure;
    expect(message).toBe(`There is no time for 9 Gbps for 1 h from ${iso(HOUR)} to ${iso(9 * HOUR)}.`);
    expect(String(facts.why)).toMatch(/^One project may have/);
  });

  test.each([
    ['bandwidth_unavailable', 'slices-conn availability be-gent1 pl-poznan1'],
    ['share_exceeded', 'slices-conn list'],
  ] as const)('%s without alternatives says where to look', (code, fix) => {
    const { facts } = refused([], { code, facts: { limits: [limit] } }).failure;
    expect([facts.fix, facts.why]).toEqual([fix, undefined]);
  });

  test('without alternatives and limits says what to change', () => {
    expect(refused([]).failure.facts.why).toBe(
      'The service offers nothing else. Ask for a shorter time, or for less.',
    );
  });

  test('of a past start advises to start now, unless the end was typed and has passed too', () => {
    const fixOf = (typed: string, end: number) => {
      const asked = { request: { ...request, start: NOW - HOUR, end }, typed, code: 'date_past' } as const;
      const { fix } = refused([], asked).failure.facts;
      return typeof fix === 'object' ? retyped(typedAs(typed), fix) : fix;
    };
    const [lasting, ending] = ['--for 3h', `--end ${at(2 * HOUR)}`].map((length) => `${length} --dry-run`);
    const passed = `${LINK} --start ${at(-HOUR)}`;
    expect(fixOf(`${passed} ${lasting}`, NOW - 1)).toBe(`slices-conn ${LINK} --start-now ${lasting}`);
    expect(fixOf(`${passed} ${ending}`, NOW + 1)).toBe(`slices-conn ${LINK} --start-now ${ending}`);
    expect(fixOf(`${passed} ${ending}`, NOW - 1)).toBeUndefined();
  });

  test('that is about something else stays as it is', () => {
    const facts = { why: 'no link', httpStatus: 422 };
    expect(refused([], { code: 'sites_not_connected', facts }).failure.facts).toEqual({
      ...facts,
      alternatives: [],
    });
  });

  test.each<[string, string, string, string]>([
    ['be-gent1', 'pl-poznan', 'be-gent1 pl-poznan1', 'pl-poznan1'],
    ['be-gent', 'pl-poznan1', 'be-gent1 pl-poznan1', 'be-gent1'],
    ['gent', 'poznan', 'be-gent1 pl-poznan1', 'be-gent1'],
  ])('of an unknown site among %s and %s has the command with %s', (site1, site2, sites, nearest) => {
    const typed = `reserve ${site1} ${site2} --bandwidth 1G`;
    const { facts, message } = refused([], {
      code: 'site_unknown',
      typed,
      request: { ...request, site1, site2 },
    }).failure;
    expect(message).toContain(`Did you mean ${nearest}?`);
    expect(facts.fix).toBe(`slices-conn reserve ${sites} --bandwidth 1G`);
  });

  test.each(['2026-12-01T10:00:00Z; touch pwned', '$(touch pwned)', '--save /etc/passwd', 'soon', ''])(
    'row 7: a service’s alternative at %j is not offered',
    (text) => {
      for (const member of ['start_date', 'end_date']) {
        const { failure, offers } = refused([{ ...most, [member]: text }]);
        expect([offers, failure.facts.alternatives]).toEqual([[], []]);
      }
    },
  );

  test('an error that is not a refusal stays unchanged', () => {
    const error = new TypeError('a defect');
    expect(refusalOf(error, { request, typed: typedAs([]), now: NOW })).toBe(error);
  });
});

test('on a screen each is one line where they fit; else the command is below, and goes on as a shell takes it', () => {
  const words = 'reserve a b --save PATH --idempotency-key "x" --for 2h'
    .split(' ')
    .with(4, "it's my\\ link  1.jwt");
  const command = ownCommand(...words);
  const offers = [
    { label: '6 Gbps, same period', command: 'slices-conn reserve a b --bandwidth 6G' },
    { label: '9 Gbps for 2 h', command },
  ];
  const whole = [
    '  1  6 Gbps, same period  slices-conn reserve a b --bandwidth 6G',
    `  2  9 Gbps for 2 h       ${command}`,
  ];
  for (const columns of [120, Number.POSITIVE_INFINITY])
    expect(offerLines(offers, columns, 'posix')).toEqual(whole);
  const [first, second, third, ...continued] = offerLines(offers, 50, 'posix');
  expect([first, second, third]).toEqual([
    '  1  6 Gbps, same period',
    '     slices-conn reserve a b --bandwidth 6G',
    '  2  9 Gbps for 2 h',
  ]);
  expect(continued.join('\n')).toContain(' \\\n         --');
  const script = continued.join('\n').replace('slices-conn', String.raw`printf '%s\n'`);
  expect(spawnSync('sh', ['-c', script], { encoding: 'utf8' }).stdout.split('\n')).toEqual([...words, '']);
});

function never(): never {
  throw new RangeError('no offer');
}
