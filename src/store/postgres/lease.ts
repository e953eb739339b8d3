import { CommitUnknownError, StoreUnavailableError } from '../../allocator/store.ts';

/** How long a connection is lent. */
export class Lease {
  /** Rejects when the time is over. */
  readonly over: Promise<never>;
  /** Whether it is. */
  isOver = false;
  readonly #alarm: NodeJS.Timeout;
  #committing = false;

  constructor(patience: number) {
    const { promise, reject } = Promise.withResolvers<never>();
    this.over = promise;
    promise.catch(() => undefined);
    this.#alarm = setTimeout(() => {
      this.isOver = true;
      reject(this.#late());
    }, patience);
  }

  /** Starts the time anew: the database has answered. */
  goOn(): void {
    this.#alarm.refresh();
  }

  /** From now on, nobody knows what became of it when the time is over. */
  committing(): void {
    this.#committing = true;
  }

  end(): void {
    clearTimeout(this.#alarm);
  }

  #late(): StoreUnavailableError {
    return this.#committing
      ? new CommitUnknownError('The database did not say in time whether it made the change.')
      : new StoreUnavailableError("The database can't be reached in time.");
  }
}
