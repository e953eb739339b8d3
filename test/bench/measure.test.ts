import { describe, expect, it } from 'vitest';
import { isMet, type Result } from './benchmark.ts';
import { alternate, median, ratePerSecond } from './measure.ts';

describe('alternate', () => {
  it('lets the contenders take turns, every other round in reverse order, and does not count the first', async () => {
    const turns: string[] = [];
    let round = 0;
    const rounds = await alternate(2, [
      ['one', () => turns.push('one')],
      [
        'other',
        () => {
          turns.push('other');
          round += 1;
          return [1000, 10, 30][round - 1] ?? 0;
        },
      ],
    ]);
    expect(turns).toEqual(['other', 'one', 'one', 'other', 'other', 'one']);
    expect(rounds.median('other')).toBe(30);
  });

  it('divides figures of the same round', async () => {
    let call = 0;
    const figures = { own: [9, 50, 2, 300], bare: [1, 10, 1, 100] };
    const rounds = await alternate(3, [
      ['own', () => figures.own[Math.floor(call++ / 2)] ?? 0],
      ['bare', () => figures.bare[Math.floor(call++ / 2)] ?? 0],
    ]);
    expect(rounds.ratio('own', 'bare')).toBe(3);
  });
});

describe('median', () => {
  it('is the one in the middle, by size', () => {
    expect(median([10, 9, 100])).toBe(10);
    expect(median([])).toBeNaN();
  });
});

describe('ratePerSecond', () => {
  it('has so many under way, and counts what was finished', async () => {
    let [running, most, done] = [0, 0, 0];
    await ratePerSecond({ inFlight: 3, seconds: 0.02 }, async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise(setImmediate);
      running -= 1;
      done += 1;
    });
    expect(most).toBe(3);
    expect(running).toBe(0);
    expect(done).toBeGreaterThanOrEqual(3);
  });
});

describe('isMet', () => {
  const result: Result = { name: '', what: '', ratio: 2, limit: 2, bound: 'atMost', measured: '' };
  it('takes the limit itself, and one side of it', () => {
    expect(isMet(result)).toBe(true);
    expect(isMet({ ...result, ratio: 2.01 })).toBe(false);
    expect(isMet({ ...result, bound: 'atLeast' })).toBe(true);
    expect(isMet({ ...result, bound: 'atLeast', ratio: 1.99 })).toBe(false);
    expect(isMet({ ...result, ratio: Number.NaN })).toBe(false);
  });
});
