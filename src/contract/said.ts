import { formatInstant } from './instants.ts';

/** How a surface writes times: the server in UTC, the command line and the page in the person's zone. */
export interface Times {
  /** @param at milliseconds */
  instant(at: number): string;
  /** Both ends of a period, as they stand in "from … to …". Milliseconds. */
  ends(start: number, end: number): readonly [start: string, end: string];
}

/** Times as the services write them: ISO 8601 in UTC, with milliseconds. */
export const UTC_TIMES: Times = {
  instant: formatInstant,
  ends: (start, end) => [formatInstant(start), formatInstant(end)],
};

/** A text that names times. They are written when it is shown; as a string it has them in UTC. */
export class Sentence {
  readonly #text: (times: Times) => string;

  constructor(text: (times: Times) => string) {
    this.#text = text;
  }

  /** The text for one surface. */
  in(times: Times): string {
    return this.#text(times);
  }

  toString(): string {
    return this.#text(UTC_TIMES);
  }

  toJSON(): string {
    return this.toString();
  }
}

/** A text for people. */
export type Said = string | Sentence;

/** A text with its times as a surface writes them. */
export function inTimes(said: Said, times: Times): string {
  return typeof said === 'string' ? said : said.in(times);
}

/** Sentences one after the other; undefined where there is none. Those that are undefined or empty are left out. */
export function inOneText(...parts: readonly (Said | undefined)[]): Said | undefined {
  const said = parts.filter((part): part is Said => part !== undefined && part !== '');
  if (said.length === 0) return undefined;
  if (said.every((part) => typeof part === 'string')) return said.join(' ');
  return new Sentence((times) => said.map((part) => inTimes(part, times)).join(' '));
}

/** An instant in a text. @param at milliseconds */
export function instant(at: number): Sentence {
  return new Sentence((times) => times.instant(at));
}

/** A text with parts that may name times. @example sentence`It ended at ${instant(end)}.` */
export function sentence(strings: TemplateStringsArray, ...parts: readonly Said[]): Sentence {
  return new Sentence((times) =>
    strings.reduce((text, next, at) => `${text}${inTimes(parts[at - 1] ?? '', times)}${next}`),
  );
}
