import { describe, expect, test } from 'vitest';
import { type ColorChoice, wantsColor } from '../../../src/cli/print/output.ts';
import type { Variables } from '../../../src/session/profiles/folders.ts';

/** Variables, and whether a stream has colours under `--color auto`: on a terminal, and elsewhere. */
const ENVIRONMENTS: [Variables, onTerminal: boolean, elsewhere: boolean][] = [
  [{}, true, false],
  [{ TERM: 'xterm-256color' }, true, false],
  [{ TERM: 'dumb' }, false, false],
  [{ NO_COLOR: '1' }, false, false],
  [{ NO_COLOR: '0' }, false, false],
  [{ NO_COLOR: '' }, true, false],
  [{ FORCE_COLOR: '1' }, true, true],
  [{ FORCE_COLOR: '' }, true, true],
  [{ FORCE_COLOR: '0' }, false, false],
  [{ CLICOLOR_FORCE: '1' }, true, true],
  [{ CLICOLOR_FORCE: '0' }, true, false],
  [{ CLICOLOR_FORCE: '1', FORCE_COLOR: '0' }, false, false],
  [{ FORCE_COLOR: '1', TERM: 'dumb' }, true, true],
  [{ NO_COLOR: '1', FORCE_COLOR: '1' }, false, false],
  [{ NO_COLOR: '', FORCE_COLOR: '1' }, true, true],
];

describe.each(ENVIRONMENTS)('the colours of a stream with %j', (env, onTerminal, elsewhere) => {
  test.each<[ColorChoice, boolean, boolean]>([
    ['auto', true, onTerminal],
    ['auto', false, elsewhere],
    ['always', true, true],
    ['always', false, true],
    ['never', true, false],
    ['never', false, false],
  ])('--color %s, terminal %s: %s', (choice, isTerminal, expected) => {
    expect(wantsColor(choice, env, isTerminal)).toBe(expected);
  });
});
