import { describe, expect, onTestFinished, test } from 'vitest';
import { asStarted, startedAs } from '../../../src/cli/print/as-started.ts';
import { offlineWorld } from '../../fixtures/command-world.ts';

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

test('a command that npx started advises with npx, for people and programs; what people wrote stays', async () => {
  const world = await offlineWorld({ variables: { ...NPX, SLICES_CONN_PROFILE: 'offline' } });
  onTestFinished(() => world.server.close());
  const link = ['reserve', 'be-gent1', 'se-kth', '--start-now', '--for', '1h'];
  const described = ['--bandwidth', '8G', '--description', 'by slices-conn run'];
  const booked = await world.run(...link, ...described, '--json');
  const { id, description } = JSON.parse(booked.stdout).reservation;
  expect(description).toBe('by slices-conn run');

  const refused = JSON.parse((await world.run(...link, '--bandwidth', '9G', '--json')).stderr).error;
  const offered = refused.alternatives.map(({ command }: { command: string }) => command);
  for (const command of [refused.fix, ...offered]) expect(command).toMatch(/^npx slices-conn reserve /);
  expect((await world.run(...link, '--bandwidth', '9G')).stderr).toMatch(/ npx slices-conn reserve /);

  const card = await world.run('show', id);
  expect(card.stdout).toContain(' by slices-conn run\n');
  const deleted = await world.run('delete', '--yes', id, '--json');
  expect(JSON.parse(deleted.stdout).items[0].again).toMatch(
    /^npx slices-conn reserve .* --description 'by slices-conn run'$/,
  );
});
