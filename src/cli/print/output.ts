import type { ChalkInstance } from 'chalk';
import { withoutTokens } from '../../contract/secret.ts';
import { characterCode, escapeText, jsonText } from '../../contract/visible-text.ts';
import type { Variables } from '../../session/profiles/folders.ts';
import { asStarted, BY_NAME, printedMember, type Started } from './as-started.ts';
import { continued, folded } from './folded.ts';
import type { AdviceShell } from './shells.ts';

export { escapeText, jsonText } from '../../contract/visible-text.ts';

/** A stream to print on. */
export interface TextStream {
  write(text: string): void;
  isTerminal: boolean;
  /** Columns of the terminal; undefined without a terminal. */
  columns: number | undefined;
}

/** The streams and format of a command's output. */
export interface OutputOptions {
  stdout: TextStream;
  stderr: TextStream;
  json: boolean;
  /** Silences notices; never results or errors. */
  quiet: boolean;
  /** Whether results are coloured. */
  color: boolean;
  /** Whether stdout is ASCII only, as under `TERM=dumb`. Default: false. */
  ascii?: boolean;
  /** How the program is typed in advice. Default: by its name, in a shell of Unix. */
  started?: Started;
  /** Shows what is waited for; see {@link Output.waitFor}. Default: nothing is shown. */
  waiting?: <Result>(what: string, work: () => Promise<Result>) => Promise<Result>;
}

/** The columns of a picture where there is no terminal. */
const COLUMNS_ELSEWHERE = 80;

/** A line of a card: a label and its value. */
export type CardLine = readonly [label: string, value: string];

/** A result of any length, printed portion by portion. */
interface Portions<Item> {
  take(portion: readonly Item[]): Promise<void>;
  /**
   * Ends it.
   *
   * @param rest further members of the JSON object
   * @param none the text for people when there was no item
   */
  end(rest: object, none: string): void;
}

/** Prints results on stdout and notices on stderr (cli/README.md, "Output"). */
export class Output {
  readonly #options: OutputOptions & { started: Started };

  constructor(options: OutputOptions) {
    this.#options = { started: BY_NAME, ...options };
  }

  /** Whether results are printed as JSON. */
  get json(): boolean {
    return this.#options.json;
  }

  /** Whether stderr is a terminal, where a person reads. */
  get isForPerson(): boolean {
    return this.#options.stderr.isTerminal;
  }

  /** Whether stdout is a terminal, where a person sees the result. */
  get isSeen(): boolean {
    return this.#options.stdout.isTerminal;
  }

  /** The shell that advice is typed in. */
  get shell(): AdviceShell {
    return this.#options.started.shell;
  }

  /** The columns that a picture on stdout may have: the terminal's; 80 without a terminal. */
  get columns(): number {
    const { isTerminal, columns } = this.#options.stdout;
    return (isTerminal && columns) || COLUMNS_ELSEWHERE;
  }

  /**
   * Prints a notice on stderr, unless `--quiet`. Escaped here. A terminal that is too narrow gets it in lines
   * broken between words, unless there is a command in it to be pasted.
   */
  notice(text: string): void {
    const { stderr, quiet, started } = this.#options;
    if (quiet) return;
    const line = escapeText(asStarted(started, withoutTokens(text)));
    const columns = (stderr.isTerminal && stderr.columns) || Number.POSITIVE_INFINITY;
    const isWhole = line.length <= columns || line.includes('slices-conn ');
    stderr.write(`${isWhole ? line : folded(line, columns).join('\n')}\n`);
  }

  /** Prints on stderr, with `--quiet` too, something that a person needs, such as a code. Escaped here. */
  prompt(text: string): void {
    const { stderr, started } = this.#options;
    stderr.write(`${escapeText(asStarted(started, text))}\n`);
  }

  /** Prints on stderr, with `--quiet` too, a command of this program, over several lines where it is too long. Escaped here. */
  command(command: string): void {
    const lines = continued(`  ${this.advised(command)}`, this.columns, this.shell);
    this.#options.stderr.write(`${escapeLines(lines)}\n`);
  }

  /** A command of this program as it is to be typed here, for the same services; for results, which are printed as they are. */
  advised(command: string): string {
    return asStarted(this.#options.started, command);
  }

  /** Does some work; a terminal shows `Waiting for WHAT` when it takes long. */
  waitFor<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    return this.#options.waiting?.(what, work) ?? work();
  }

  /** Prints on stderr a picture for a person, beside a question. */
  async show(render: (print: Printer) => string): Promise<void> {
    this.#options.stderr.write(await this.#rendered(render));
  }

  /**
   * Prints a result: the object as JSON, or the text of `render`. Tokens are masked unless the result has
   * `claims`: in other results, a token was typed in the wrong place (THREATS.md 54).
   */
  async result(value: object, render: (print: Printer) => string): Promise<void> {
    const { json, started } = this.#options;
    const mask = 'claims' in value ? (text: string) => text : withoutTokens;
    const object = (): string => `${jsonText(value, printedMember(started, mask))}\n`;
    this.#write(json ? object() : mask(await this.#rendered(render)));
  }

  /** Prints a result of any length: a JSON object with `items`, or the text of `render` for each portion. */
  portions<Item extends object>(
    render: (print: Printer, portion: readonly Item[]) => string,
  ): Portions<Item> {
    const { json } = this.#options;
    let begun = false;
    const begin = (): string => (begun ? ',' : '{"items":[');
    return {
      take: async (portion) => {
        if (portion.length === 0) return;
        const items = portion.map((item) => jsonText(item)).join(',');
        this.#write(json ? begin() + items : await this.#rendered((print) => render(print, portion)));
        begun = true;
      },
      end: (rest, none) => {
        const more = Object.entries(rest).map(([name, value]) => `,${jsonText(name)}:${jsonText(value)}`);
        if (json) this.#write(`${begun ? '' : begin()}]${more.join('')}}\n`);
        else if (!begun) this.#write(`${escapeText(none)}\n`);
      },
    };
  }

  /** Prints a result that is one text, such as a token; the object with `--json`. */
  text(value: object, text: string): void {
    this.#write(this.#options.json ? `${jsonText(value)}\n` : `${text}\n`);
  }

  #write(text: string): void {
    const { stdout, json, ascii } = this.#options;
    // In JSON an escape keeps the value.
    stdout.write(ascii ? asciiText(text, { spelled: !json }) : text);
  }

  async #rendered(render: (print: Printer) => string): Promise<string> {
    const { stdout, color, ascii } = this.#options;
    // Not loaded for --json. Tables are cut to a terminal's width, so the package for them is loaded only there.
    const [{ Chalk }, table] = await Promise.all([
      import('chalk'),
      stdout.isTerminal ? import('cli-table3') : undefined,
    ]);
    return render(new Printer(new Chalk({ level: color ? 1 : 0 }), stdout, { ascii, table: table?.default }));
  }
}

/** Lays out cards and tables; escapes every value that it is given. */
export class Printer {
  /** Colours; without effect where the stream is not coloured. */
  readonly paint: ChalkInstance;
  /** Whether pictures are drawn in ASCII; see {@link OutputOptions}. Other text is made ASCII afterwards. */
  readonly ascii: boolean;
  readonly #stream: TextStream;

  readonly #table: typeof import('cli-table3') | undefined;

  /** @param options `table`: lays out tables; without it none is cut */
  constructor(
    paint: ChalkInstance,
    stream: TextStream,
    { ascii = false, table }: { ascii?: boolean; table?: typeof import('cli-table3') } = {},
  ) {
    this.paint = paint;
    this.ascii = ascii;
    this.#stream = stream;
    this.#table = table;
  }

  /** A title and labelled lines below it, the labels in one column. */
  card(title: string, lines: readonly CardLine[]): string {
    const labels = lines.map(([label]) => escapeText(label));
    const width = Math.max(...labels.map(textWidth));
    const room = (this.columns ?? Number.POSITIVE_INFINITY) - width - 4;
    const body = lines.map(([, value], at) => {
      const shown = valueLines(escapeText(value), room).join(`\n${' '.repeat(width + 4)}`);
      return `  ${this.paint.dim(padded(labels[at] ?? '', width))}  ${shown}\n`;
    });
    return `${title}\n${body.join('')}`;
  }

  /** Whether the text goes to a terminal. */
  get isTerminal(): boolean {
    return this.#stream.isTerminal;
  }

  /** Columns of the terminal; undefined without a terminal. */
  get columns(): number | undefined {
    return this.#stream.isTerminal ? this.#stream.columns : undefined;
  }

  /**
   * Makes rows below a head. On a terminal, wide columns of up to {@link MOST_LAID_OUT} rows are cut, except the first.
   *
   * @param style colours a cell; its text is escaped already
   */
  table(
    head: readonly string[],
    rows: readonly (readonly string[])[],
    style: (text: string, column: number, row: number) => string = (text) => text,
  ): string {
    const cells = rows.map((row) => row.map(escapeText));
    // A zone in parentheses keeps its case.
    const names = head.map((name) => this.paint.dim(name.replace(/^[^(]+/, (text) => text.toUpperCase())));
    const styled = cells.map((row, at) => row.map((cell, column) => style(cell, column, at)));
    const widths = fullWidths(head, cells);
    if (this.#table && rows.length <= MOST_LAID_OUT) {
      const colWidths = this.fits(head, rows) ? [] : this.#widths(widths);
      const table = new this.#table({
        ...{ head: names, colWidths, chars: NO_LINES, style: NO_STYLE },
        // Of one column in ASCII too.
        truncate: this.ascii ? '~' : '…',
      });
      table.push(...styled);
      return withoutEnds(table.toString().split('\n'));
    }
    return withoutEnds([
      names.map((name, column) => padded(name, widths[column] ?? 0, head[column])).join('  '),
      ...styled.map((row, at) =>
        row.map((cell, column) => padded(cell, widths[column] ?? 0, cells[at]?.[column])).join('  '),
      ),
    ]);
  }

  /** A table, or where it does not fit, a card for each row with the first cell as its title. */
  tableOrCards(head: readonly string[], rows: readonly (readonly string[])[]): string {
    if (this.fits(head, rows)) return this.table(head, rows);
    const cards = rows.map(([title = '', ...cells]) =>
      this.card(
        escapeText(title),
        cells.map((cell, at) => [head[at + 1] ?? '', cell]),
      ),
    );
    return cards.join('');
  }

  /** Whether a table fits without cuts; without a terminal it always does. */
  fits(head: readonly string[], rows: readonly (readonly string[])[]): boolean {
    const cells = rows.map((row) => row.map(escapeText));
    const total = fullWidths(head, cells).reduce((sum, width) => sum + width + 2, -2);
    return this.columns === undefined || total <= this.columns;
  }

  /** Widths that fit the terminal: the widest columns after the first give way, down to eight characters. */
  #widths(full: readonly number[]): number[] {
    const widths = [...full];
    if (this.columns === undefined) return widths;
    const room = this.columns - 2 * (widths.length - 1);
    for (;;) {
      const total = widths.reduce((sum, width) => sum + width, 0);
      const widest = Math.max(8, ...widths.slice(1));
      if (total <= room || widest === 8) return widths;
      widths[widths.lastIndexOf(widest)] = widest - 1;
    }
  }
}

/** A card's value in lines broken between words; a command stays whole, to be pasted. */
function valueLines(value: string, room: number): string[] {
  if (value.length <= room || room < LEAST_ROOM || /\bslices-conn /.test(value)) return [value];
  return folded(value, room);
}

/** The fewest columns beside a card's labels in which values are broken. */
const LEAST_ROOM = 20;

/** The most rows that cli-table3 lays out: of thousands it takes seconds. */
const MOST_LAID_OUT = 500;

/** A table without lines around it and its cells. */
const NO_LINES = {
  ...{ top: '', 'top-mid': '', 'top-left': '', 'top-right': '' },
  ...{ bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '' },
  ...{ left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '', middle: '  ' },
};
const NO_STYLE = { head: [], border: [], 'padding-left': 0, 'padding-right': 0 };

/** Lines without the spaces at their ends. */
function withoutEnds(lines: readonly string[]): string {
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
}

function fullWidths(head: readonly string[], rows: readonly (readonly string[])[]): number[] {
  return head.map((name, column) =>
    rows.reduce((widest, row) => Math.max(widest, textWidth(row[column] ?? '')), name.length),
  );
}

/** Texts whose characters take one column each: Latin letters, and this program's dashes, quotes and dots. */
const SINGLE_WIDTH = /^[ -~\u00a1-\u00ac\u00ae-\u017f\u2010-\u2027]*$/;
/** Marks that take no column of their own. */
const MARK = /[\p{Mn}\p{Me}]/gu;
/** Characters that take two columns: East Asian scripts, except their half-width forms, and pictures. */
const WIDE =
  /(?![\uff61-\uffdc])[\p{sc=Han}\p{sc=Hangul}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Bopomofo}\p{sc=Yi}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6\p{Emoji_Presentation}]/gu;

/** The columns that an escaped text takes on a terminal. */
function textWidth(text: string): number {
  if (SINGLE_WIDTH.test(text)) return text.length;
  const shown = text.replace(MARK, '');
  return [...shown].length + (shown.match(WIDE)?.length ?? 0);
}

/** @param plain the text without colours */
function padded(text: string, width: number, plain = text): string {
  return text + ' '.repeat(Math.max(0, width - textWidth(plain)));
}

/** How characters that this program prints are written in ASCII. */
const SPELLED: Readonly<Record<string, string>> = {
  ...{ '–': '-', '—': '-', '…': '...', '→': '->', '←': '<-', '·': '.', '•': '*', '×': 'x', '✗': 'x' },
  ...{ '‘': "'", '’': "'", '“': '"', '”': '"', '\u00a0': ' ' },
};

/**
 * Text in ASCII, for `TERM=dumb` (cli/README.md, "Environment"): other characters become their UTF-16 code,
 * as in JSON.
 *
 * @param spelled writes dashes, dots, quotes and arrows with ASCII characters instead
 */
export function asciiText(text: string, { spelled }: { spelled: boolean }): string {
  return text.replace(/[^\x00-\x7f]/g, (found) => (spelled && SPELLED[found]) || characterCode(found, 0));
}

/** A value of JSON for people: a text as it is, anything else as JSON. */
export function valueText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** {@link escapeText} for several lines; line ends stay. */
export function escapeLines(text: string): string {
  return text.split('\n').map(escapeText).join('\n');
}

/** The values of `--color`. */
export const COLOR_CHOICES = ['auto', 'always', 'never'] as const;
/** One of {@link COLOR_CHOICES}. */
export type ColorChoice = (typeof COLOR_CHOICES)[number];

/**
 * Whether to colour a stream: the flag, else `NO_COLOR`, else `FORCE_COLOR` and `CLICOLOR_FORCE`, else a
 * terminal that is not dumb (cli/README.md, "Environment").
 *
 * @param isTerminal whether stdout is a terminal
 */
export function wantsColor(choice: ColorChoice = 'auto', env: Variables, isTerminal: boolean): boolean {
  if (choice !== 'auto') return choice === 'always';
  if (env['NO_COLOR']) return false;
  const { FORCE_COLOR: force, CLICOLOR_FORCE: cliForce, TERM: term } = env;
  if (force !== undefined) return force !== '0' && force !== 'false';
  if (cliForce !== undefined && cliForce !== '0') return true;
  return isTerminal && term !== 'dumb';
}
