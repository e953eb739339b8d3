import { expect, test } from 'vitest';
import { createNews, EVERY, EVERY_AWAY, type Reach } from '../../src/page/news.ts';
import { Unanswered } from '../../src/page/service.ts';

/** News whose answers and time go by hand. */
function opened() {
  let now = 1000;
  let timer: { milliseconds: number; run: () => void } | undefined;
  const asked: PromiseWithResolvers<void>[] = [];
  const shown: Reach[] = [];
  const errors: unknown[] = [];
  const news = createNews({
    ask() {
      const answer = Promise.withResolvers<void>();
      asked.push(answer);
      return answer.promise;
    },
    now: () => now,
    later(milliseconds, run) {
      timer = { milliseconds, run };
      return () => {
        timer = undefined;
      };
    },
    show: (reach) => shown.push(reach),
    failed: (error) => errors.push(error),
  });
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
  return {
    ...{ news, asked, shown, errors },
    waits: () => timer?.milliseconds,
    async answer(error?: unknown) {
      if (error === undefined) asked.at(-1)?.resolve();
      else asked.at(-1)?.reject(error);
      await settled();
    },
    pass() {
      const due = timer;
      timer = undefined;
      now += due?.milliseconds ?? 0;
      due?.run();
    },
  };
}

test('news are asked for every 15 s while someone looks', async () => {
  const { news, asked, waits, answer, pass } = opened();
  news.resume();
  news.resume();
  expect(asked).toHaveLength(1);
  await answer();
  expect(waits()).toBe(EVERY);
  pass();
  expect(asked).toHaveLength(2);
  await answer();
  news.pause();
  expect(waits()).toBeUndefined();
  news.resume();
  expect(asked).toHaveLength(3);
  news.pause();
  await answer();
  expect(waits()).toBeUndefined();
});

test('a server that is away is said to be away since its last answer, and asked more often until it is back', async () => {
  const { news, shown, waits, answer, pass } = opened();
  news.resume();
  await answer();
  pass();
  await answer(new Unanswered('away'));
  pass();
  await answer(new Unanswered('away'));
  expect(waits()).toBe(EVERY_AWAY);
  pass();
  await answer();
  const back = { isAway: false, since: 1000 + EVERY + 2 * EVERY_AWAY };
  expect(shown).toEqual([
    { isAway: false, since: 1000 },
    { isAway: true, since: 1000 },
    { isAway: true, since: 1000 },
    back,
  ]);
  expect(waits()).toBe(EVERY);
});

test('a request elsewhere without an answer says at once that the server is away, and news are asked for', async () => {
  const { news, asked, shown, waits, answer } = opened();
  news.resume();
  await answer();
  news.lost();
  expect(shown.at(-1)).toEqual({ isAway: true, since: 1000 });
  expect(asked).toHaveLength(2);
  await answer(new Unanswered('away'));
  expect(waits()).toBe(EVERY_AWAY);
});

test('a change while news are on their way is asked for once more', async () => {
  const { news, asked, answer } = opened();
  news.resume();
  void news.look();
  void news.look();
  expect(asked).toHaveLength(1);
  await answer();
  expect(asked).toHaveLength(2);
  await answer();
  expect(asked).toHaveLength(2);
});

test('a bug is told, and news go on', async () => {
  const { news, errors, waits, answer } = opened();
  news.resume();
  await answer(new TypeError('a bug'));
  expect(errors).toHaveLength(1);
  expect(waits()).toBe(EVERY);
});
