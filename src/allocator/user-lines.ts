/** Who asks a question, and until when the answer is wanted. */
export interface AskedBy {
  /** Of one user's questions that take longer than a turn of the event loop, one goes on at a time. */
  user: string;
  /** Its signal is aborted when it has gone: then the question is given up. Read only of a question that takes long. */
  request: { readonly signal: AbortSignal };
}

/** The request of a question has gone, so its answer is of no use. */
export class AbandonedError extends Error {
  override readonly name = 'AbandonedError';
}

/** @throws AbandonedError where the request of a question has gone */
export function throwIfGone(askedBy: AskedBy | undefined): void {
  if (askedBy?.request.signal.aborted) throw new AbandonedError('the request has gone');
}

/** Lets one question of each user go on at a time; the others wait in a line of their own. */
export class UserLines {
  /** Those that wait, by user. A user has a line while a question of theirs goes on. */
  readonly #lines = new Map<string, (() => void)[]>();

  /**
   * Waits for a user's turn.
   *
   * @returns what ends it
   * @throws AbandonedError where the request goes meanwhile
   */
  async enter({ user, request: { signal } }: AskedBy): Promise<() => void> {
    const line = this.#lines.get(user);
    if (line) await waitIn(line, signal);
    else this.#lines.set(user, []);
    return () => {
      const next = this.#lines.get(user)?.shift();
      if (next) next();
      else this.#lines.delete(user);
    };
  }
}

function waitIn(line: (() => void)[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      line.splice(line.indexOf(begin), 1);
      reject(new AbandonedError('the request has gone'));
    };
    const begin = (): void => {
      signal.removeEventListener('abort', leave);
      resolve();
    };
    line.push(begin);
    signal.addEventListener('abort', leave, { once: true });
  });
}
