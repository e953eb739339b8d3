import { expect, test } from 'vitest';
import { reportOf } from '../../e2e/command.ts';
import { commandWorld, NO_SERVICE } from '../../fixtures/command-world.ts';

test.each([
  ['neither --ref nor --environment', [], '--ref or --environment is missing.'],
  ['--ref-type without --ref', ['--environment', 'lab', '--ref-type', 'tag'], '--ref-type needs --ref.'],
])('experiment ci add: %s: exit 2, and nothing is sent', async (_, flags, message) => {
  const added = ['experiment', 'ci', 'add', '--gitlab', 'lab/measure', ...flags];
  const report = reportOf(await commandWorld(NO_SERVICE).run('--json', ...added));
  expect(report).toMatchObject({ code: 'usage', exitCode: 2, message });
});
