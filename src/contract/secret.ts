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
