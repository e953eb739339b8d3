import { describe, expect, test } from 'vitest';
import type { Connection } from '../../src/session/connection.ts';
import { json } from '../client/scripted-fetch.ts';
import { reportOf } from '../e2e/command.ts';
import { commandWorld, tokenOf } from '../fixtures/command-world.ts';
import { IDS } from '../fixtures/tokens.ts';

/** A world whose portal answers like this. */
function worldOf(answer: (path: string) => Response) {
  const connection: Connection = {
    fetch: async ({ url }) => answer(new URL(url).pathname),
    userToken: tokenOf(async () => 'user-token'),
    close: async () => undefined,
  };
  return commandWorld(connection);
}

const bare = { id: IDS.project, name: null, description: null, role: null, created_at: 5, expires_at: null };
const other = {
  ...bare,
  id: `${IDS.project}2`,
  name: 'demo',
  role: 'lead',
  expires_at: '2027-12-01T10:00:00Z',
};

describe('row 67: a record with facts that can’t be read is listed all the same', () => {
  const world = () =>
    worldOf((path) => json({ [path.includes('/projects/') ? 'projects' : 'experiments']: [bare, other] }));

  test.each(['project', 'experiment'])('%s list', async (noun) => {
    const { stdout, exitCode } = await world().run(noun, 'list');
    expect(exitCode).toBe(0);
    const [, first, second] = stdout.split('\n');
    expect(first?.split(/ {2,}/)).toEqual(['–', '–', '–', bare.id]);
    expect(second).toContain('demo');
  });

  test.each(['project', 'experiment'])('%s list --json: what is not known is null', async (noun) => {
    const { stdout } = await world().run(noun, 'list', '--json');
    const [first, second] = JSON.parse(stdout).items;
    expect(first).toMatchObject({ ...bare, description: '', created_at: null });
    expect(second).toMatchObject({ name: 'demo', role: 'lead', expires_at: '2027-12-01T10:00:00.000Z' });
  });

  test.each(['project', 'experiment'])('%s show, by id', async (noun) => {
    const { stdout, exitCode } = await world().run(noun, 'show', bare.id);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^(?:Project|Experiment) –\n/);
  });
});

describe('a portal without experiments', () => {
  const world = () =>
    worldOf((path) =>
      path.includes('/projects/') ? json({ projects: [other] }) : json({ detail: 'Not Found' }, 404),
    );

  test.each([
    [['experiment', 'list']],
    [['experiment', 'create', 'mine', '--end', '+1h']],
    [['list', '--all']],
    [['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '2h']],
  ])('%j: exit 3, not_supported, and how a token can be had', async (args) => {
    const result = await world().run(...args, '--json');
    const { code, exitCode, message, why, fix } = reportOf(result);
    expect({ code, exitCode }).toEqual({ code: 'not_supported', exitCode: 3 });
    expect(message).toContain('has no experiments');
    expect(why).toContain('SLICES_CONN_EXPERIMENT_TOKEN or SLICES_CONN_EXPERIMENT_TOKEN_FILE');
    expect(fix).toBe(
      `slices-conn profile set local 'experimentTokenCommand=["slices","experiment","jwt","{experiment}"]'`,
    );
    expect(result.exitCode).toBe(3);
  });
});
