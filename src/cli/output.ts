import type { ChalkInstance } from 'chalk';
import { escapeText, jsonText } from './terminal-text.ts';

/** A stream to print on. */
export interface TextStream {
  write(text: string): void;
  isTerminal: boolean;
  /** Columns of the terminal; undefined where there is none. */
  columns: number | undefined;
}

/** How a command's results and notices reach people and programs. */
export interface OutputOptions {
  stdout: TextStream;
  stderr: TextStream;
  json: boolean;
  /** Silences notices; never results or errors. */
  quiet: boolean;
  /** Whether each stream is coloured. */
  color: { stdout: boolean; stderr: boolean };
}

/** A line of a card: a label and what stands beside it. */
export type CardLine = readonly [label: string, value: string];

/** Prints results on stdout and notices on stderr (CLI.md, "Output"). */
export class Output {
  readonly #options: OutputOptions;

  constructor(options: OutputOptions) {
    this.#options = options;
  }

  /** Whether results are printed as JSON. */
  get json(): boolean {
    return this.#options.json;
  }

  /** Something to know that is no result. Escaped here. */
  notice(text: string): void {
    if (!this.#options.quiet) this.#options.stderr.write(`${escapeText(text)}\n`);
  }

  /** What a person must see to go on, such as a code to enter: not silenced by `--quiet`. Escaped here. */
  prompt(text: string): void {
    this.#options.stderr.write(`${escapeText(text)}\n`);
  }

  /** A result: the object as JSON, or what `render` makes of it; it may be asked twice, and must not change anything. */
  async result(value: object, render: (print: Printer) => string): Promise<void> {
    const { stdout, json } = this.#options;
    stdout.write(json ? `${jsonText(value)}\n` : await this.#rendered(render));
  }

  /** A result that is one plain text, such as a token; the object with `--json`. */
  text(value: object, text: string): void {
    this.#options.stdout.write(this.#options.json ? `${jsonText(value)}\n` : `${text}\n`);
  }

  /** With what most results need; what only a few need, and takes long to load, is loaded when it is missed. */
  async #rendered(render: (print: Printer) => string): Promise<string> {
    const { Chalk } = await import('chalk');
    const { stdout, color } = this.#options;
    const paint = new Chalk({ level: color.stdout ? 1 : 0 });
    try {
      return render(new Printer(paint, stdout));
    } catch (error) {
      if (!(error instanceof LayoutMissing)) throw error;
      const [{ default: table }, { default: width }] = await Promise.all([
        import('cli-table3'),
        import('string-width'),
      ]);
      return render(new Printer(paint, stdout, { table, width }));
    }
  }
}

/** What lays out tables, and tells how wide a text of any script is. */
interface Layout {
  table: typeof import('cli-table3');
  width: (text: string) => number;
}

/** Thrown by a printer that was made without a layout and needs one. */
class LayoutMissing extends Error {
  override readonly name = 'LayoutMissing';
}

/** Texts whose characters all take one column: Latin letters, and the dashes, quotes and dots of this program. */
const SINGLE_WIDTH = /^[ -~\u00a1-\u00ac\u00ae-\u017f\u2010-\u2027]*$/;

/** Lays out cards and tables; escapes every value that it is given. */
export class Printer {
  /** Colours, which come to nothing where the stream takes none. */
  readonly paint: ChalkInstance;
  readonly #stream: TextStream;
  readonly #layout: Layout | undefined;

  constructor(paint: ChalkInstance, stream: TextStream, layout?: Layout) {
    this.paint = paint;
    this.#stream = stream;
    this.#layout = layout;
  }

  #needed(): Layout {
    if (this.#layout) return this.#layout;
    throw new LayoutMissing();
  }

  #width(text: string): number {
    return SINGLE_WIDTH.test(text) ? text.length : this.#needed().width(text);
  }

  /** A title and labelled lines below it, the labels in one column. */
  card(title: string, lines: readonly CardLine[]): string {
    const width = Math.max(...lines.map(([label]) => this.#width(escapeText(label))));
    const body = lines.map(([label, value]) => {
      return `  ${this.paint.dim(this.#padded(escapeText(label), width))}  ${escapeText(value)}\n`;
    });
    return `${title}\n${body.join('')}`;
  }

  #padded(text: string, width: number): string {
    return text + ' '.repeat(Math.max(0, width - this.#width(text)));
  }

  /** Rows below a head; on a terminal what is too wide is cut, except in the first column. */
  table(head: readonly string[], rows: readonly (readonly string[])[]): string {
    const { table: Table } = this.#needed();
    const cells = rows.map((row) => row.map(escapeText));
    const none = Object.fromEntries(
      [
        'top',
        'top-mid',
        'top-left',
        'top-right',
        'bottom',
        'bottom-mid',
        'bottom-left',
        'bottom-right',
        'left',
        'left-mid',
        'mid',
        'mid-mid',
        'right',
        'right-mid',
      ].map((name) => [name, '']),
    );
    const table = new Table({
      head: head.map((name) => this.paint.dim(name.toUpperCase())),
      chars: { ...none, middle: '  ' },
      style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
      colWidths: this.#widths(head, cells),
    });
    table.push(...cells.map((row) => [...row]));
    const lines = table.toString().split('\n');
    return `${lines.map((line) => line.trimEnd()).join('\n')}\n`;
  }

  /** Widths that fit the terminal: the widest columns after the first give way, down to eight characters. */
  #widths(head: readonly string[], rows: readonly (readonly string[])[]): number[] {
    const widths = head.map((name, column) =>
      Math.max(name.length, ...rows.map((row) => this.#width(row[column] ?? ''))),
    );
    const { columns, isTerminal } = this.#stream;
    if (!isTerminal || columns === undefined) return widths;
    const room = columns - 2 * (widths.length - 1);
    for (;;) {
      const total = widths.reduce((sum, width) => sum + width, 0);
      const widest = Math.max(8, ...widths.slice(1));
      if (total <= room || widest === 8) return widths;
      widths[widths.lastIndexOf(widest)] = widest - 1;
    }
  }
}
