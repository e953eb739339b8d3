import { Chalk } from 'chalk';
import Table from 'cli-table3';
import { describe, expect, test, vi } from 'vitest';
import {
  type ColorChoice,
  Output,
  type OutputOptions,
  Printer,
  wantsColor,
} from '../../../src/cli/print/output.ts';
import type { Variables } from '../../../src/session/profiles/folders.ts';
import { recordedStream } from '../../fixtures/recorded-stream.ts';
import { IDS } from '../../fixtures/tokens.ts';

const ESC = '\u001b';

/** A printed result, on a terminal with these columns or, without columns, on another stream. */
async function rendered(
  render: (print: Printer) => string,
  { columns, color = false }: { columns?: number | undefined; color?: boolean } = {},
): Promise<string> {
  const stdout = recordedStream(columns);
  const output = open({ stdout, color });
  await output.result({}, render);
  return stdout.text;
}

function open(changes: Partial<OutputOptions> = {}): Output {
  return new Output({
    stdout: recordedStream(),
    stderr: recordedStream(),
    json: false,
    quiet: false,
    color: false,
    ...changes,
  });
}

describe('a card', () => {
  const card = (print: Printer) =>
    print.card(`Reserved ${print.paint.bold('x')}`, [
      ['id', IDS.reservation],
      ['experiment', 'demo'],
    ]);

  test('is a title and its lines, the labels in one column, on a narrow terminal too', async () => {
    const text = `Reserved x\n  id          ${IDS.reservation}\n  experiment  demo\n`;
    for (const columns of [undefined, 20]) expect(await rendered(card, { columns })).toBe(text);
  });

  test('row 7: shows control characters in labels and values as their codes', async () => {
    const text = await rendered((print) => print.card('t', [[`l${ESC}`, `v${ESC}[2J\u202e\n`]]));
    expect(text).toBe('t\n  l\\u001b  v\\u001b[2J\\u202e\\u000a\n');
  });
});

describe('a table', () => {
  const head = ['id', 'state', 'link'];
  const rows = [
    [IDS.reservation, 'scheduled', 'be-gent1 – pl-poznan1'],
    ['con_conn.example.org_1', 'active', 'fr-lille – fr-slices'],
  ];
  const table = (print: Printer) => print.table(head, rows);

  test.each([200, 83, 80, 72, 70, 40, 10])(
    'on a terminal of %i columns ids stay whole and the rest is cut',
    async (columns) => {
      const lines = (await rendered(table, { columns })).trimEnd().split('\n');
      expect(lines).toHaveLength(3);
      expect(lines[1]).toMatch(new RegExp(`^${IDS.reservation}  sch`));
      expect(lines[2]).toMatch(/^con_conn\.example\.org_1 +act/);
      // The id and eight characters for each other column always fit in.
      const least = IDS.reservation.length + 2 + 8 + 2 + 8;
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(Math.max(columns, least));
      if (columns < 80) expect(lines[1]).toContain('…');
      if (columns > 83) expect(`${lines.join('\n')}\n`).toBe(await rendered(table));
    },
  );

  test('of up to 500 rows comes from cli-table3, and a longer one looks the same', () => {
    const table = vi.fn<typeof Table>(Table);
    const print = new Printer(new Chalk({ level: 1 }), recordedStream(200), { table });
    const of = (count: number) =>
      print.table(head, Array(count).fill(rows[0]), (text) => print.paint.bold(text)).split('\n', 500);
    const short = of(500);
    expect(table).toHaveBeenCalledOnce();
    expect(of(501)).toEqual(short);
    expect(table).toHaveBeenCalledOnce();
  });

  test.each(['x'.repeat(500), '日本語の実験', '🚀🚀🚀', 'e\u0301e\u0301'])(
    'is never cut when the stream is not a terminal: %s',
    async (text) => {
      expect(await rendered((print) => print.table(['id', 'text'], [['1', text]]))).toContain(text);
    },
  );

  test('row 7: shows control characters as their codes', async () => {
    const text = await rendered((print) => print.table(['a'], [[`${ESC}[2J\u009b\u202e\n`]]));
    expect(text).toBe('A\n\\u001b[2J\\u009b\\u202e\\u000a\n');
  });
});

describe('colour', () => {
  const print = (print: Printer) => print.paint.green('done') + print.table(['a'], [['b']]);

  test.each([undefined, 80])('off: there are no escape sequences, columns %s', async (columns) => {
    expect(await rendered(print, { columns })).not.toContain(ESC);
  });

  test('on: the same text, coloured', async () => {
    const colored = await rendered(print, { color: true });
    expect(colored).toContain(`${ESC}[32mdone`);
    expect(colored.replaceAll(/\u001b\[\d+m/g, '')).toBe(await rendered(print));
  });
});

describe('the stream that a text is printed on', () => {
  test.each([false, true])('results on stdout, notices on stderr, but with --quiet: %s', async (quiet) => {
    const [stdout, stderr] = [recordedStream(), recordedStream()];
    const output = open({ stdout, stderr, quiet });
    output.notice('notice');
    await output.result({}, () => 'result\n');
    output.text({}, 'text');
    expect([stdout.text, stderr.text]).toEqual(['result\ntext\n', quiet ? '' : 'notice\n']);
  });

  test('row 7: a notice is one line, escaped', () => {
    const stderr = recordedStream();
    open({ stderr }).notice(`Using ${ESC}]0;x\u0007\nerror: forged`);
    expect(stderr.text).toBe('Using \\u001b]0;x\\u0007\\u000aerror: forged\n');
  });

  test('--json prints the object, whole, and nothing for people', async () => {
    const value = { token: 'eyJ', nothing: null, list: [1] };
    for (const show of [
      (output: Output) => output.result(value, () => 'for people'),
      async (output: Output) => output.text(value, 'for people'),
    ]) {
      const stdout = recordedStream();
      await show(open({ stdout, json: true }));
      expect(stdout.text).toMatch(/\n$/);
      expect(JSON.parse(stdout.text)).toEqual(value);
    }
  });

  test('row 7: --json holds no control characters, and its text is unchanged when parsed', async () => {
    const value = { name: `a${ESC}b\u009bc\u202ed\u200be\u2066f\u007fg` };
    const stdout = recordedStream(80);
    await open({ stdout, json: true }).result(value, () => '');
    expect(stdout.text).not.toMatch(
      /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/,
    );
    expect(JSON.parse(stdout.text)).toEqual(value);
  });
});

/** Variables, and whether a stream has colours under `--color auto`: on a terminal, and elsewhere. */
const ENVIRONMENTS: [Variables, onTerminal: boolean, elsewhere: boolean][] = [
  [{}, true, false],
  [{ TERM: 'xterm-256color' }, true, false],
  [{ TERM: 'dumb' }, false, false],
  [{ NO_COLOR: '1' }, false, false],
  [{ NO_COLOR: '0' }, false, false],
  [{ NO_COLOR: '' }, true, false],
  [{ FORCE_COLOR: '1' }, true, true],
  [{ FORCE_COLOR: '' }, true, true],
  [{ FORCE_COLOR: '0' }, false, false],
  [{ CLICOLOR_FORCE: '1' }, true, true],
  [{ CLICOLOR_FORCE: '0' }, true, false],
  [{ CLICOLOR_FORCE: '1', FORCE_COLOR: '0' }, false, false],
  [{ FORCE_COLOR: '1', TERM: 'dumb' }, true, true],
  [{ NO_COLOR: '1', FORCE_COLOR: '1' }, false, false],
  [{ NO_COLOR: '', FORCE_COLOR: '1' }, true, true],
];

describe.each(ENVIRONMENTS)('the colours of a stream with %j', (env, onTerminal, elsewhere) => {
  test.each<[ColorChoice, boolean, boolean]>([
    ['auto', true, onTerminal],
    ['auto', false, elsewhere],
    ['always', true, true],
    ['always', false, true],
    ['never', true, false],
    ['never', false, false],
  ])('--color %s, terminal %s: %s', (choice, isTerminal, expected) => {
    expect(wantsColor(choice, env, isTerminal)).toBe(expected);
  });
});
