import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { createReferenceServer, type ReferenceServer } from '../../../src/reference-server.ts';
import { type CommandWorld, commandWorld, connectionTo, offlineWorld } from '../../fixtures/command-world.ts';
import { smallTopology } from '../../fixtures/service.ts';
import { NOW } from '../../fixtures/tokens.ts';
import { person } from '../person.ts';

let world: CommandWorld & { server: ReferenceServer };
let somebody: ReturnType<typeof person>;
const run: CommandWorld['run'] = (...args) => world.run('--offline', ...args);
const LINK = ['be-gent1', 'pl-poznan1', '--bandwidth', '60G'];
const items = async () => JSON.parse((await run('--json', 'list')).stdout).items;

/** A machine with a person at its terminal, and a link of which 50 of 100 Gbps are taken from now + 4 h for 2 h. */
beforeEach(async () => {
  somebody = person();
  world = await offlineWorld({ ask: somebody.ask });
  await run('reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '50G', '--start', '+4h', '--for', '2h');
});
afterEach(async () => {
  await world.server.close();
});

describe('a person picks an alternative of a refused reserve by its number', () => {
  const asked = ['reserve', ...LINK, '--start', '+3h', '--for', '8h'];

  test('which is booked as it was said', async () => {
    somebody.answers.push('2');
    const { exitCode, stdout, stderr } = await run(...asked);
    expect(somebody.questions).toEqual(['Which number? (Enter: none) ']);
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(
      /^error: 50 of the 60 Gbps asked for are free from .+\n {2}1 .+\n {2}2 .+\n {2}3 .+\n/,
    );
    expect(stderr).toMatch(/Asking for 60 Gbps.*\.\n$/);
    const [id = ''] = /con_\S+/.exec(stdout) ?? [];
    const { reservation } = JSON.parse((await run('--json', 'show', id)).stdout);
    const hours = (text: string) => (Date.parse(text) - Date.parse(reservation.created_at)) / 3_600_000;
    expect([reservation.bandwidth, hours(reservation.start_date), hours(reservation.end_date)]).toEqual([
      60_000, 6, 14,
    ]);
  });

  test.each([[''], [undefined]])('or none with %j: exit 6, said once', async (answer) => {
    somebody.answers.push(answer);
    const { exitCode, stdout, stderr } = await run(...asked);
    expect([exitCode, stdout]).toEqual([6, '']);
    expect(stderr.match(/^error: /gm)).toHaveLength(1);
    expect(await items()).toHaveLength(1);
  });

  test('under a fresh idempotency key, and with --save', async () => {
    somebody.answers.push('1');
    const flags = ['--idempotency-key', 'k', '--save', 'link.jwt'];
    expect((await run(...asked, ...flags)).exitCode).toBe(0);
    expect(world.files.get('link.jwt')).toMatch(/^eyJ/);
    // The key is still free for what it was typed with.
    const other = 'reserve be-gent1 pl-poznan1 --bandwidth 1G --start +30h --for 1h'.split(' ');
    expect((await run(...other, '--idempotency-key', 'k')).exitCode).toBe(0);
    expect(await items()).toHaveLength(3);
  });

  test.each([['--json'], ['--no-input'], ['--yes'], ['--dry-run']])(
    'nobody is asked with %s',
    async (flag) => {
      expect((await run(...asked, flag)).exitCode).toBe(6);
      expect(somebody.questions).toEqual([]);
    },
  );
});

test('a person picks an alternative of a refused update', async () => {
  await run('reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '60G', '--start', '+1h', '--for', '1h');
  const [{ reservation }] = (await items()).filter((item: { reservation: { bandwidth: number } }) => {
    return item.reservation.bandwidth === 60_000;
  });
  // It would be more than twice as long, and so would the alternative.
  somebody.answers.push('y', '2', 'y');
  const { exitCode, stderr } = await run('update', reservation.id, '--extend', '5h');
  expect(exitCode).toBe(0);
  expect(stderr).toMatch(
    /\n {2}1 {2}50 Gbps, same period .*--bandwidth 50G\n {2}2 {2}60 Gbps for 3 h .*--extend 2h\n/,
  );
  const after = JSON.parse((await run('--json', 'show', reservation.id)).stdout).reservation;
  expect(Date.parse(after.end_date) - Date.parse(after.start_date)).toBe(3 * 3_600_000);
});

test('where no links are listed, both ends are chosen from the sites that the service names', async () => {
  const server = await createReferenceServer({ now: () => NOW, topology: smallTopology(2) });
  onTestFinished(() => server.close());
  const withoutLinks = async (request: Request) =>
    request.url.includes('/links') ? new Response(null, { status: 404 }) : server.fetch(request);
  const { runIn } = commandWorld(connectionTo(server, withoutLinks));
  somebody.answers.push('be-gent1', 'pl-poznan1');
  const flags = ['--bandwidth', '1G', '--start-now', '--for', '1h'];
  const { stderr } = await runIn(somebody, '--offline', 'reserve', ...flags);
  expect(stderr).toMatch(/^From be-gent1 to which site\?\n +1 {2}fr-lille\n +2 {2}pl-poznan1\n(?! +3)/m);
});
