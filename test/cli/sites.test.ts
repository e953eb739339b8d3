import { expect, test } from 'vitest';
import { SITES } from '../../src/contract/links.ts';
import { createReferenceServer } from '../../src/reference-server.ts';
import { json } from '../client/replies.ts';
import { reportOf } from '../e2e/command.ts';
import { commandWorld, connectionTo } from '../fixtures/command-world.ts';
import { atEndOfFile } from '../fixtures/end-of-file.ts';
import { smallTopology } from '../fixtures/service.ts';
import { NOW } from '../fixtures/tokens.ts';

const [link] = smallTopology(3).links;
const server = await createReferenceServer({
  now: () => NOW,
  topology: {
    sites: ['de-lab1', 'de-lab2', 'nl-lab3'],
    links: link ? [{ ...link, site1: 'de-lab1', site2: 'de-lab2' }] : [],
  },
});
atEndOfFile(() => server.close());
const here = { run: commandWorld(connectionTo(server)).run };

test('sites are those of the service, also one without a link', async () => {
  const { items, links, source } = JSON.parse((await here.run('--offline', 'sites', '--json')).stdout);
  expect(items).toEqual([{ site: 'de-lab1' }, { site: 'de-lab2' }, { site: 'nl-lab3' }]);
  expect([links.length, source]).toEqual([1, 'service']);
  expect((await here.run('--offline', 'sites')).stdout).toMatch(/^nl-lab3 +–$/m);
});

test('between two sites, the routes that a reservation may take', async () => {
  const ends = ['--offline', 'sites', 'de-lab1', 'de-lab2'];
  const { items } = JSON.parse((await here.run(...ends, '--json')).stdout);
  expect(items).toEqual([{ sites: ['de-lab1', 'de-lab2'], bandwidth: 1000, by_default: true }]);
  expect((await here.run(...ends)).stdout).toMatch(/^1 Gbps +by itself +de-lab1 – de-lab2$/m);
  expect((await here.run('--offline', 'sites', 'de-lab1')).exitCode).toBe(2);
  expect((await here.run('--offline', 'sites', 'de-lab1', 'nl-lab3')).exitCode).toBe(6);
});

test.each([
  ['sites', 'de-lab1', 'de-lab2'],
  ['availability', 'de-lab1', 'de-lab2', '--via', 'nl-lab3'],
])('at a service without routes, %s is a question that would book nothing', async (...words) => {
  const without = connectionTo(server, async (request) => {
    const { pathname } = new URL(request.url);
    return /routes|api-spec/.test(pathname) ? json({}, 404) : server.fetch(request);
  });
  const report = reportOf(await commandWorld(without).run('--offline', '--json', ...words));
  expect(report).toMatchObject({ code: 'not_supported', exitCode: 3 });
  expect(report.why).toMatch(/^Its API description does not mention [^,.]+, `avoid` and `direct`\.$/);
});

test('a mistyped site is compared with the sites of the service', async () => {
  const reserve = ['reserve', 'de-lab', 'de-lab2', '--bandwidth', '1', '--start-now', '--for', '1h'];
  const around = ['availability', 'de-lab2', 'nl-lab3', '--avoid', 'de-la1'];
  for (const words of [
    reserve,
    around,
    ['sites', 'de-lab2', 'de-la1'],
    ['availability', 'de-la1'],
    ['list', '--site', 'de-la1'],
  ]) {
    const { stdout, stderr } = await here.run('--offline', ...words);
    expect(stdout + stderr).toContain('Did you mean de-lab1?');
    expect(stdout + stderr).not.toContain(SITES[0]);
  }
});

test('a service that tells neither sites nor links: the built-in sites, and a notice', async () => {
  const without = commandWorld(connectionTo(server, async () => json({ detail: 'Not Found' }, 404)));
  const { stdout, stderr } = await without.run('--offline', 'sites', '--json');
  const items = SITES.map((site) => ({ site }));
  expect(JSON.parse(stdout)).toEqual({ items, links: null, source: 'built-in' });
  expect(stderr).toContain('does not tell');
});
