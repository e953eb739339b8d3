import { describe, expect, test } from 'vitest';
import { completed, retyped, withServices } from '../../src/cli/advice.ts';

describe('advice that is a flag becomes the whole command that was typed', () => {
  test.each([
    ['reserve a b --bandwidth 1X --for 2h', '--bandwidth 1G', 'reserve a b --bandwidth 1G --for 2h'],
    ['reserve a b --bandwidth=1X --for 2h', '--bandwidth 1G', 'reserve a b --bandwidth 1G --for 2h'],
    ['--offline reserve a b --for 2h', '--start-now', '--offline reserve a b --for 2h --start-now'],
    ['reserve a b --for', '--for 2h', 'reserve a b --for 2h'],
    ['delete --reason -- x', '--reason y', 'delete --reason y -- x'],
    ['show -- x', '--debug', 'show --debug -- x'],
    ['run a b -- tool --wait 5', '--wait 1d', 'run a b --wait 1d -- tool --wait 5'],
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

describe('a command with other flags than were typed', () => {
  const bandwidth = { flags: ['--bandwidth'], words: ['--bandwidth', '6G'] };
  const start = { flags: ['--start', '--start-now'], words: ['--start', 'x'] };

  test.each([
    ['reserve a b --bandwidth 9G --for 2h', [bandwidth], 'reserve a b --bandwidth 6G --for 2h'],
    ['reserve --bandwidth=9G a b', [bandwidth], 'reserve --bandwidth 6G a b'],
    ['reserve a --bandwidth 1G b --bandwidth 2G', [bandwidth], 'reserve a --bandwidth 6G b'],
    ['update a --extend 1h', [bandwidth], 'update a --extend 1h --bandwidth 6G'],
    ['update --extend 1h -- a', [bandwidth], 'update --extend 1h --bandwidth 6G -- a'],
    ['reserve --start-now a b', [start], 'reserve --start x a b'],
    ['reserve a b --start y --for 1h', [start, bandwidth], 'reserve a b --start x --for 1h --bandwidth 6G'],
    ['reserve a b --start y', [{ flags: ['--start'], words: [] }], 'reserve a b'],
  ])('%s', (typed, changes, expected) => {
    expect(retyped(typed.split(' '), changes)).toBe(`slices-conn ${expected}`);
  });

  test('gets the flags of the services after a variable is unset too', () => {
    const advice = 'unset X && slices-conn login';
    expect(withServices({ profile: 'lab' }, advice)).toBe('unset X && slices-conn --profile lab login');
  });

  test('is for the profile where --offline was typed too, as verify alone takes both', () => {
    expect(withServices({ offline: true, profile: 'lab' }, 'slices-conn show ID')).toBe(
      'slices-conn --profile lab show ID',
    );
  });

  test.each([
    ['experiment ci remove 1e14', '--project p --experiment e experiment ci remove 1e14'],
    ['experiment use demo', '--project p experiment use demo'],
    ['project use demo', 'project use demo'],
  ])('gets the project and the experiment that it acts in: %s', (advice, expected) => {
    const services = { project: 'p', experiment: 'e' };
    expect(withServices(services, `slices-conn ${advice}`)).toBe(`slices-conn ${expected}`);
  });

  test('does not get the flags of the services twice', () => {
    const services = { offline: true, profile: 'offline', experiment: 'x y' };
    const typed = 'slices-conn reserve --offline a b --profile=offline';
    expect(withServices(services, typed)).toBe(
      "slices-conn --experiment 'x y' reserve --offline a b --profile=offline",
    );
  });
});
