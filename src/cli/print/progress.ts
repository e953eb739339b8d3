import { formatDuration } from '../../contract/durations.ts';
import type { Send } from '../../contract/sending.ts';
import type { UnderLock } from '../../session/profiles/profiles.ts';

/** A line on the terminal with a spinner, which makes room for all other text. */
export interface ProgressLine {
  /** Shows it, unless the terminal is gone. */
  start(): void;
  /** Removes it. */
  stop(): void;
}

/** Opens the line. @param what completes "Waiting for …"; it is asked for at each turn of the spinner */
export type OpenProgressLine = (what: () => string) => Promise<ProgressLine>;

/** Something that is waited for. */
interface Wait {
  /** Completes "Waiting for …". */
  what: string;
  /** When it began, in milliseconds. */
  since: number;
  /** Whether it is a lock that another process has. */
  isLock: boolean;
}

/** How long a wait may take before it is shown, in milliseconds. */
const SHOW_AFTER = 500;

/**
 * Shows on stderr what a command waits for, and how long already: `Waiting for 127.0.0.1:4280 (2 s)`. A wait
 * of less than half a second is not shown. Of several waits at once the first is shown, but a lock before all
 * others, since it says why they take long. The line keeps the process alive, so that {@link stop} is called at its end.
 */
export class Progress {
  readonly #open: OpenProgressLine | undefined;
  readonly #now: () => number;
  readonly #waits = new Set<Wait>();
  /** Questions that are being asked. */
  #questions = 0;
  #timer: NodeJS.Timeout | undefined;
  #line: ProgressLine | undefined;

  /**
   * @param open is called at the first wait that takes long; undefined where nothing is shown
   * @param now milliseconds since the Unix epoch
   */
  constructor(open: OpenProgressLine | undefined, now: () => number) {
    this.#open = open;
    this.#now = now;
  }

  /**
   * Does some work, and shows that it is waited for.
   *
   * @param what completes "Waiting for …"
   */
  during<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    return this.#during({ what, since: this.#now(), isLock: false }, work);
  }

  /** The same lock; until another command releases it, that command is shown as what is waited for. */
  locks(underLock: UnderLock): UnderLock {
    return async (file, work) => {
      const begun = Promise.withResolvers<void>();
      const what = 'another slices-conn command to finish';
      const shown = this.#during({ what, since: this.#now(), isLock: true }, () => begun.promise);
      try {
        return await underLock(file, () => {
          begun.resolve();
          return work();
        });
      } finally {
        begun.resolve();
        await shown;
      }
    };
  }

  /** Asks a person a question; meanwhile nothing is shown. */
  async aside<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    this.#questions += 1;
    this.stop();
    try {
      return await ask();
    } finally {
      this.#questions -= 1;
      this.#start();
    }
  }

  /** Removes the line, until another wait begins. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#line?.stop();
  }

  async #during<Result>(wait: Wait, work: () => Promise<Result>): Promise<Result> {
    this.#waits.add(wait);
    this.#start();
    try {
      return await work();
    } finally {
      this.#waits.delete(wait);
      if (this.#waits.size === 0) this.stop();
    }
  }

  /** The same way; each request shows the service. @param name the service, by default its host */
  watched(send: Send, name?: string): Send {
    return (request) => this.during(name ?? new URL(request.url).host, () => send(request));
  }

  #start(): void {
    if (!this.#open || this.#timer || this.#questions > 0 || this.#waits.size === 0) return;
    const timer = setTimeout(() => void this.#show(timer), SHOW_AFTER).unref();
    this.#timer = timer;
  }

  async #show(timer: NodeJS.Timeout): Promise<void> {
    this.#line ??= await this.#open?.(() => this.#what()).catch(() => undefined);
    // The wait may be over meanwhile.
    if (this.#timer === timer) this.#line?.start();
  }

  #what(): string {
    const waits = [...this.#waits];
    const wait = waits.find(({ isLock }) => isLock) ?? waits[0];
    if (!wait) return '';
    const seconds = Math.floor((this.#now() - wait.since) / 1000);
    return `${wait.what} (${formatDuration(seconds * 1000)})`;
  }
}
