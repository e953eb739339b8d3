import { formatDuration } from '../../contract/durations.ts';
import type { Send } from '../../contract/sending.ts';
import type { UnderLock } from '../../session/profiles/profiles.ts';
import type { TextStream } from './output.ts';

/** A line on the terminal that is drawn again and again in the same place. */
export interface ProgressLine {
  /** Draws the text. @returns false once the terminal is gone */
  draw(text: string): boolean;
  /** Removes what was drawn. */
  clear(): void;
}

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
/** How often the line is drawn, in milliseconds. */
const REFRESH = 100;

/** Options of {@link Progress}. */
interface ProgressOptions {
  /** Opens the line, at the first wait that takes long; undefined where nothing is shown. */
  open: (() => Promise<ProgressLine>) | undefined;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/**
 * Shows on stderr what a command waits for, and how long already: `Waiting for 127.0.0.1:4280 (2 s)`. A wait
 * of less than half a second is not shown. Of several waits at once the first is shown, but a lock before all
 * others, since it says why they take long. The timers never keep the process alive, and stop when the
 * terminal is gone.
 */
export class Progress {
  readonly #options: ProgressOptions;
  readonly #waits = new Set<Wait>();
  /** Questions that are being asked. */
  #questions = 0;
  #timer: NodeJS.Timeout | undefined;
  #line: ProgressLine | undefined;
  #isGone = false;

  constructor(options: ProgressOptions) {
    this.#options = options;
  }

  /**
   * Does some work, and shows that it is waited for.
   *
   * @param what completes "Waiting for …"
   */
  during<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    return this.#during({ what, since: this.#options.now(), isLock: false }, work);
  }

  /** The same lock; until another command releases it, that command is shown as what is waited for. */
  locks(underLock: UnderLock): UnderLock {
    return async (file, work) => {
      const begun = Promise.withResolvers<void>();
      const wait = {
        what: 'another slices-conn command to finish',
        since: this.#options.now(),
        isLock: true,
      };
      const shown = this.#during(wait, () => begun.promise);
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

  /** Asks a person a question; meanwhile nothing is drawn. */
  async aside<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    this.#questions += 1;
    this.#line?.clear();
    try {
      return await ask();
    } finally {
      this.#questions -= 1;
    }
  }

  async #during<Result>(wait: Wait, work: () => Promise<Result>): Promise<Result> {
    this.#waits.add(wait);
    this.#start();
    try {
      return await work();
    } finally {
      this.#waits.delete(wait);
      if (this.#waits.size === 0) this.#stop();
    }
  }

  /** The same way; each request shows the service. @param name the service, by default its host */
  watched(send: Send, name?: string): Send {
    return (request) => this.during(name ?? new URL(request.url).host, () => send(request));
  }

  /** The same stream; the line is removed before anything is written, and drawn again below. */
  before(stream: TextStream): TextStream {
    return {
      ...stream,
      write: (text) => {
        this.#line?.clear();
        stream.write(text);
      },
    };
  }

  #start(): void {
    if (!this.#options.open || this.#isGone || this.#timer) return;
    const timer = setTimeout(() => void this.#show(timer), SHOW_AFTER).unref();
    this.#timer = timer;
  }

  async #show(timer: NodeJS.Timeout): Promise<void> {
    try {
      this.#line ??= await this.#options.open?.();
    } catch {
      this.#isGone = true;
    }
    // The wait may be over meanwhile.
    if (this.#timer !== timer) return;
    this.#timer = setInterval(() => this.#draw(), REFRESH).unref();
    this.#draw();
  }

  #draw(): void {
    const [first] = this.#waits;
    const wait = [...this.#waits].find(({ isLock }) => isLock) ?? first;
    if (!wait || this.#questions > 0) return;
    const seconds = Math.floor((this.#options.now() - wait.since) / 1000);
    if (this.#line?.draw(`Waiting for ${wait.what} (${formatDuration(seconds * 1000)})`)) return;
    this.#isGone = true;
    this.#stop();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#line?.clear();
  }
}
