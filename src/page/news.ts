import type { News as Stream } from '../client/events.ts';
import { DAY, SECOND } from '../contract/durations.ts';
import { Unanswered } from './service.ts';
import type { Reach } from './state.ts';

/** Options of {@link createNews}. */
export interface NewsOptions<Told> {
  /**
   * Asks who looks, where that is in doubt.
   *
   * @returns whose news are told, as a text; undefined where none are told to who looks
   */
  identify(): Promise<string | undefined>;
  /** Opens the stream of news. @param cursor where an earlier one has stopped */
  open(whose: string, cursor: string | undefined): Pick<Stream<Told>, 'mark' | 'wait' | 'close' | 'cursor'>;
  /** Asks for everything that may have changed. Rejects with `Unanswered` when the server is away, as all of these do. */
  ask(): Promise<void>;
  /** Takes what was told, and asks for what follows from it. */
  tell(told: readonly Told[]): Promise<void>;
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Runs something later. @returns what calls it off */
  later(milliseconds: number, run: () => void): () => void;
  /** Told after each answer, and after each request without one. */
  show(reach: Reach): void;
  /** Told of an error that is neither an answer nor the lack of one: a bug. */
  failed(error: unknown): void;
}

/** Keeps the page up to date while it is looked at: by events, and by a question at first and whenever there is no stream. */
export interface News {
  /** Asks for everything at once; where that is under way, once more. */
  look(): void;
  /** Told of a request elsewhere that had no answer: says so at once, and asks. */
  lost(): void;
  /** Pauses while the page is hidden: nothing is asked, and no stream is open. */
  pause(): void;
  /** Goes on where it stopped. */
  resume(): void;
}

/** How often is asked while the server is away, in milliseconds. */
export const EVERY_AWAY = 5 * SECOND;
/** How often something is told at most, in milliseconds: others may book a hundred times in a second. */
export const PACE = SECOND;

/** See {@link News}. It begins paused. */
export function createNews<Told>(options: NewsOptions<Told>): News {
  const { now, show } = options;
  let reach: Reach = { isAway: false, since: now() };
  let isPaused = true;
  let isRunning = false;
  /** Whether everything is to be asked for. */
  let isDue = true;
  let whose: string | undefined;
  let stream: ReturnType<typeof options.open> | undefined;
  let cursor: string | undefined;
  let wake = (): void => {};

  /** Ends early when there is something to do, or the page is hidden. */
  function rest(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const callOff = options.later(milliseconds, resolve);
      wake = () => {
        callOff();
        resolve();
      };
      signal?.addEventListener('abort', wake);
    });
  }

  /** @returns whether the server answers */
  async function isAnswered(run: () => Promise<void>): Promise<boolean> {
    try {
      await run();
      reach = { isAway: false, since: now() };
    } catch (error) {
      if (!(error instanceof Unanswered)) {
        options.failed(error);
        return true;
      }
      isDue = true;
      reach = { ...reach, isAway: true };
    }
    show(reach);
    return !reach.isAway;
  }

  function stop(): void {
    cursor = stream?.cursor;
    stream?.close();
    stream = undefined;
  }

  async function lookIfDue(): Promise<void> {
    const known = await options.identify();
    if (known !== whose) {
      stop();
      [whose, cursor, isDue] = [known, undefined, true];
    }
    if (whose !== undefined) stream ??= options.open(whose, cursor);
    if (!isDue) return;
    isDue = false;
    await stream?.mark();
    await options.ask();
  }

  async function run(): Promise<void> {
    isRunning = true;
    while (!isPaused) {
      const isThere = await isAnswered(lookIfDue);
      if (isPaused || (isThere && isDue)) continue;
      const longest = isThere ? DAY : EVERY_AWAY;
      const told = stream ? await stream.wait(longest, rest) : await rest(longest).then(() => []);
      // Until now the stream was there.
      if (isThere) reach = { ...reach, since: now() };
      if (!told || !isThere) isDue = true;
      else if (told.length > 0 && (await isAnswered(() => options.tell(told)))) await rest(PACE);
    }
    stop();
    isRunning = false;
  }

  function look(): void {
    isDue = true;
    wake();
  }

  return {
    look,
    lost() {
      reach = { ...reach, isAway: true };
      show(reach);
      look();
    },
    pause() {
      isPaused = true;
      wake();
    },
    resume() {
      isPaused = false;
      if (!isRunning) void run();
    },
  };
}
