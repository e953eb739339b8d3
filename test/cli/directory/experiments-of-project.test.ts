import { expect, test } from 'vitest';
import { createReferenceServer } from '../../../src/reference-server.ts';
import { json } from '../../client/replies.ts';
import { commandWorld, connectionTo } from '../../fixtures/command-world.ts';
import { atEndOfFile } from '../../fixtures/end-of-file.ts';
import { NOW } from '../../fixtures/tokens.ts';

const server = await createReferenceServer({ now: () => NOW });
atEndOfFile(() => server.close());

const PROJECTS = ['demo', 'other', 'empty'].map((name) => ({ id: `proj_p_${name}`, name }));
const EXPERIMENTS = [
  { id: 'exp_p_1', name: 'one', project_id: 'proj_p_demo' },
  { id: 'exp_p_2', name: 'two', project_id: 'proj_p_other' },
];
/** A portal with three projects, one of them without an experiment. */
const { run } = commandWorld(
  connectionTo(server, async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname.endsWith('/projects/')) return json({ projects: PROJECTS });
    if (pathname.endsWith('/experiments/')) return json({ experiments: EXPERIMENTS });
    return server.fetch(request);
  }),
);

test.each([
  [[], ['one', 'two']],
  [['--project', 'other'], ['two']],
  [['--project', 'proj_p_demo'], ['one']],
  [['--project', 'empty'], []],
])('experiment list %j lists %j', async (flags, names) => {
  const { stdout } = await run('--offline', 'experiment', 'list', '--json', ...flags);
  const { items } = JSON.parse(stdout);
  expect(items.map(({ name }: { name: string }) => name)).toEqual(names);
  // Of all, several are active; of one project there is one.
  for (const item of items) expect(item.in_use).toBe(flags.length > 0);
  if (names.length > 0) return;
  const shown = await run('--offline', 'experiment', 'list', ...flags);
  expect(shown.stdout).toBe('You are not in any experiment of this project.\n');
});
