import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Progress } from '../../../src/cli/print/progress.ts';

/** A terminal's line: its text, and how often it was opened. */
function fakeLine() {
  const line = {
    shown: '',
    opened: 0,
    isGone: false,
    open: async () => {
      line.opened += 1;
      return line;
    },
    draw(text: string) {
      if (!line.isGone) line.shown = text;
      return !line.isGone;
    },
    clear() {
      line.shown = '';
    },
  };
  return line;
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
    const line = fakeLine();
    const { work, resolve } = openWork();
    const answer = new Progress({ open: line.open, now: Date.now }).during('127.0.0.1:4280', work);
    await after(499);
    expect(line.opened).toBe(0);
    await after(1);
    expect(line.shown).toBe('Waiting for 127.0.0.1:4280 (0 s)');
    await after(1500);
    expect(line.shown).toBe('Waiting for 127.0.0.1:4280 (2 s)');
    resolve('done');
    expect(await answer).toBe('done');
    expect(line.shown).toBe('');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('loads nothing for short waits, however many', async () => {
    const line = fakeLine();
    const progress = new Progress({ open: line.open, now: Date.now });
    for (let count = 0; count < 5; count += 1) {
      const { work, resolve } = openWork();
      const answer = progress.during('a service', work);
      await after(400);
      resolve('done');
      await answer;
    }
    await after(5000);
    expect(line.opened).toBe(0);
  });

  test('ends with work that fails', async () => {
    const line = fakeLine();
    const { work, reject } = openWork();
    const answer = new Progress({ open: line.open, now: Date.now }).during('a service', work);
    const caught = answer.catch((error: unknown) => error);
    await after(1000);
    reject(new Error('away'));
    expect(await caught).toEqual(new Error('away'));
    expect(line.shown).toBe('');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('shows the first of several waits, until all have ended', async () => {
    const line = fakeLine();
    const progress = new Progress({ open: line.open, now: Date.now });
    const [outer, inner] = [openWork(), openWork()];
    const answers = [progress.during('the code to be entered', outer.work), progress.during('x', inner.work)];
    await after(3000);
    expect(line.shown).toBe('Waiting for the code to be entered (3 s)');
    outer.resolve('');
    await after(100);
    expect(line.shown).toBe('Waiting for x (3 s)');
    inner.resolve('');
    await Promise.all(answers);
    expect(line.shown).toBe('');
  });

  test('a lock is shown before what it holds up, until it is had', async () => {
    const line = fakeLine();
    const progress = new Progress({ open: line.open, now: Date.now });
    const [held, outer] = [openWork(), openWork()];
    const underLock = progress.locks(async (_file, work) => {
      await held.work();
      return work();
    });
    const answer = progress.during('the user token', () => underLock('x.lock', outer.work));
    await after(1000);
    expect(line.shown).toBe('Waiting for another slices-conn command to finish (1 s)');
    held.resolve('');
    await after(100);
    expect(line.shown).toBe('Waiting for the user token (1 s)');
    outer.resolve('token');
    expect(await answer).toBe('token');
    expect(line.shown).toBe('');
  });

  test('a lock that is never had shows nothing more', async () => {
    const line = fakeLine();
    const progress = new Progress({ open: line.open, now: Date.now });
    const { work, reject } = openWork();
    const answer = progress.locks(async () => {
      await work();
      throw new Error('unreachable');
    })('x.lock', async () => '');
    const caught = answer.catch((error: unknown) => error);
    await after(1000);
    reject(new Error('kept'));
    expect(await caught).toEqual(new Error('kept'));
    expect([line.shown, vi.getTimerCount()]).toEqual(['', 0]);
  });

  test('is silent while a person is asked', async () => {
    const line = fakeLine();
    const progress = new Progress({ open: line.open, now: Date.now });
    const [work, question] = [openWork(), openWork()];
    const answers = [progress.during('the database', work.work)];
    await after(600);
    answers.push(progress.aside(question.work));
    await after(1000);
    expect(line.shown).toBe('');
    question.resolve('');
    await after(100);
    expect(line.shown).toBe('Waiting for the database (1 s)');
    work.resolve('');
    await Promise.all(answers);
  });

  test('makes room for other text on the terminal', async () => {
    const line = fakeLine();
    const progress = new Progress({ open: line.open, now: Date.now });
    const { work, resolve } = openWork();
    const answer = progress.during('a service', work);
    await after(600);
    const seen: string[] = [];
    const stream = { isTerminal: true, columns: 80, write: (text: string) => seen.push(line.shown + text) };
    progress.before(stream).write('a notice\n');
    expect(seen).toEqual(['a notice\n']);
    await after(100);
    expect(line.shown).toBe('Waiting for a service (0 s)');
    resolve('');
    await answer;
  });

  test('stops for good when the terminal is gone', async () => {
    const line = fakeLine();
    const progress = new Progress({ open: line.open, now: Date.now });
    const { work, resolve } = openWork();
    const answers = [progress.during('a service', work)];
    await after(1000);
    line.isGone = true;
    await after(100);
    expect(vi.getTimerCount()).toBe(0);
    answers.push(progress.during('another', work));
    expect(vi.getTimerCount()).toBe(0);
    resolve('');
    await Promise.all(answers);
  });

  test('a line that fails to open changes nothing', async () => {
    const open = () => Promise.reject(new Error('no such module'));
    const { work, resolve } = openWork();
    const answer = new Progress({ open, now: Date.now }).during('a service', work);
    await after(1000);
    expect(vi.getTimerCount()).toBe(0);
    resolve('done');
    expect(await answer).toBe('done');
  });
});
