import { describe, expect, test } from 'vitest';
import { completed } from '../../src/cli/advice.ts';

describe('advice that is a flag becomes the whole command that was typed', () => {
  test.each([
    ['reserve a b --bandwidth 1X --for 2h', '--bandwidth 1G', 'reserve a b --bandwidth 1G --for 2h'],
    ['reserve a b --bandwidth=1X --for 2h', '--bandwidth 1G', 'reserve a b --bandwidth 1G --for 2h'],
    ['--offline reserve a b --for 2h', '--start-now', '--offline reserve a b --for 2h --start-now'],
    ['reserve a b --for', '--for 2h', 'reserve a b --for 2h'],
    ['delete --reason -- x', '--reason y', 'delete --reason y -- x'],
    ['show -- x', '--debug', 'show --debug -- x'],
    ['audit --link a --since 2d', '--link a b', 'audit --link a b --since 2d'],
  ])('%s, %s', (typed, advice, expected) => {
    expect(completed(typed.split(' '), {}, advice)).toBe(`slices-conn ${expected}`);
  });

  test('with words that a shell takes as they were', () => {
    const typed = ['experiment', 'create', 'x', '--description', "it's $HOME", '--end', 'soon'];
    expect(completed(typed, {}, '--end +30d')).toBe(
      `slices-conn experiment create x --description 'it'\\''s $HOME' --end +30d`,
    );
  });

  test('a whole command gets the services only', () => {
    expect(completed(['--offline', 'show', 'x'], { offline: true }, 'slices-conn list')).toBe(
      'slices-conn --offline list',
    );
  });
});
