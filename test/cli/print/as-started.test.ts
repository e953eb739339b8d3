import { describe, expect, test } from 'vitest';
import { asStarted, startedAs } from '../../../src/cli/print/as-started.ts';

const NPX = { npm_command: 'exec', npm_lifecycle_script: "'slices-conn'" };

describe('the program is typed', () => {
  test.each([
    ['npx slices-conn', NPX],
    ['npx slices-conn', { npm_command: 'exec' }],
    ['slices-conn', {}],
    ['slices-conn', { npm_command: 'run-script', npm_lifecycle_script: 'slices-conn list' }],
    ['slices-conn', { npm_command: 'exec', npm_lifecycle_script: 'vitest' }],
  ])('%s with %o', (program, variables) => {
    expect(startedAs({ variables })).toEqual({ program, shell: 'posix' });
  });

  test.each([
    ['slices-conn', 'slices-conn'],
    ['/opt/bin/slices-conn', 'slices-conn'],
    ['C:\\tools\\slices-conn.exe', 'slices-conn'],
    ['./slices-conn-linux-x64', './slices-conn-linux-x64'],
    ['/home/a b/links', "'/home/a b/links'"],
  ])('the executable %s as %s', (executable, program) => {
    expect(startedAs({ variables: {}, executable }).program).toBe(program);
  });
});

test.each([
  ['slices-conn --offline list', 'npx slices-conn --offline list'],
  ['sudo slices-conn probe x', 'sudo npx slices-conn probe x'],
  ["It isn't known. To see it: slices-conn list", "It isn't known. To see it: npx slices-conn list"],
  ['npx slices-conn list', 'npx slices-conn list'],
  ['Another slices-conn command holds it.', 'Another slices-conn command holds it.'],
  ['/opt/slices-conn list', '/opt/slices-conn list'],
  [
    "slices-conn reserve --description 'it'\\''s for slices-conn run' && slices-conn list",
    "npx slices-conn reserve --description 'it'\\''s for slices-conn run' && npx slices-conn list",
  ],
])('%s', (advice, typed) => {
  expect(asStarted({ program: 'npx slices-conn', shell: 'posix' }, advice)).toBe(typed);
});
