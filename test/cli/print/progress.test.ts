import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Progress } from '../../../src/cli/print/progress.ts';

/** Progress on a terminal, with its line: its text, and how often it was opened. */
function terminal() {
  let [what, isShown] = [(): string => '', false];
  const line = {
    get shown() {
      return isShown ? what() : '';
    },
    opened: 0,
  };
  const show = (is: boolean) => (): void => {
    isShown = is;
  };
  const open = async (given: () => string) => {
    line.opened += 1;
    what = given;
    return { start: show(true), stop: show(false) };
  };
  return { line, progress: new Progress(open, Date.now) };
}

/** Work that ends when the test says so. */
function openWork() {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  return { work: () => promise, resolve, reject };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const after = (milliseconds: number) => vi.advanceTimersByTimeAsync(milliseconds);

describe('progress', () => {
  test('is shown after half a second, with the seconds that the wait has taken', async () => {
    const { line, progress } = terminal();
    const { work, resolve } = openWork();
    const answer = progress.during('127.0.0.1:4280', work);
    await after(499);
    expect(line.opened).toBe(0);
    await after(1);
    expect(line.shown).toBe('127.0.0.1:4280 (0 s)');
    await after(1500);
    expect(line.shown).toBe('127.0.0.1:4280 (2 s)');
    resolve('done');
    expect(await answer).toBe('done');
    expect(line.shown).toBe('');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('shows the first of several waits, until all have ended', async () => {
    const { line, progress } = terminal();
    const [outer, inner] = [openWork(), openWork()];
    const answers = [progress.during('the code to be entered', outer.work), progress.during('x', inner.work)];
    await after(3000);
    expect(line.shown).toBe('the code to be entered (3 s)');
    outer.resolve('');
    await after(100);
    expect(line.shown).toBe('x (3 s)');
    inner.resolve('');
    await Promise.all(answers);
    expect(line.shown).toBe('');
  });

  test('a lock is shown before what it holds up, until it is had', async () => {
    const { line, progress } = terminal();
    const [held, outer] = [openWork(), openWork()];
    const underLock = progress.locks(async (_file, work) => {
      await held.work();
      return work();
    });
    const answer = progress.during('the user token', () => underLock('x.lock', outer.work));
    await after(1000);
    expect(line.shown).toBe('another slices-conn command to finish (1 s)');
    held.resolve('');
    await after(100);
    expect(line.shown).toBe('the user token (1 s)');
    outer.resolve('token');
    expect(await answer).toBe('token');
    expect(line.shown).toBe('');
  });

  test('is silent while a person is asked', async () => {
    const { line, progress } = terminal();
    const [work, question] = [openWork(), openWork()];
    const answers = [progress.during('the database', work.work)];
    await after(600);
    answers.push(progress.aside(question.work));
    await after(1000);
    expect(line.shown).toBe('');
    question.resolve('');
    await after(500);
    expect(line.shown).toBe('the database (2 s)');
    work.resolve('');
    await Promise.all(answers);
  });
});
