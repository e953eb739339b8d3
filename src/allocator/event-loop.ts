/** For how long work goes on in one turn of the event loop, in milliseconds. Then others have their turn. */
const MAX_BLOCKING_MS = 15;

/** Lets the event loop come round: every request that has arrived is read, and what waits has its turn. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** For how long a slice of work goes on, in milliseconds: what is behind it in the same turn may take as long, twice. */
const MAX_SLICE_MS = MAX_BLOCKING_MS / 3;

/** A decision that is made at once, or in steps. */
export type Steps<Decided extends object> = Decided | Generator<void, Decided>;

/** The steps of what may be decided at once. */
export function* stepsOf<Decided extends object>(steps: Steps<Decided>): Generator<void, Decided> {
  return Symbol.iterator in steps ? yield* steps : steps;
}

/** Work that takes long, in slices with a turn of the event loop between two. The first one begins with it. */
export class Slices {
  #began = performance.now();
  #count = 1;

  /** How many slices there were, with this one. */
  get count(): number {
    return this.#count;
  }

  /** Whether others are to have their turn. */
  get isOver(): boolean {
    return performance.now() - this.#began >= MAX_SLICE_MS;
  }

  /** Resolves in a later turn, where another slice begins. */
  async next(): Promise<void> {
    await yieldToEventLoop();
    this.#began = performance.now();
    this.#count += 1;
  }

  /** Goes on with work to its end. @param steps each is followed by others' turn, where this one's slice is over */
  async finish<Answer>(steps: Generator<void, Answer>): Promise<Answer> {
    for (;;) {
      const step = steps.next();
      if (step.done) return step.value;
      if (this.isOver) await this.next();
    }
  }
}

/** For how long the questions of one turn go on, in milliseconds: the last look of each may take as long again. */
const MAX_QUESTIONS_MS = MAX_BLOCKING_MS / 2;

/**
 * The turns of the event loop, in each of which questions are answered for a few milliseconds, all of them together.
 *
 * Where the time of a turn is used up, a question that waits has the next turn: first those that have not begun, which may need little;
 * then those that go on, one after the other. So no long question keeps another one waiting until it is over.
 */
export class LoopTurns {
  readonly #now: () => number;
  /** When the questions of this turn began. */
  #began: number | undefined;
  readonly #begin: (() => void)[] = [];
  readonly #goOn: (() => void)[] = [];
  #isNextComing = false;
  #count = 0;

  /** @param now milliseconds of a clock that is never set */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Whether others are to have their turn. The first question of a turn begins its time. */
  get isOver(): boolean {
    if (this.#began !== undefined) return this.#now() - this.#began >= MAX_QUESTIONS_MS;
    this.#began = this.#now();
    this.#expectNext();
    return false;
  }

  /** Tells one turn in which questions went on from the next. */
  get count(): number {
    return this.#count;
  }

  /** Resolves in a turn that has time for another question. */
  async begin(): Promise<void> {
    if (this.isOver) await this.#waitIn(this.#begin);
  }

  /** Resolves in a later turn, in which a question that was begun goes on. */
  goOn(): Promise<void> {
    return this.#waitIn(this.#goOn);
  }

  #waitIn(line: (() => void)[]): Promise<void> {
    return new Promise((resolve) => {
      line.push(resolve);
      this.#expectNext();
    });
  }

  #expectNext(): void {
    if (this.#isNextComing) return;
    this.#isNextComing = true;
    setImmediate(() => this.#next());
  }

  #next(): void {
    const next = this.#begin.shift() ?? this.#goOn.shift();
    const isInUse = next !== undefined || this.#began !== undefined;
    this.#began = undefined;
    this.#isNextComing = false;
    this.#count += 1;
    // Before what the question asks for: the time of the turn after this one must begin before anybody looks at it.
    if (isInUse) this.#expectNext();
    next?.();
  }
}
