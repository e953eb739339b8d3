import { Unanswered } from './service.ts';

/** Whether the server answers. */
export interface Reach {
  isAway: boolean;
  /** When it answered last, in milliseconds; when the page was opened where it never did. */
  since: number;
}

/** What {@link createNews} is made of. */
export interface NewsOptions {
  /** Asks for everything that may have changed. Rejects with `Unanswered` when the server is away. */
  ask(): Promise<void>;
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Runs something later. @returns what calls it off */
  later(milliseconds: number, run: () => void): () => void;
  /** Told after each answer, and after each request without one. */
  show(reach: Reach): void;
  /** Told of an error that is neither an answer nor the lack of one: a bug. */
  failed(error: unknown): void;
}

/** Asks for news again and again while someone looks. */
export interface News {
  /** Asks at once; a request that is under way is enough, unless something changed since it was sent. */
  look(): Promise<void>;
  /** Told of a request elsewhere that had no answer: says so at once, and asks. */
  lost(): void;
  /** Stops asking: nobody looks. */
  pause(): void;
  /** Asks at once, and goes on. */
  resume(): void;
}

/** How often is asked, in milliseconds. */
export const EVERY = 15_000;
/** How often while the server is away, in milliseconds. */
export const EVERY_AWAY = 5000;

/** See {@link News}. It begins paused. */
export function createNews({ ask, now, later, show, failed }: NewsOptions): News {
  let reach: Reach = { isAway: false, since: now() };
  let isPaused = true;
  let callOff = (): void => {};
  let current: Promise<void> | undefined;
  let isStale = false;

  async function askOnce(): Promise<void> {
    try {
      await ask();
      reach = { isAway: false, since: now() };
    } catch (error) {
      if (!(error instanceof Unanswered)) {
        failed(error);
        return;
      }
      reach = { ...reach, isAway: true };
    }
    show(reach);
  }

  async function round(): Promise<void> {
    callOff();
    do {
      isStale = false;
      await askOnce();
    } while (isStale);
    current = undefined;
    if (!isPaused) callOff = later(reach.isAway ? EVERY_AWAY : EVERY, () => void look());
  }

  function look(): Promise<void> {
    if (current) isStale = true;
    else current = round();
    return current ?? Promise.resolve();
  }

  return {
    look,
    lost() {
      reach = { ...reach, isAway: true };
      show(reach);
      void look();
    },
    pause() {
      isPaused = true;
      callOff();
    },
    resume() {
      if (!isPaused) return;
      isPaused = false;
      void look();
    },
  };
}
