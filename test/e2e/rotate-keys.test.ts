import * as v from 'valibot';
import { expect, test, vi } from 'vitest';
import { KEY_SET_PATH } from '../../src/contract/routes.ts';
import { send } from '../fixtures/identity.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { newMachine } from './command.ts';
import { serveHere } from './served.ts';

const Time = v.pipe(v.string(), v.isoTimestamp());
const Rows = v.object({
  items: v.array(
    v.strictObject({
      ...{ service: v.string(), kid: v.string(), state: v.string() },
      ...{ signs_from: Time, published_until: v.nullable(Time) },
    }),
  ),
});

/** The services, and where below the base address their key sets are. */
const PATHS = [
  ['connectivity', ''],
  ['portal', '/portal'],
  ['identity', '/auth'],
] as const;

test('beside a server: it publishes the next key, without a restart; a retired one is gone', async () => {
  const where = ['--data', temporaryFolder()];
  const server = await serveHere(...where);
  const kids = async (path: string): Promise<string[]> => {
    const { text } = await send(server, 'GET', `${path}${KEY_SET_PATH}`);
    const { keys } = v.parse(v.object({ keys: v.array(v.object({ kid: v.string() })) }), JSON.parse(text));
    return keys.map(({ kid }) => kid);
  };
  /** Waits until each service publishes its keys and no other. */
  const published = async (items: v.InferOutput<typeof Rows>['items']): Promise<void> => {
    for (const [service, path] of PATHS) {
      const own = items.filter((item) => item.service === service).map(({ kid }) => kid);
      await vi.waitFor(async () => expect(await kids(path)).toEqual(own), {
        timeout: PATIENCE,
        interval: 200,
      });
    }
  };
  const [first] = await kids('');
  const { run } = newMachine();

  const rotated = await run(['serve', 'rotate-keys', ...where, '--json']);
  expect(rotated).toMatchObject({ exitCode: 0, stderr: '' });
  const { items } = v.parse(Rows, JSON.parse(rotated.stdout));
  expect(items.map(({ service, state }) => `${service} ${state}`)).toEqual(
    PATHS.flatMap(([service]) => [`${service} signing`, `${service} next`]),
  );
  expect(items[0]?.kid).toBe(first);
  const due = new Set(items.map(({ kid }) => kid));
  expect(due.size).toBe(6);
  const waits = Date.parse(String(items[1]?.signs_from)) - Date.now();
  expect(waits).toBeGreaterThan(19 * 60_000);
  expect(waits).toBeLessThanOrEqual(20 * 60_000);
  // What waits to sign is not followed yet.
  const again = v.parse(Rows, JSON.parse((await run(['--json', 'serve', 'rotate-keys', ...where])).stdout));
  expect(again.items).toEqual(items);
  expect((await run(['serve', 'rotate-keys', ...where])).stdout).toContain(` ${first} `);

  const unasked = await run(['serve', 'rotate-keys', ...where, '--retire-now']);
  expect(unasked.exitCode).toBe(2);
  expect(unasked.stderr).toContain('--yes');
  await published(items);

  const retired = await run(['--json', '--yes', 'serve', 'rotate-keys', '--retire-now', ...where]);
  const left = v.parse(Rows, JSON.parse(retired.stdout)).items;
  expect(left.map(({ kid }) => due.has(kid))).toEqual([false, false, false]);
  await published(left);
});

test('a folder without a database is left as it is', async () => {
  const { home, run } = newMachine();
  const ended = await run(['serve', 'rotate-keys', '--data', `${home}/none`]);
  expect(ended).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('There is no database') });
  expect((await run(['serve', 'rotate-keys'])).stderr).toContain('There is no database');
});
