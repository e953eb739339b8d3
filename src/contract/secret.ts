import { idKind } from './fields.ts';

/**
 * A token or code that can't be shown by accident: printed, logged, put into JSON or into a message, it shows as
 * `[secret]` (cli/README.md, "Output"; THREATS.md 11). Code that sends or stores it calls {@link Secret.reveal}.
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

  /** A placeholder, so that no text has the secret. */
  toString(): string {
    return '[secret]';
  }

  /** A placeholder, so that no JSON has the secret. */
  toJSON(): string {
    return '[secret]';
  }

  /** What Node's inspection of objects, and so its printing of them, shows. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]';
  }
}

/**
 * Whether a text can be a token: printable ASCII (RFC 6749, Appendix A.12 and A.17). Other characters could make a terminal
 * show something else when the token is printed, and can't be sent in a header.
 */
export function isTokenText(text: string): boolean {
  return /^[\x20-\x7e]+$/.test(text);
}

/** A token as a person pasted it, without the white space, the quotes and the `Bearer` around it. */
export function pastedToken(text: string): string {
  return text.replace(/^(?:[\s"'`]|authorization:|bearer\s)+|[\s"'`]+$/gi, '');
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

/** What can be a part of a token, with the dots between the parts. Every run is read once: the text may be anything. */
const RUN = /\bthumbprint [\w-]{43}(?![\w.-])|[\w-]+(?:\.+[\w-]+)*/g;
/** The shortest text that is taken for a refresh token or the like, in characters: a UUID has no capitals. */
const SHORTEST_OPAQUE = 32;
/** How often the kind of character changes from one to the next: 6 of 10 times at random, 3 of 10 times in names. */
const LEAST_CHANGES = 0.4;

/**
 * A text without what looks like a token, wherever it stands: someone may type one where a path, a name, an id or an
 * address is due, and a message repeats what it is about (THREATS.md 54). Masked are JWTs, and long words in which
 * capitals, small letters and digits are mixed at random, as in refresh tokens. Ids of the services stay, and what
 * is said to be a thumbprint (RFC 7638), which is public.
 */
export function withoutTokens(text: string): string {
  return text.replace(RUN, (run) => {
    if (run.startsWith('thumbprint ')) return run;
    // Base64url of `{"`, as which nearly every header begins.
    const at = run.indexOf('eyJ');
    if (at !== -1 && run.length - at >= 8) return `${run.slice(0, at)}[secret]`;
    const parts = run.split('.');
    if (!parts.some(isRandom) || idKind(run) !== undefined) return run;
    return parts.map((part) => (isRandom(part) ? '[secret]' : part)).join('.');
  });
}

function isRandom(word: string): boolean {
  if (word.length < SHORTEST_OPAQUE) return false;
  const kinds = Array.from(word, kindOf);
  if (!['a', 'A', '0'].every((kind) => kinds.includes(kind))) return false;
  const pairs = kinds.slice(1).map((kind, index) => [kinds[index], kind]);
  const inside = pairs.filter((pair) => !pair.includes('-'));
  const changes = inside.filter(([before, after]) => before !== after);
  return changes.length >= inside.length * LEAST_CHANGES;
}

function kindOf(character: string): string {
  if (/[a-z]/.test(character)) return 'a';
  if (/[A-Z]/.test(character)) return 'A';
  return /\d/.test(character) ? '0' : '-';
}
