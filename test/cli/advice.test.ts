import { describe, expect, test } from 'vitest';
import { renamed, retyped } from '../../src/cli/command-line.ts';
import { asStarted, BY_NAME, type ServiceFlags } from '../../src/cli/print/as-started.ts';
import type { Changes } from '../../src/contract/failure.ts';
import { commandLines } from '../fixtures/command-world.ts';

const typedAs = await commandLines();

describe('the typed command with other flags', () => {
  test.each<[string, Changes, string]>([
    ['reserve a b --bandwidth 1X --for 2h', { bandwidth: '1G' }, 'reserve a b --bandwidth 1G --for 2h'],
    ['reserve --bandwidth=9G a b', { bandwidth: '6G' }, 'reserve --bandwidth 6G a b'],
    ['reserve a --bandwidth 1G b --bandwidth 2G', { bandwidth: '6G' }, 'reserve a --bandwidth 6G b'],
    ['--offline reserve a b --for 2h', { startNow: true }, '--offline reserve a b --for 2h --start-now'],
    ['reserve a b --for', { for: '2h' }, 'reserve a b --for 2h'],
    ['reserve a b --name --start-now', { startNow: undefined }, 'reserve a b --name --start-now'],
    ['reserve a b --for --json 2h --earliest', { for: '3h' }, 'reserve a b --for 3h --json --earliest'],
    ['update a --extend 1h', { bandwidth: '6G' }, 'update a --extend 1h --bandwidth 6G'],
    ['update --extend 1h -- a', { bandwidth: '6G' }, 'update --extend 1h --bandwidth 6G -- a'],
    ['run a b -- tool --wait 5', { wait: '1d' }, 'run a b --wait 1d -- tool --wait 5'],
    ['serve audit --link a --since 2d', { link: ['a', 'b'] }, 'serve audit --link a b --since 2d'],
    ['serve --trust a --trust b', { trust: ['c', 'd'] }, 'serve --trust c --trust d'],
    ['reserve --start-now a b', { startNow: undefined, start: 'x' }, 'reserve --start x a b'],
    ['reserve a b --start y', { start: undefined }, 'reserve a b'],
    [
      'reserve a b --start y --for 1h',
      { start: undefined, startNow: true, for: undefined, end: 'z', bandwidth: '6G' },
      'reserve a b --start-now --end z --bandwidth 6G',
    ],
  ])('%s', (typed, changes, expected) => {
    expect(retyped(typedAs(typed), changes)).toBe(`slices-conn ${expected}`);
  });

  test('with words that a shell takes as they were', () => {
    const typed = ['experiment', 'create', 'x', '--description', "it's $HOME", '--end', 'soon'];
    expect(retyped(typedAs(typed), { end: '+30d' })).toBe(
      `slices-conn experiment create x --description 'it'\\''s $HOME' --end +30d`,
    );
  });
});

test('names are replaced in arguments, and in lists of names', () => {
  const names = new Map([['gent', 'be-gent1']]);
  expect(renamed(typedAs('reserve gent b --via=c,gent --avoid gent,d --name x'), names)).toBe(
    'slices-conn reserve be-gent1 b --via=c,be-gent1 --avoid be-gent1,d --name x',
  );
});

describe('an advised command', () => {
  const withServices = (services: ServiceFlags, advice: string): string =>
    asStarted({ ...BY_NAME, services }, advice);

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

  test('gets them in a sentence, but not in quotes', () => {
    const services = { profile: 'lab', experiment: 'x' };
    expect(
      withServices(services, "See it: slices-conn show 'slices-conn list', or slices-conn help times."),
    ).toBe(
      "See it: slices-conn --profile lab --experiment x show 'slices-conn list', or slices-conn help times.",
    );
  });

  test('does not get the flags of the services twice', () => {
    const services = { offline: true, profile: 'offline', experiment: 'x y' };
    const typed = 'slices-conn reserve --offline a b --profile=offline';
    expect(withServices(services, typed)).toBe(
      "slices-conn --experiment 'x y' reserve --offline a b --profile=offline",
    );
  });
});
