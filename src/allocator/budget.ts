import type { LoopTurns } from './event-loop.ts';

/** How many looks at a link's calendar one question may take: each takes some 10 µs at a million live reservations. */
const MOST_LOOKS = 50_000;

/** The time for questions in this turn of the event loop is over: the question goes on in a later one. */
export class TurnOverError extends Error {
  override readonly name = 'TurnOverError';
}

/** A question has used up its looks. What it found until then stands. */
export class BudgetSpentError extends Error {
  override readonly name = 'BudgetSpentError';
  /** Of a search for a time: nothing fits before this instant, in milliseconds. */
  readonly notBefore: number | undefined;

  constructor(message: string, notBefore?: number) {
    super(message);
    this.notBefore = notBefore;
  }
}

/** How a question was asked so far. */
interface Asked {
  /** In which turn it was asked last; undefined where that is over. */
  turn?: number | undefined;
  /** When it was asked first, in milliseconds. */
  first?: number;
}

/**
 * The limits of one question's cost, and its findings so far (THREATS.md 81).
 *
 * A question that takes long is asked again in later turns of the event loop, from its beginning. What was {@link once}
 * found is not looked for again, so each turn brings it further. Between turns the calendars are not lent to it: bookings go
 * on, and the answer is about the links as they were when each part of it was found.
 */
export class Budget {
  readonly #turns: LoopTurns | undefined;
  readonly #most: number;
  readonly #found = new Map<string, unknown>();
  #looks = 0;
  readonly #asked: Asked;

  /**
   * @param turns undefined: it is asked once, and goes on to its end
   * @param most how many looks it may take
   */
  constructor(turns: LoopTurns | undefined, most: number = MOST_LOOKS, asked: Asked = {}) {
    this.#turns = turns;
    this.#most = most;
    this.#asked = asked;
  }

  /** Another budget of the same size, in the same turns. */
  again(): Budget {
    return new Budget(this.#turns, this.#most, this.#asked);
  }

  /** When the question was asked first, so that what it asks for stays the same. @param now milliseconds */
  firstAsked(now: number): number {
    this.#asked.first ??= now;
    return this.#asked.first;
  }

  /** Counts looks at a link's calendar, before they are taken. @throws BudgetSpentError where none are left */
  look(count = 1): void {
    this.#looks += count;
    if (this.#looks > this.#most) throw new BudgetSpentError('the question has used up its looks');
  }

  /**
   * Ends this turn's part where its time is over, or where its decisions went on into another turn: the calendars were lent to it
   * for that long. To be called where all that was found is kept. @throws TurnOverError
   */
  pause(): void {
    if (!this.#turns) return;
    this.#asked.turn ??= this.#turns.count;
    if (!this.#turns.isOver && this.#asked.turn === this.#turns.count) return;
    this.#asked.turn = undefined;
    throw new TurnOverError('the question goes on in a later turn');
  }

  /** The value that was found under a name in this turn or an earlier one. @throws TurnOverError where it was found just now */
  once<Found>(name: string, find: () => Found): Found {
    if (this.#found.has(name)) return this.#found.get(name) as Found;
    const found = find();
    this.#found.set(name, found);
    this.pause();
    return found;
  }
}
