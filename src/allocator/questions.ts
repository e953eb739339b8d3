import { MAX_SLICE_MS } from './event-loop.ts';
import { finish, type Steps } from './steps.ts';

/** Who asks a question, and until when the answer is wanted. */
export interface AskedBy {
  /** Of one user's questions that take longer than a slice, one goes on at a time. */
  user: string;
  /** Its signal is aborted when it has gone: then the question is given up. Read only of a question that takes long. */
  request: { readonly signal: AbortSignal };
}

/** A question ended without an answer: its request has gone, the server stops, or too many others go on. */
export class QuestionEndedError extends Error {
  override readonly name = 'QuestionEndedError';
}

/** How many questions that take longer than a slice there may be, with those that wait; and of one user. */
const MAX_QUESTIONS = 64;
const MAX_OF_USER = 32;
/** How long all slices of a question may take: 5 s, in milliseconds. */
const MAX_QUESTION_MS = 5000;

/**
 * Questions, answered in slices. All that begin in one turn of the event loop have one slice together; of those that take longer, each
 * turn has a slice of one, and one after the other goes on. So no long question keeps another one waiting until it is over (THREATS.md 81).
 */
export class Questions {
  /** Those that wait for a turn of the event loop. */
  readonly #waiting: (() => void)[] = [];
  #isTurnComing = false;
  /** When the first question of this turn began; undefined where there was none. */
  #began: number | undefined;
  /** Those that wait for the end of their user's question, by user. A user has a line while a question of theirs goes on. */
  readonly #lines = new Map<string, (() => void)[]>();
  #long = 0;
  #isStopped = false;
  readonly #most: number;

  /** @param most how long all slices of a question may take, in milliseconds */
  constructor(most = MAX_QUESTION_MS) {
    this.#most = most;
  }

  /** Ends all questions. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Answers a question.
   *
   * @throws QuestionEndedError
   * @throws TooMuchError where it takes too much, and does not end with what it has
   */
  async ask<Answer>(question: Steps<Answer>, askedBy: AskedBy | undefined): Promise<Answer> {
    let leave: (() => void) | undefined;
    const turn = async (): Promise<void> => {
      leave ??= await this.#enter(askedBy);
      await this.#turn();
      this.#throwIfOver(askedBy);
    };
    if (this.#isOver) await this.#turn();
    try {
      return await finish(question, { turn, most: this.#most });
    } finally {
      leave?.();
    }
  }

  /** Lets a question go on that takes long, after those of its user that came before. @returns what ends it */
  async #enter(askedBy: AskedBy | undefined): Promise<() => void> {
    const { user = '', request } = askedBy ?? {};
    const line = this.#lines.get(user);
    if (this.#long >= MAX_QUESTIONS || (line && line.length >= MAX_OF_USER)) {
      throw new QuestionEndedError('Too many long questions are asked at once.');
    }
    this.#long += 1;
    // Whoever leaves the line before its turn must not end the question that goes on.
    const isCalled = line && request ? await waitIn(line, request.signal) : true;
    if (!line) this.#lines.set(user, []);
    return () => {
      this.#long -= 1;
      if (!isCalled) return;
      const next = this.#lines.get(user)?.shift();
      if (next) next();
      else this.#lines.delete(user);
    };
  }

  #throwIfOver(askedBy: AskedBy | undefined): void {
    if (this.#isStopped) throw new QuestionEndedError('The server stops.');
    if (askedBy?.request.signal.aborted) throw new QuestionEndedError('The request has gone.');
  }

  /** Whether the questions of this turn of the event loop have had their time. */
  get #isOver(): boolean {
    if (this.#began !== undefined) return performance.now() - this.#began >= MAX_SLICE_MS;
    this.#began = performance.now();
    this.#expectTurn();
    return false;
  }

  /** Resolves in a later turn of the event loop. */
  #turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#expectTurn();
    });
  }

  #expectTurn(): void {
    if (this.#isTurnComing) return;
    this.#isTurnComing = true;
    setImmediate(() => {
      this.#isTurnComing = false;
      const next = this.#waiting.shift();
      this.#began = next && performance.now();
      if (next) this.#expectTurn();
      next?.();
    });
  }
}

/** Waits in a line until called, or until a request has gone. @returns whether it was called */
function waitIn(line: (() => void)[], signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(false);
  return new Promise((resolve) => {
    const leave = (): void => {
      line.splice(line.indexOf(call), 1);
      resolve(false);
    };
    const call = (): void => {
      signal.removeEventListener('abort', leave);
      resolve(true);
    };
    line.push(call);
    signal.addEventListener('abort', leave, { once: true });
  });
}
