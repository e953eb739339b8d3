import { Failure } from './failure.ts';

/**
 * A token or code that nobody may read by accident: printed, logged, put into JSON or into a message, it shows as
 * `[secret]` (CLI.md, "Output"; HOSTILE.md 11). What must be sent or kept says so by {@link Secret.reveal}.
 */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** The text itself: for a request, for a private file, or because a person asked for exactly this. */
  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }

  /** What Node's inspection of objects, and so its printing of them, shows. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]';
  }
}

/** A token's text, as it is or kept from being printed. */
export type TokenText = string | Secret;

/**
 * A token as the clients take it: its text, or a function that gives it. The function is asked for each request, so
 * that a token can be replaced before it expires. White space around the text is dropped.
 */
export type TokenInput = TokenText | (() => TokenText | Promise<TokenText>);

/** The token that is meant. @throws Failure `usage` for anything else than a {@link TokenInput} */
export async function readTokenInput(input: TokenInput): Promise<Secret> {
  const given: unknown = typeof input === 'function' ? await input() : input;
  if (given instanceof Secret) return given;
  if (typeof given === 'string') return new Secret(given.trim());
  throw new Failure(
    'usage',
    `A token must be a text, or a function that gives one; this is ${typeof given}.`,
  );
}

/** The shortest text that is taken for a secret when it is looked for in another, in characters. */
const SHORTEST_SECRET = 6;

/**
 * A text from elsewhere without the secrets that may stand in it: as they are, percent-encoded, or with the slashes
 * escaped as some write JSON. What is shorter than {@link SHORTEST_SECRET} would be found in half of all words, and is
 * no token that anyone gives out.
 */
export function withoutSecrets(text: string, secrets: readonly Secret[]): string {
  const spellings = secrets
    .map((secret) => secret.reveal())
    .filter((secret) => secret.length >= SHORTEST_SECRET)
    .flatMap((secret) => [
      secret,
      encodeURIComponent(secret),
      String(new URLSearchParams([['', secret]])).slice(1),
      secret.replaceAll('/', '\\/'),
    ]);
  return spellings.reduce((rest, spelling) => rest.replaceAll(spelling, '[secret]'), text);
}
