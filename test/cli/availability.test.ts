import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ReferenceServer } from '../../src/reference-server.ts';
import { reportOf } from '../e2e/command.ts';
import { type CommandWorld, commandWorld, offlineWorld, tokenOf } from '../fixtures/command-world.ts';
import { NOW } from '../fixtures/tokens.ts';

const HOUR = 3_600_000;
const iso = (hours: number) => new Date(NOW + hours * HOUR).toISOString();
const GENT_POZNAN = ['be-gent1', 'pl-poznan1'];

let world: CommandWorld & { server: ReferenceServer };
const run: CommandWorld['run'] = (...args) => world.run('--offline', ...args);
const json = async (...args: string[]) => JSON.parse((await run('--json', 'availability', ...args)).stdout);

/** A link of 100 Gbps, of which 99 and then all are taken from now + 2 h to + 4 h and to + 6 h. */
beforeAll(async () => {
  world = await offlineWorld();
  await run('reserve', ...GENT_POZNAN, '--bandwidth', '99G', '--start', '+2h', '--for', '4h');
  await run('reserve', ...GENT_POZNAN, '--bandwidth', '1G', '--start', '+4h', '--for', '2h');
});
afterAll(async () => {
  await world.server.close();
});

describe('--json', () => {
  test('has the exact steps of a link, from now for a week', async () => {
    const { link, items, slots } = await json(...GENT_POZNAN);
    expect(link).toEqual({ site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 100_000 });
    expect(items.map((item: Record<string, unknown>) => Object.keys(item))).toEqual(
      items.map(() => ['start_date', 'end_date', 'bandwidth', 'bandwidth_max', 'vlans']),
    );
    expect(
      items.map((item: { start_date: string; bandwidth: number }) => [item.start_date, item.bandwidth]),
    ).toEqual([
      [iso(0), 100_000],
      [iso(2), 1000],
      [iso(4), 0],
      [iso(6), 100_000],
    ]);
    expect([items.at(-1).end_date, slots]).toEqual([iso(7 * 24), null]);
  });

  test('has the starts that fit', async () => {
    const { slots } = await json(...GENT_POZNAN, '--for', '8h', '--bandwidth', '10G', '--duration', '1h');
    expect(slots).toEqual([
      { first_start_date: iso(0), last_start_date: iso(1) },
      { first_start_date: iso(6), last_start_date: iso(7) },
    ]);
  });

  test('of a site has all its links, the site first', async () => {
    const { items } = await json('pl-poznan1', '--for', '1h');
    expect(items.length).toBeGreaterThan(1);
    for (const { link, items: parts, slots } of items) {
      expect([link.site1, parts.length, slots]).toEqual(['pl-poznan1', 1, null]);
    }
  });
});

describe('for people', () => {
  test('a chart, and in words when a reservation can start, with a command that books the first', async () => {
    const need = ['--bandwidth', '10G', '--duration', '1h', '--for', '8h'];
    const { exitCode, stdout } = await run('--tz', 'UTC', 'availability', ...GENT_POZNAN, ...need);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^ *100 Gbps ┤/);
    const [said, advice] = stdout.trimEnd().split('\n').slice(-2);
    expect(said).toMatch(
      /^10 Gbps for 1 h can start: now to \d\d:\d\d, \w+ \d+ \w+ \d\d:\d\d to \d\d:\d\d\.$/,
    );
    expect(advice).toBe(
      '  try: slices-conn --offline reserve be-gent1 pl-poznan1 --bandwidth 10G --start-now --for 1h',
    );
    const words = (advice ?? '').trim().split(' ').slice(2);
    expect((await world.run(...words, '--dry-run')).exitCode).toBe(0);
  });

  test('where none starts, the next step looks further ahead', async () => {
    const need = ['--bandwidth', '100G', '--duration', '3h', '--for', '6h'];
    const { stdout } = await run('availability', ...GENT_POZNAN, ...need);
    expect(stdout).toContain("100 Gbps for 3 h can't start in this time.\n");
    expect(stdout).toMatch(/--bandwidth 100G --earliest --for 3h --dry-run\n$/);
  });
});

describe('--svg', () => {
  test('writes a picture, beside the chart', async () => {
    const { stdout } = await run('availability', ...GENT_POZNAN, '--svg', 'week.svg');
    expect(world.files.get('week.svg')).toContain('<svg ');
    expect(stdout).toMatch(/┤[\s\S]*\nWritten to week\.svg\.\n$/);
  });

  test('replaces no file unasked', async () => {
    world.files.set('mine.svg', 'mine');
    const { exitCode } = await run('availability', ...GENT_POZNAN, '--svg', 'mine.svg');
    expect([exitCode, world.files.get('mine.svg')]).toEqual([2, 'mine']);
    await run('availability', ...GENT_POZNAN, '--svg', 'mine.svg', '--yes');
    expect(world.files.get('mine.svg')).toContain('<svg ');
  });
});

describe('what can’t be told', () => {
  const told = async (...args: string[]) => reportOf(await run('--json', 'availability', ...args));

  test.each<[string, number, string, string?]>([
    [
      'be-gent1 pl-poznan1 --bandwidth 1G',
      2,
      '--bandwidth needs --duration.',
      '--bandwidth 1G --duration 2h',
    ],
    ['be-gent1 pl-poznan1 --duration 1h', 2, '--duration needs --bandwidth.', '--duration 1h --bandwidth 1G'],
    ['be-gent1 pl-poznan', 6, 'There is no site "pl-poznan"', 'availability be-gent1 pl-poznan1'],
    ['gent', 6, 'There is no site "gent".', 'availability be-gent1'],
    ['uk-london', 6, 'There is no site "uk-london".', 'slices-conn --offline sites'],
  ])('%j', async (args, exitCode, message, fix = '') => {
    const report = await told(...args.split(' '));
    expect([report.exitCode, report.message]).toEqual([exitCode, expect.stringContaining(message)]);
    expect(report.fix ?? '').toContain(fix);
  });

  test('by a service without the extension: exit 3; nor does it get a search, which it would book wrongly', async () => {
    const sent: string[] = [];
    const bare = commandWorld({
      fetch: async (request) => {
        const { pathname } = new URL(request.url);
        sent.push(`${request.method} ${pathname}`);
        return pathname === '/api-spec'
          ? Response.json({ openapi: '3.1.0', paths: {} })
          : Response.json({ detail: 'Not Found' }, { status: 404 });
      },
      userToken: tokenOf(async () => 'x.y.z'),
      experimentToken: tokenOf(async () => `x.${btoa(JSON.stringify({ exp_exp: iso(24) }))}.z`),
      close: async () => undefined,
    });
    for (const sites of [GENT_POZNAN, ['be-gent1']]) {
      const { code, exitCode } = reportOf(await bare.run('--offline', '--json', 'availability', ...sites));
      expect([code, exitCode]).toEqual(['not_supported', 3]);
    }
    for (const flags of [
      ['--bandwidth', '1G', '--for', '1h', '--earliest'],
      ['--volume', '1T', '--end', '+1h'],
      ...[['--direct'], ['--avoid', 'se-kth'], ['--via', 'se-kth']].map((route) => [
        ...['--bandwidth', '1G', '--start-now', '--for', '1h'],
        ...route,
      ]),
    ]) {
      for (const more of [[], ['--dry-run']]) {
        const ended = await bare.run('--offline', '--json', 'reserve', ...GENT_POZNAN, ...flags, ...more);
        expect(reportOf(ended)).toMatchObject({ code: 'not_supported', exitCode: 3, maybeDone: false });
      }
    }
    expect(sent.filter((line) => !line.startsWith('GET '))).toEqual([]);
  });
});
