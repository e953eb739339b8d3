import { CommitUnknownError, StoreUnavailableError } from '../../allocator/store.ts';

/** The time limit of one use of a connection. */
export class Lease {
  /** Rejects when the time is over. */
  readonly over: Promise<never>;
  /** Whether the time is over. */
  isOver = false;
  readonly #alarm: NodeJS.Timeout;
  #committing = false;

  /** @param patience milliseconds */
  constructor(patience: number) {
    const { promise, reject } = Promise.withResolvers<never>();
    this.over = promise;
    promise.catch(() => undefined);
    this.#alarm = setTimeout(() => {
      this.isOver = true;
      reject(this.#late());
    }, patience);
  }

  /** Starts the time again: the database has answered. */
  goOn(): void {
    this.#alarm.refresh();
  }

  /** From now on, running out of time leaves it unknown whether the change was made. */
  committing(): void {
    this.#committing = true;
  }

  /** Stops the clock. */
  end(): void {
    clearTimeout(this.#alarm);
  }

  #late(): StoreUnavailableError {
    return this.#committing
      ? new CommitUnknownError('The database did not say in time whether it made the change.')
      : new StoreUnavailableError("The database can't be reached in time.");
  }
}
