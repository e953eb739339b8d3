import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { SITES, type Topology } from '../../../src/contract/links.ts';
import { createReferenceServer, type ReferenceServer } from '../../../src/reference-server.ts';
import {
  type Changes,
  type CommandRun,
  type CommandWorld,
  commandWorld,
  connectionTo,
} from '../../fixtures/command-world.ts';
import { recordedStream } from '../../fixtures/recorded-stream.ts';
import { NOW } from '../../fixtures/tokens.ts';
import { person } from '../person.ts';

const HOUR = 3_600_000;

/** Twenty links of 1 Gbps from the first sites to others. */
const PAIRS = SITES.slice(0, 2).flatMap((site1, first) =>
  SITES.slice(2).map((site2, second) => ({ site1, site2, tags: 100 * (first * 10 + second) + 1 })),
);
const TOPOLOGY: Topology = {
  sites: [...SITES],
  links: PAIRS.map(({ site1, site2, tags }) => {
    const own: [number, number] = [tags, tags + 9];
    return {
      ...{ site1, site2, bandwidth: 1000, site1_s_tags: own, site1_c_tags: own },
      ...{ site2_s_tags: own, site2_c_tags: own },
    };
  }),
};

let server: ReferenceServer;
let world: CommandWorld;
/** The clock. */
let now: number;
/** The requests that changed something, as `POST …`, dry runs left out. */
let writes: string[];
let requests: number;
/** Whether the description of the service mentions batches. */
let hasBatches: boolean;
/** Whether it is a service that describes nothing and signs nothing. */
let isBare: boolean;
/** Kills the client at the request of this number, before it leaves or after the service has answered. */
let killAt: { request: number; when: 'before' | 'after'; kill: () => void } | undefined;

/** A client that is killed goes on with nothing: its request never ends. */
function killed(): Promise<never> {
  killAt?.kill();
  return new Promise(() => undefined);
}

function worldOf(changes: Changes = {}): CommandWorld {
  const fetch = async (request: Request): Promise<Response> => {
    requests += 1;
    const at = killAt?.request === requests ? killAt.when : undefined;
    if (at === 'before') return killed();
    const { method, url } = request;
    if (method !== 'GET' && !url.includes('dry_run=true')) writes.push(`${method} ${new URL(url).pathname}`);
    if (isBare && url.endsWith('/api-spec')) return new Response(null, { status: 404 });
    if (isBare && url.includes('/connectivity')) request.headers.set('accept', 'application/json');
    const response = await server.fetch(request);
    if (at === 'after') return killed();
    return hasBatches ? response : withoutBatches(request, response);
  };
  return commandWorld(connectionTo(server, fetch), {
    variables: { SLICES_CONN_PROFILE: 'offline' },
    now: () => now,
    ...changes,
  });
}

/** A service whose description mentions no batch has none. */
async function withoutBatches({ url }: Request, response: Response): Promise<Response> {
  if (!url.endsWith('/api-spec')) return response;
  return new Response((await response.text()).replace('"batch",', ''), response);
}

beforeEach(async () => {
  now = NOW;
  writes = [];
  requests = 0;
  hasBatches = false;
  isBare = false;
  killAt = undefined;
  server = await createReferenceServer({ now: () => now, topology: TOPOLOGY });
  world = worldOf();
});
afterEach(() => server.close());

/** A plan file of so many links. @param bandwidths of some by their number; else 100 Mbps */
function links(count: number, bandwidths: Readonly<Record<number, string>> = {}): string {
  const lines = PAIRS.slice(0, count).map(
    ({ site1, site2 }, at) =>
      `  link-${at + 1}: {sites: [${site1}, ${site2}], bandwidth: ${bandwidths[at + 1] ?? '100M'}}`,
  );
  return `version: 1\ndefaults: {start: 2026-12-01T09:00:00Z, for: 8h}\nreservations:\n${lines.join('\n')}\n`;
}

async function run(file: string, ...args: string[]): Promise<CommandRun> {
  world.files.set('demo.yaml', file);
  const [command = '', ...flags] = args;
  return world.run(command, 'demo.yaml', ...flags);
}

interface Result {
  items: {
    name: string;
    action: string;
    fits: boolean;
    reservation: unknown;
    requested: unknown;
    error: unknown;
  }[];
  applies: boolean;
}

const resultOf = ({ stdout }: CommandRun): Result => JSON.parse(stdout);

/** The reservations that the service has now. */
async function existing(): Promise<{ site1: string; site2: string; bandwidth: number }[]> {
  const { stdout } = await worldOf().run('list', '--json');
  return JSON.parse(stdout).items.map(({ reservation }: { reservation: object }) => reservation);
}

describe('plan and apply', () => {
  it('the first run makes everything, and the second writes nothing', async () => {
    const first = await run(links(3), 'apply');
    expect([first.exitCode, first.stderr]).toEqual([0, '']);
    expect(first.stdout).toMatch(/Applied: 3 created\.\n$/);
    expect(await existing()).toHaveLength(3);
    writes = [];
    const second = await run(links(3), 'apply');
    expect([second.exitCode, second.stdout]).toEqual([0, 'Nothing to do: 3 as the file says.\n']);
    expect(writes).toEqual([]);
  });

  it('a reservation that starts now is met while it lasts, and made anew after', async () => {
    const file = links(1).replace('start: 2026-12-01T09:00:00Z, for: 8h', 'start: now, for: 2h');
    await run(file, 'apply');
    const [made] = await existing();
    expect(made).toMatchObject({ start_date: new Date(NOW).toISOString() });
    now = NOW + HOUR;
    expect((await run(file, 'apply')).stdout).toMatch(/^Nothing to do/);
    now = NOW + 3 * HOUR;
    expect((await run(file, 'apply')).stdout).toMatch(/Applied: 1 created\.\n$/);
  });

  it('never moves the start of one that has begun', async () => {
    hasBatches = true;
    await run(links(1), 'apply');
    const before = await existing();
    now = Date.parse('2026-12-01T10:00:00Z');
    for (const start of ['T11', 'T08', 'T10']) {
      const moved = links(1).replace('T09', start);
      const { exitCode, stdout, stderr } = await run(moved, 'apply', '--yes', '--move');
      expect([exitCode, stdout + stderr]).toEqual([6, expect.stringContaining('began at Tue 1 Dec 09:00')]);
    }
    expect(await existing()).toEqual(before);
    expect((await run(links(1, { 1: '200M' }).replace('8h', '9h'), 'apply')).exitCode).toBe(0);
  });

  it('plan says what apply would do, and does nothing', async () => {
    await run(links(1), 'apply');
    writes = [];
    const result = await run(links(3, { 3: '2G' }), 'plan');
    expect([result.exitCode, result.stderr]).toEqual([6, '']);
    expect(result.stdout.split('\n')).toEqual([
      'Experiment demo, times in UTC',
      '  + link-2  hu-sztaki – pl-poznan1  100 Mbps  1 Dec 09:00 → 17:00  fits',
      '  ✗ link-3  gr-uth – pl-poznan1     2 Gbps    1 Gbps free 1 Dec 09:00–17:00',
      'Plan: 1 to create, 1 unchanged, 1 does not fit: nothing would be applied.',
      '',
    ]);
    expect(writes).toEqual([]);
    expect(await existing()).toHaveLength(1);
    const { items, applies } = resultOf(await run(links(3, { 3: '2G' }), 'plan', '--json'));
    expect(applies).toBe(false);
    const dates = { start_date: '2026-12-01T09:00:00.000Z', end_date: '2026-12-01T17:00:00.000Z' };
    const wanted = (site2: string, bandwidth: number) => ({
      site1: 'pl-poznan1',
      site2,
      bandwidth,
      ...dates,
    });
    expect(items).toEqual([
      {
        ...{ kept: false, name: 'link-1', action: 'none', fits: true, error: null },
        reservation: expect.objectContaining(wanted('be-antwerp', 100)),
        requested: expect.objectContaining(wanted('be-antwerp', 100)),
      },
      {
        ...{ kept: false, name: 'link-2', action: 'create', fits: true, reservation: null, error: null },
        requested: expect.objectContaining(wanted('hu-sztaki', 100)),
      },
      {
        ...{ kept: false, name: 'link-3', action: 'create', fits: false, reservation: null },
        requested: expect.objectContaining(wanted('gr-uth', 2000)),
        error: expect.objectContaining({
          code: 'bandwidth_unavailable',
          message: expect.any(String),
          limits: [expect.objectContaining({ limit: 'bandwidth', free: 1000 })],
        }),
      },
    ]);
  });

  it('a site that there is not is told with its line', async () => {
    const file = links(1).replace('pl-poznan1', 'pl-poznan');
    const alone = await run(file, 'plan');
    expect([alone.exitCode, alone.stdout]).toEqual([
      6,
      expect.stringMatching(/demo\.yaml:4:19: There is no site/),
    ]);
  });

  test.each<[string, string, string[], number]>([
    ['it fits', links(2), [], 0],
    ['it fits and changes something', links(2), ['--exit-code'], 11],
    ['it does not fit', links(2, { 2: '2G' }), [], 6],
    ['it does not fit', links(2, { 2: '2G' }), ['--exit-code'], 6],
    ['an error in the file', 'version: 2', ['--exit-code'], 2],
  ])('plan ends with its own code: %s', async (_, file, flags, exitCode) => {
    await run(links(1), 'apply');
    expect((await run(file, 'plan', ...flags)).exitCode).toBe(exitCode);
    expect((await run(file, 'plan', '--json', ...flags)).exitCode).toBe(exitCode);
  });

  it('reads standard input', async () => {
    world.files.set('-', links(1));
    expect((await world.run('apply', '-')).exitCode).toBe(0);
    world.files.set('-', 'version: 2');
    expect((await world.run('plan', '-')).stderr).toContain('<stdin>:1:10: ');
  });

  it('acts in the experiment of the file, and refuses a flag that names another', async () => {
    await world.run('experiment', 'create', 'second', '--end', '+60d');
    const file = `experiment: second\n${links(1)}`;
    expect((await run(file, 'apply')).exitCode).toBe(0);
    expect((await run(file, 'apply', '--experiment', 'second')).stdout).toMatch(/^Nothing to do/);
    const other = await run(file, 'apply', '--experiment', 'demo');
    expect(other).toMatchObject({ exitCode: 2, stdout: '' });
    expect(other.stderr).toContain('The file is for the experiment second, and not for demo.');
    expect(other.stderr).toContain('try: slices-conn apply demo.yaml --experiment second');
  });
});

describe('a service without batches', () => {
  it('20 links with the 13th refused leave nothing behind', async () => {
    const result = await run(links(20, { 13: '2G' }), 'apply', '--json');
    expect(result).toMatchObject({ exitCode: 6, stdout: '' });
    const { error } = JSON.parse(result.stderr);
    expect(error).toMatchObject({
      code: 'bandwidth_unavailable',
      message: '1 of the changes does not fit; nothing was changed.',
      why: expect.stringContaining('12 that were made were deleted again.'),
      fix: 'slices-conn plan demo.yaml --json',
      exitCode: 6,
      maybeDone: false,
    });
    expect(error.items).toHaveLength(20);
    expect(error.items.filter(({ error: own }: { error: object | null }) => own !== null)).toEqual([
      expect.objectContaining({ name: 'link-13', action: 'create', fits: false }),
    ]);
    expect(await existing()).toEqual([]);
    expect(writes.filter((write) => write.startsWith('DELETE'))).toHaveLength(12);
    expect((await run(links(3, { 3: '2G' }), 'apply')).stderr.split('\n')).toEqual([
      'error: 1 of the changes does not fit; nothing was changed.',
      '  why: 2 that were made were deleted again.',
      '    link-3: The link has 1 Gbps; 2 Gbps were asked for.',
      '  try: slices-conn plan demo.yaml',
      '',
    ]);
  });

  it('that signs nothing: what was made is deleted again, and the next step leads on', async () => {
    isBare = true;
    const { error } = JSON.parse((await run(links(2), 'apply', '--json')).stderr);
    expect(error).toMatchObject({ code: 'unsigned', exitCode: 9, reservation: null, maybeDone: false });
    expect(error.why).toContain('1 that was made was deleted again.');
    expect(writes).toEqual([expect.stringMatching(/^POST /), expect.stringMatching(/^DELETE /)]);
    expect(await existing()).toEqual([]);
    const [program, ...words] = error.fix.split(' ');
    expect([program, words.at(-1)]).toEqual(['slices-conn', '--allow-unsigned']);
    expect(await world.run(...words)).toMatchObject({ exitCode: 0 });
  });

  it('and without dry runs: a refused apply does not lead to plan, which can not ask whether it fits', async () => {
    isBare = true;
    const { error } = JSON.parse((await run(links(1, { 1: '2G' }), 'apply', '--json')).stderr);
    expect(error).toMatchObject({ code: 'bandwidth_unavailable', exitCode: 6 });
    expect(error.fix).not.toContain(' plan ');
    expect(await run(links(1, { 1: '2G' }), 'plan')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining("can't be asked whether"),
    });
  });

  test.each([
    ['an update beside a creation', links(3, { 1: '200M' }), [], 'update \\S+ --help'],
    [
      'two deletions',
      links(0).replace('reservations:', 'reservations: {}'),
      ['--prune', '--yes'],
      'delete \\S+ --help',
    ],
    ['--earliest', links(3), ['--earliest'], '(?:plan|apply) \\S+'],
  ])('can not do %s, and nothing is sent', async (_, file, flags, advised) => {
    await run(links(2), 'apply');
    writes = [];
    for (const command of ['plan', 'apply']) {
      const result = await run(file, command, ...flags);
      expect([result.exitCode, result.stdout]).toEqual([3, '']);
      expect(result.stderr).toContain("This service can't make several changes together.");
      expect(result.stderr).toMatch(new RegExp(`  try: slices-conn (?:--\\S+ )*${advised}\n$`));
    }
    expect(writes).toEqual([]);
  });

  test('makes one update, and one deletion', async () => {
    await run(links(2), 'apply');
    writes = [];
    const alone = await run(links(2, { 1: '200M' }), 'apply');
    const pruned = await run(links(1, { 1: '200M' }), 'apply', '--prune', '--yes');
    expect([alone.exitCode, pruned.exitCode]).toEqual([0, 0]);
    expect(writes).toEqual([expect.stringMatching(/^PUT /), expect.stringMatching(/^DELETE /)]);
  });
});

describe.each([false, true])('killed at any request, with batches: %s', (together) => {
  test.each(['before', 'after'] as const)(
    '%s it was answered: the next apply ends at the state of the file, and the one after writes nothing',
    async (when) => {
      hasBatches = together;
      const file = links(4);
      for (let request = 1; ; request += 1) {
        await server.close();
        server = await createReferenceServer({ now: () => now, topology: TOPOLOGY });
        world = worldOf();
        requests = 0;
        const kill = Promise.withResolvers<void>();
        killAt = { request, when, kill: kill.resolve };
        const ended = await Promise.race([run(file, 'apply'), kill.promise]);
        killAt = undefined;
        if (ended) {
          // It ran to its end: every request of an apply has been tried.
          expect([ended.exitCode, request]).toEqual([0, requests + 1]);
          expect(writes.length).toBeGreaterThanOrEqual(together ? 1 : 4);
          break;
        }
        const again = await run(file, 'apply');
        expect([request, again.exitCode, again.stderr]).toEqual([request, 0, '']);
        expect((await existing()).map(({ site2 }) => site2).sort()).toEqual(
          PAIRS.slice(0, 4)
            .map(({ site2 }) => site2)
            .sort(),
        );
        writes = [];
        expect((await run(file, 'apply')).stdout).toMatch(/^Nothing to do/);
        expect(writes).toEqual([]);
      }
    },
  );
});

describe('a service with batches', () => {
  beforeEach(() => {
    hasBatches = true;
  });

  it('20 links with the 13th refused leave nothing behind, and one request asks for them', async () => {
    const result = await run(links(20, { 13: '2G' }), 'apply', '--json');
    expect(result).toMatchObject({ exitCode: 6, stdout: '' });
    const { error } = JSON.parse(result.stderr);
    expect(error).toMatchObject({
      ...{ code: 'bandwidth_unavailable', exitCode: 6, maybeDone: false },
      message: '1 of the changes does not fit; nothing was changed.',
      // No later time helps: what the link has does.
      fix: expect.stringMatching(/^slices-conn availability \S+ \S+$/),
    });
    expect(error.items.map(({ fits }: { fits: boolean }) => fits)).toEqual(
      Array.from({ length: 20 }, (_, at) => at !== 12),
    );
    expect(writes).toEqual(['POST /apis/v1alpha1/connectivity:batch']);
    expect(await existing()).toEqual([]);
  });

  it('creates, updates and deletes together; a second run writes nothing', async () => {
    await run(links(3), 'apply');
    writes = [];
    const file = links(4, { 2: '500M' }).replace(/.*link-1:.*\n/, '');
    const planned = await run(file, 'plan', '--prune');
    expect([planned.exitCode, planned.stderr]).toEqual([0, '']);
    expect(planned.stdout.replaceAll(/con_\S+/g, 'ID').split('\n')).toEqual([
      'Experiment demo, times in UTC',
      expect.stringMatching(/^ {2}~ link-2 {2}.* {2}100 → 500 Mbps {2}ID +fits, tags stay$/),
      expect.stringMatching(/^ {2}\+ link-4 {2}.* {2}100 Mbps +1 Dec 09:00 → 17:00 +fits$/),
      expect.stringMatching(/^ {2}- link-1 {2}.* {2}100 Mbps +ID +not in the file$/),
      'Plan: 1 to create, 1 to update, 1 to delete, 1 unchanged.',
      '',
    ]);
    expect(writes).toEqual([]);
    const unasked = await run(file, 'apply', '--prune');
    expect(unasked).toMatchObject({ exitCode: 2, stdout: '' });
    expect(unasked.stderr).toContain('--prune deletes link-1, which was not confirmed.');
    expect(writes).toEqual([]);
    const applied = await run(file, 'apply', '--prune', '--yes');
    expect([applied.exitCode, applied.stderr]).toEqual([0, '']);
    expect(applied.stdout).toMatch(/\nApplied: 1 created, 1 updated, 1 deleted, 1 unchanged\.\n$/);
    expect(writes).toHaveLength(1);
    const { items } = resultOf(await run(file, 'apply', '--prune', '--json'));
    expect(items.map(({ name, action }) => [name, action])).toEqual([
      ['link-2', 'none'],
      ['link-3', 'none'],
      ['link-4', 'none'],
    ]);
    expect(writes).toHaveLength(1);
  });

  it('--prune leaves reservations without a name', async () => {
    const [pair] = PAIRS;
    const flags = ['--bandwidth', '1M', '--start', '+1d', '--for', '1h'];
    await world.run('reserve', pair?.site1 ?? '', pair?.site2 ?? '', ...flags);
    await run(links(1), 'apply');
    const none = links(0).replace('reservations:', 'reservations: {}');
    expect((await run(none, 'apply')).stdout).toBe('Nothing to do.\n');
    expect((await run(none, 'apply', '--prune', '--yes')).stdout).toMatch(/Applied: 1 deleted\.\n$/);
    expect(await existing()).toEqual([expect.objectContaining({ bandwidth: 1 })]);
  });

  it.each([
    ['y', 0, 0],
    ['n', 0, 1],
  ])('asks a person before --prune deletes: %s', async (answer, exitCode, left) => {
    await run(links(1), 'apply');
    const { ask, questions } = person(answer);
    const asked = worldOf({ ask });
    asked.files.set('none.yaml', links(0).replace('reservations:', 'reservations: {}'));
    const ended = await asked.run('apply', 'none.yaml', '--prune');
    expect(ended.exitCode).toBe(exitCode);
    expect(ended.stderr).toMatch(
      /^To be deleted or .+ \(times in UTC\):\n {2}link-1: \S+ – \S+, \d+ Mbps, .+\n {4}→ not in the file\n/,
    );
    expect(questions).toEqual(['Make this change? [y/N] ']);
    expect(await existing()).toHaveLength(left);
  });

  it('says from when on all fit together, and --earliest makes them so', async () => {
    const [{ site1, site2 } = { site1: '', site2: '' }] = PAIRS;
    const period = ['--start', '2026-12-01T12:00:00Z', '--for', '3h'];
    await world.run('reserve', site1, site2, '--bandwidth', '950M', ...period);
    const planned = await run(links(2), 'plan');
    expect(planned.exitCode).toBe(6);
    expect(planned.stdout).toContain('All fit together from 1 Dec 15:00 (--earliest).\n');
    const refused = await run(links(2), 'apply');
    expect(refused.exitCode).toBe(6);
    expect(refused.stderr).toContain('try: slices-conn apply demo.yaml --earliest\n');
    expect((await run(links(2), 'plan', '--earliest')).stdout).toMatch(/1 Dec 15:00 → 23:00 {2}fits\n/);
    expect((await run(links(2), 'apply', '--earliest')).exitCode).toBe(0);
    expect((await existing()).filter(({ bandwidth }) => bandwidth === 100)).toEqual([
      expect.objectContaining({ start_date: '2026-12-01T15:00:00.000Z' }),
      expect.objectContaining({ start_date: '2026-12-01T15:00:00.000Z' }),
    ]);
    writes = [];
    for (const flags of [['--earliest'], []]) {
      expect((await run(links(2), 'apply', ...flags)).stdout.split('\n').slice(1)).toEqual([
        '  = link-1  be-antwerp – pl-poznan1  100 Mbps  kept at 1 Dec 15:00; the file says 09:00',
        '  = link-2  hu-sztaki – pl-poznan1   100 Mbps  kept at 1 Dec 15:00; the file says 09:00',
        'Nothing to do: 2 kept later; --move moves what is later.',
        '',
      ]);
    }
    expect(resultOf(await run(links(2), 'plan', '--json')).items).toEqual([
      expect.objectContaining({ action: 'none', kept: true }),
      expect.objectContaining({ action: 'none', kept: true }),
    ]);
    expect(writes).toEqual([]);
    expect((await run(links(2), 'plan', '--exit-code')).exitCode).toBe(0);
    expect((await run(links(2), 'plan', '--move')).exitCode).toBe(6);
    await world.run('delete', '--all', '--yes');
    await run(links(2).replaceAll('T09', 'T15'), 'apply');
    await run(links(2), 'apply', '--move');
    expect(await existing()).toEqual([
      expect.objectContaining({ start_date: '2026-12-01T09:00:00.000Z' }),
      expect.objectContaining({ start_date: '2026-12-01T09:00:00.000Z' }),
    ]);
  });

  it.each<[string, string, string[], string[]]>([
    ['narrower', links(1, { 1: '50M' }), [], ['n']],
    ['shorter', links(1).replace('8h', '7h'), [], ['n']],
    ['moved later', links(1).replace('T09', 'T10'), [], ['n']],
    ['wider and longer', links(1, { 1: '200M' }).replace('8h', '9h'), [], []],
  ])('asks a person before an update that takes something away: %s', async (_, file, flags, answers) => {
    await run(links(1), 'apply');
    const { ask, answers: left } = person(...answers);
    const asked = worldOf({ ask });
    asked.files.set('demo.yaml', file);
    const { stderr } = await asked.run('apply', 'demo.yaml', ...flags);
    expect([left, stderr.includes('Nothing was changed.')]).toEqual([[], answers.length > 0]);
    writes = [];
    // Without a terminal it goes on.
    await run(file, 'apply');
    expect(writes).toHaveLength(answers.length);
  });
});

test.each([60, 80, 120, 200])('the table fits a terminal of %i columns', async (columns) => {
  const stdout = recordedStream(columns);
  const terminal = worldOf({ stdout });
  terminal.files.set('demo.yaml', links(4, { 3: '2G' }));
  await terminal.run('plan', 'demo.yaml', '--color', 'never');
  const lines = stdout.text.split('\n');
  expect(lines.filter(({ length }) => length > columns)).toEqual([]);
  expect(stdout.text).toContain('Plan: 3 to create, 1 does not fit: nothing would be applied.');
});
