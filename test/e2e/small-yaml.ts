/** What a block of YAML holds. Scalars stay the text that they are. */
export type Yaml = string | readonly Yaml[] | { readonly [key: string]: Yaml };

const KEY = /^([\w-]+):(?: (.+))?$/;

/**
 * Reads the part of YAML that the README's jobs are written in: mappings, lists, plain scalars and `|` blocks.
 *
 * @throws Error for anything else, rather than guessing what it means
 */
export function readYaml(text: string): Yaml {
  const reader = new Reader(text.split('\n'));
  const value = reader.value(0);
  reader.end();
  return value;
}

class Reader {
  readonly #lines: string[];
  #at = 0;

  constructor(lines: readonly string[]) {
    this.#lines = [...lines];
  }

  /** The value that begins on the next line, which must stand exactly this far in. */
  value(indent: number): Yaml {
    const text = this.#lineAt(indent);
    if (text === undefined) throw this.#unknown();
    return text.startsWith('- ') ? this.#list(indent) : this.#mapping(indent);
  }

  end(): void {
    if (this.#next() !== undefined) throw this.#unknown();
  }

  #list(indent: number): Yaml[] {
    const items: Yaml[] = [];
    for (let text = this.#lineAt(indent); text?.startsWith('- '); text = this.#lineAt(indent)) {
      const item = text.slice(2);
      if (KEY.test(item)) {
        this.#lines[this.#at] = ' '.repeat(indent + 2) + item;
        items.push(this.#mapping(indent + 2));
      } else {
        this.#at += 1;
        items.push(this.#scalar(item, indent));
      }
    }
    return items;
  }

  #mapping(indent: number): Yaml {
    const entries = new Map<string, Yaml>();
    for (let text = this.#lineAt(indent); text !== undefined; text = this.#lineAt(indent)) {
      const [, key, rest] = KEY.exec(text) ?? [];
      if (key === undefined || entries.has(key)) throw this.#unknown();
      this.#at += 1;
      entries.set(key, rest === undefined ? this.value(indent + 2) : this.#scalar(rest, indent));
    }
    return Object.fromEntries(entries);
  }

  #scalar(text: string, indent: number): string {
    if (text === '|') return this.#block(indent);
    if (/^[^\w./$]|: | #|\s$|:$/.test(text)) throw this.#unknown(this.#at - 1);
    return text;
  }

  /** A `|` block: its lines as they are, without what they are all set in. */
  #block(indent: number): string {
    const lines: string[] = [];
    const inner = this.#next()?.indent ?? 0;
    if (inner <= indent) throw this.#unknown();
    for (let line = this.#lines[this.#at]; line !== undefined; line = this.#lines[this.#at]) {
      if (line.trim() !== '' && !line.startsWith(' '.repeat(inner))) break;
      lines.push(line.slice(inner));
      this.#at += 1;
    }
    return `${lines.join('\n').trimEnd()}\n`;
  }

  /** The text of the next line, if it stands exactly this far in. */
  #lineAt(indent: number): string | undefined {
    const next = this.#next();
    if (next !== undefined && next.indent > indent) throw this.#unknown();
    return next?.indent === indent ? next.text : undefined;
  }

  #next(): { indent: number; text: string } | undefined {
    while (this.#lines[this.#at]?.trim() === '') this.#at += 1;
    const line = this.#lines[this.#at];
    if (line === undefined) return undefined;
    const text = line.trimStart();
    return { indent: line.length - text.length, text };
  }

  #unknown(at = this.#at): Error {
    return new Error(`no YAML that is read here: ${this.#lines[at] ?? 'the end'}`);
  }
}
