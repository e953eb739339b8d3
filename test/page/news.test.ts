import { expect, test } from 'vitest';
import { createNews, EVERY_AWAY, PACE } from '../../src/page/news.ts';
import { Unanswered } from '../../src/page/service.ts';
import type { Reach } from '../../src/page/state.ts';

/** A stream whose events come by hand. */
class Stream {
  readonly asked: string[];
  cursor: string | undefined;
  #told = Promise.withResolvers<readonly string[] | undefined>();

  constructor(asked: string[], cursor: string | undefined) {
    this.asked = asked;
    this.cursor = cursor;
  }

  async mark(): Promise<boolean> {
    const isNew = this.cursor === undefined;
    this.cursor ??= '1';
    this.asked.push('mark');
    return isNew;
  }

  wait(milliseconds: number, sleep: (milliseconds: number) => Promise<void>) {
    return Promise.race([this.#told.promise, sleep(milliseconds).then(() => [])]);
  }

  tell(told: readonly string[] | undefined, cursor = this.cursor): void {
    this.cursor = cursor;
    this.#told.resolve(told);
    this.#told = Promise.withResolvers();
  }

  close(): void {
    this.asked.push('close');
  }
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

/** News whose answers and time go by hand. */
function opened(who: string = 'lead exp') {
  let now = 1000;
  let timer: { milliseconds: number; run: () => void } | undefined;
  let streams: Stream[] = [];
  const asked: string[] = [];
  const answers: (Error | Promise<void>)[] = [];
  const shown: Reach[] = [];
  const errors: unknown[] = [];
  const whose: { who: string | undefined } = { who };
  const answer = async (name: string): Promise<void> => {
    asked.push(name);
    const next = answers.shift();
    if (next instanceof Error) throw next;
    await next;
  };
  const news = createNews<string>({
    identify: async () => whose.who,
    open(name, cursor) {
      asked.push(`open ${name} ${cursor}`);
      const stream = new Stream(asked, cursor);
      streams = [...streams, stream];
      return stream;
    },
    ask: () => answer('all'),
    tell: (told) => answer(told.join()),
    now: () => now,
    later(milliseconds, run) {
      const own = { milliseconds, run };
      timer = own;
      return () => {
        if (timer === own) timer = undefined;
      };
    },
    show: (reach) => shown.push(reach),
    failed: (error) => errors.push(error),
  });
  return {
    ...{ news, answers, shown, errors, whose },
    /** What was asked since. */
    async asked() {
      await settled();
      return asked.splice(0);
    },
    tell: (...told: Parameters<Stream['tell']>) => streams.at(-1)?.tell(...told),
    pass(milliseconds = timer?.milliseconds ?? 0) {
      const due = timer;
      now += milliseconds;
      if (!due || milliseconds < due.milliseconds) return;
      timer = undefined;
      due.run();
    },
    waits: () => timer?.milliseconds,
  };
}

const BEGUN = ['open lead exp undefined', 'mark', 'all'];

test('all is asked for once, after a mark; then what is told is taken, once in a second', async () => {
  const { news, asked, tell, pass, waits } = opened();
  news.resume();
  news.resume();
  expect(await asked()).toEqual(BEGUN);
  tell(['a', 'b']);
  expect(await asked()).toEqual(['a,b']);
  expect(waits()).toBe(PACE);
  pass();
  expect(await asked()).toEqual([]);
  tell(['c']);
  expect(await asked()).toEqual(['c']);
});

test('where nothing is told, all is asked for', async () => {
  const { news, asked, tell } = opened();
  news.resume();
  await asked();
  tell(undefined);
  expect(await asked()).toEqual(['mark', 'all']);
});

test('while nobody looks no stream is open; then it goes on at its cursor', async () => {
  const { news, asked, tell } = opened();
  news.resume();
  await asked();
  tell(['a'], '2');
  expect(await asked()).toEqual(['a']);
  news.pause();
  expect(await asked()).toEqual(['close']);
  news.resume();
  expect(await asked()).toEqual(['open lead exp 2']);
  news.pause();
  news.resume();
  expect(await asked()).toEqual([]);
});

test('another user or experiment has a stream of its own, and all is asked for; nobody has none', async () => {
  const { news, asked, whose } = opened();
  news.resume();
  await asked();
  whose.who = 'lead other';
  news.look();
  expect(await asked()).toEqual(['close', 'open lead other undefined', 'mark', 'all']);
  whose.who = undefined;
  news.look();
  expect(await asked()).toEqual(['close', 'all']);
});

test('a server that is away is said to be away since it was last there, and asked until it is back', async () => {
  const { news, asked, answers, shown, tell, pass, waits } = opened();
  news.resume();
  await asked();
  pass(7000);
  answers.push(new Unanswered('away'), new Unanswered('away'));
  tell(undefined);
  expect(await asked()).toEqual(['mark', 'all']);
  expect(shown.at(-1)).toEqual({ isAway: true, since: 8000 });
  expect(waits()).toBe(EVERY_AWAY);
  pass();
  expect(await asked()).toEqual(['mark', 'all']);
  expect(shown.at(-1)).toEqual({ isAway: true, since: 8000 });
  pass();
  expect(await asked()).toEqual(['mark', 'all']);
  expect(shown.at(-1)).toEqual({ isAway: false, since: 8000 + 2 * EVERY_AWAY });
});

test('what could not be asked after an event is asked with all', async () => {
  const { news, asked, answers, tell, pass } = opened();
  news.resume();
  await asked();
  answers.push(new Unanswered('away'));
  tell(['a']);
  expect(await asked()).toEqual(['a', 'mark', 'all']);
  pass();
  expect(await asked()).toEqual([]);
});

test('a request elsewhere without an answer says at once that the server is away, and all is asked for', async () => {
  const { news, asked, shown, answers } = opened();
  news.resume();
  await asked();
  answers.push(new Unanswered('away'));
  news.lost();
  expect(shown.at(-1)).toEqual({ isAway: true, since: 1000 });
  expect(await asked()).toEqual(['mark', 'all']);
});

test('a change while all is being asked for is asked for once more', async () => {
  const { news, asked, answers } = opened();
  const first = Promise.withResolvers<void>();
  answers.push(first.promise);
  news.resume();
  expect(await asked()).toEqual(BEGUN);
  news.look();
  news.look();
  expect(await asked()).toEqual([]);
  first.resolve();
  expect(await asked()).toEqual(['mark', 'all']);
});

test('a bug is told, and news go on', async () => {
  const { news, asked, answers, errors, tell } = opened();
  answers.push(new TypeError('a bug'));
  news.resume();
  expect(await asked()).toEqual(BEGUN);
  expect(errors).toHaveLength(1);
  tell(['a']);
  expect(await asked()).toEqual(['a']);
});
