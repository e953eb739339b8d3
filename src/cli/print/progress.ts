import type { Fetch } from '../../client/exchange.ts';
import type { TextStream } from './output.ts';

/** A line on the terminal that is drawn again and again in the same place. */
export interface ProgressLine {
  /** Draws the text. @returns false once the terminal is gone */
  draw(text: string): boolean;
  /** Removes what was drawn. */
  clear(): void;
}

/** How long a wait may take before it is shown, in milliseconds. */
const PATIENCE = 500;
/** How often the line is drawn, in milliseconds. */
const REFRESH = 100;

/** What {@link Progress} needs. */
export interface ProgressOptions {
  /** Opens the line, at the first wait that takes long; undefined where nothing is shown. */
  open: (() => Promise<ProgressLine>) | undefined;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/**
 * Shows on stderr what a command waits for, and how long already: `Waiting for 127.0.0.1:4280 (2 s)` (DESIGN.md, ora).
 * A wait of less than half a second is not shown. Of several waits at once the first is shown. The timers never keep
 * the process alive, and stop when the terminal is gone.
 */
export class Progress {
  readonly #options: ProgressOptions;
  readonly #waits = new Set<{ what: string; since: number }>();
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
  async during<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
    const wait = { what, since: this.#options.now() };
    this.#waits.add(wait);
    this.#start();
    try {
      return await work();
    } finally {
      this.#waits.delete(wait);
      if (this.#waits.size === 0) this.#stop();
    }
  }

  /** The same fetch; each request shows the service that is waited for. */
  watched(fetch: Fetch): Fetch {
    return (request) => this.during(new URL(request.url).host, () => fetch(request));
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
    const timer = setTimeout(() => void this.#show(timer), PATIENCE).unref();
    this.#timer = timer;
  }

  async #show(timer: NodeJS.Timeout): Promise<void> {
    try {
      this.#line ??= await this.#options.open?.();
    } catch {
      this.#isGone = true;
    }
    // What was waited for may have come meanwhile.
    if (this.#timer !== timer) return;
    this.#timer = setInterval(() => this.#draw(), REFRESH).unref();
    this.#draw();
  }

  #draw(): void {
    const [wait] = this.#waits;
    if (!wait) return;
    const seconds = Math.floor((this.#options.now() - wait.since) / 1000);
    if (this.#line?.draw(`Waiting for ${wait.what} (${seconds} s)`)) return;
    this.#isGone = true;
    this.#stop();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#line?.clear();
  }
}
