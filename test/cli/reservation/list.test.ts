import { beforeAll, describe, expect, test } from 'vitest';
import { Failure } from '../../../src/contract/failure.ts';
import type { ReferenceServer } from '../../../src/reference-server.ts';
import { shortIds } from '../../../src/session/reservations/known.ts';
import { html, jwt } from '../../client/replies.ts';
import {
  type Changes,
  type CommandWorld,
  commandWorld,
  connectionTo,
  offlineWorld,
} from '../../fixtures/command-world.ts';
import { recordedStream } from '../../fixtures/recorded-stream.ts';
import { CONNECTIVITY } from '../../fixtures/service.ts';
import { claimsOf, makeKey, makeToken } from '../../fixtures/tokens.ts';

const env = { SLICES_CONN_PROFILE: 'offline' };
const BRUSSELS = ['--tz', 'Europe/Brussels'];
const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G'];
const OTHER = ['--experiment', 'second', 'reserve', 'fr-lille', 'be-gent1', '--bandwidth', '500M'];

/** A world with two experiments and three reservations; the clock stands at Sunday 2026-11-01 12:00 UTC. */
async function busyWorld() {
  const world = await offlineWorld({ variables: env });
  const ids: string[] = [];
  const reserve = async (...args: string[]): Promise<void> => {
    const { stdout } = await world.run('--json', ...args);
    ids.push(JSON.parse(stdout).reservation.id);
  };
  await reserve('--experiment', 'demo', ...LINK, '--start', 'tomorrow 14:00', '--for', '2h');
  await reserve('--experiment', 'demo', ...LINK, '--start-now', '--for', '2h');
  await world.run('experiment', 'create', 'second', '--end', '+10d');
  await reserve(...OTHER, '--start', 'monday 9:00', '--for', '3d');
  return { world, ids };
}

/** The command line of a user of the server, on a machine of its own. */
function machineOf(
  server: ReferenceServer,
  user: 'lead' | 'admin' | 'member',
  changes: Changes = {},
): CommandWorld {
  return commandWorld(connectionTo(server, server.fetch, user), { variables: env, ...changes });
}

let busy: Awaited<ReturnType<typeof busyWorld>>;
beforeAll(async () => {
  busy = await busyWorld();
});

const demo = ['--experiment', 'demo', 'list'];

/** What a terminal of this width shows, with the short ids replaced by `IDn`. */
async function onTerminal(columns: number, ...args: string[]): Promise<string> {
  const stdout = recordedStream(columns);
  const { world, ids } = busy;
  await machineOf(world.server, 'lead', { stdout }).run('--color', 'never', ...BRUSSELS, ...args);
  return [...shortIds(ids)].reduce(
    (text, [id, short]) => text.replace(short, `ID${ids.indexOf(id)}`.padEnd(short.length)),
    stdout.text,
  );
}

describe('on a terminal: short ids and times, the experiment and the zone named once', () => {
  test('a table, the first to start first', async () => {
    expect(await onTerminal(120, ...demo)).toBe(
      `Experiment demo, times in Europe/Brussels

ID    STATE      LINK                   BANDWIDTH  FROM             UNTIL
ID1   active     be-gent1 – pl-poznan1  1 Gbps     Sun 1 Nov 13:00  Sun 1 Nov 15:00
ID0   scheduled  be-gent1 – pl-poznan1  1 Gbps     Mon 2 Nov 15:00  Mon 2 Nov 17:00
`,
    );
  });

  test.each([30, 40, 50, 60, 80, 120, 200])('no line is wider than %i columns', async (columns) => {
    for (const args of [demo, ['list', '--all-experiments']]) {
      const lines = (await onTerminal(columns, ...args)).split('\n');
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns);
    }
  });
});

test('without a terminal: full ids, one row a line, the experiment and the zone named', async () => {
  const { world, ids } = busy;
  const { stdout, stderr } = await world.run(...BRUSSELS, ...demo);
  expect(stderr).toBe('');
  expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['ID', 'STATE', 'LINK', 'BANDWIDTH', 'FROM (Europe/Brussels)', 'UNTIL', 'EXPERIMENT'],
    [ids[1], 'active', 'be-gent1 – pl-poznan1', '1 Gbps', 'Sun 1 Nov 13:00', 'Sun 1 Nov 15:00', 'demo'],
    [ids[0], 'scheduled', 'be-gent1 – pl-poznan1', '1 Gbps', 'Mon 2 Nov 15:00', 'Mon 2 Nov 17:00', 'demo'],
    [''],
  ]);
});

describe('filters', () => {
  const listed = async (world: CommandWorld, ...args: string[]): Promise<(string | undefined)[]> => {
    const { stdout } = await world.run('--json', ...args);
    const { items }: { items: { reservation?: { id: string } }[] } = JSON.parse(stdout);
    return items.map(({ reservation }) => reservation?.id);
  };

  // The clock stands at Sunday 12:00. The second lasts from then, the first from Monday 14:00, the third from 9:00.
  test.each<[string, string]>([
    ['', '1 0'],
    ['--state active', '1'],
    ['--site pl-poznan1', '1 0'],
    ['--all-experiments', '1 2 0'],
    ['--all-experiments --site be-gent1 --state scheduled', '2 0'],
    ['--start +3h', '0'],
    ['--start 13:00 --end 2026-11-02T14:01', '1 0'],
    ['--all-experiments --start tuesday --end wednesday', '2'],
  ])('%s, the first to start first', async (flags, expected) => {
    const { world, ids } = busy;
    const line = flags.includes('--all-experiments') ? ['list'] : demo;
    const found = await listed(world, ...line, ...flags.split(' ').filter(Boolean));
    expect(found.map((id) => ids.indexOf(id ?? '')).join(' ')).toBe(expected);
  });

  test('--mine leaves out what another user created', async () => {
    const world = await offlineWorld({ variables: env });
    await world.run(...LINK, '--start-now', '--for', '2h');
    const admin = machineOf(world.server, 'admin');
    expect(await listed(admin, 'list')).toHaveLength(1);
    expect(await listed(admin, 'list', '--mine')).toEqual([]);
  });

  test('an experiment whose reservations the user may not list is left out of all, and named', async () => {
    const { server } = await offlineWorld({ variables: env });
    const member = machineOf(server, 'member');
    const { exitCode, stdout, stderr } = await member.run('list', '--all-experiments');
    expect(exitCode).toBe(0);
    expect(stdout).toBe('You are in no active experiment whose reservations you may list.\n');
    expect(stderr).toMatch(/^The reservations of experiment demo are left out: /);
    expect((await member.run('list')).exitCode).toBe(5);
  });

  test.each<[string[], string]>([
    [[], ' is scheduled or active; --all shows those that ended or were deleted.'],
    [['--site', 'be-gnt1'], ' matches. Did you mean be-gent1?'],
    [['--mine'], ' matches.'],
    [['--end', '+1h'], ' matches. --all looks at those that ended or were deleted too.'],
  ])('an empty list says so, as a timeline too: %j', async (flags, text) => {
    const world = await offlineWorld({ variables: env });
    const none = { exitCode: 0, stdout: `No reservation in experiment demo${text}\n`, stderr: '' };
    expect(await world.run(...demo, ...flags)).toEqual(none);
    expect(await world.run(...demo, ...flags, '--timeline')).toEqual(none);
    const { stdout } = await world.run(...demo, '--all', ...flags);
    if (flags.length === 0) expect(stdout).toBe('No reservations in experiment demo yet.\n');
  });

  test.each([
    ['--state', 'soon'],
    ['--site', 'BE_GENT'],
  ])('%s %s: exit 2', async (...flags) => {
    expect((await busy.world.run(...demo, ...flags)).exitCode).toBe(2);
  });
});

describe('--timeline', () => {
  test('--all has what has ended, and --mine only what the user created', async () => {
    const { server, run } = await offlineWorld({ variables: env });
    await run(...LINK, '--start-now', '--for', '2h');
    await run('delete', '--all', '--yes');
    expect(JSON.parse((await run('--json', ...demo, '--state', 'deleted')).stdout).items).toHaveLength(1);
    expect((await run('list', '--timeline', '--all')).stdout).toMatch(/×+.*con_.*\n × deleted\n$/s);
    const { stdout } = await machineOf(server, 'admin').run('list', '--timeline', '--all', '--mine');
    expect(stdout).toBe('No reservation in experiment demo matches.\n');
  });

  test('under TERM=dumb all of stdout is ASCII, of the table and of JSON too', async () => {
    const stdout = recordedStream(100);
    const dumb = machineOf(busy.world.server, 'lead', { variables: { ...env, TERM: 'dumb' }, stdout });
    for (const args of [[...demo, '--timeline'], demo, ['--json', ...demo], ['token', 'issue', '--help']]) {
      expect((await dumb.run(...args)).exitCode).toBe(0);
    }
    expect(stdout.text).toContain('v now 12:00');
    expect(stdout.text).toContain('be-gent1 - pl-poznan1');
    expect(stdout.text).toMatch(/^[\x00-\x7f]+$/);
  });
});

describe('short ids', () => {
  const shortened = (...sections: string[]) => [
    ...shortIds(sections.map((section) => `con_host_${section}`)).values(),
  ];

  test.each<[string[], string[]]>([
    [['01m80wd6x7'], ['d6x7']],
    [
      ['aaaabbbb', 'aaaacccc'],
      ['bbbb', 'cccc'],
    ],
    // The ending of the first stands within the second.
    [
      ['00001234', '01234567'],
      ['001234', '4567'],
    ],
    [
      ['xx1234', 'yy1234'],
      ['x1234', 'y1234'],
    ],
    // No ending of it alone.
    [
      ['1234', 'x1234'],
      ['con_host_1234', 'x1234'],
    ],
    [['123'], ['con_host_123']],
    [[], []],
  ])('%j are %j', (sections, short) => {
    expect(shortened(...sections).toSorted()).toEqual(short.toSorted());
  });
});

describe('a request of which no valid answer came', () => {
  /** What a service can look up. */
  type Abilities = { list: boolean; key: boolean };

  /** A machine whose next POST, PUT or DELETE is answered so, in place of the service's answer; undefined: it is lost. */
  async function scene({ list, key }: Abilities) {
    const { server } = await offlineWorld();
    const answers: (Response | undefined)[] = [];
    /** Answers to the next GETs of a reservation. */
    const reads: Response[] = [];
    const world = commandWorld(
      connectionTo(server, async (request) => {
        const { pathname } = new URL(request.url);
        if (pathname === '/api-spec' && !key) return new Response(null, { status: 404 });
        if (request.method === 'GET' && pathname === CONNECTIVITY && !list)
          return new Response(null, { status: 405 });
        const read = pathname.startsWith(`${CONNECTIVITY}/con_`) && request.method === 'GET' && reads.shift();
        if (read) return read;
        const isAnswered = request.method === 'GET' || answers.length === 0;
        if (isAnswered) return server.fetch(request);
        const answer = answers.shift();
        if (answer) return answer;
        throw new Failure('network', 'Lost.', { maybeDone: true });
      }),
      { variables: env },
    );
    return { world, answers, reads };
  }

  test.each<[Abilities, RegExp]>([
    [
      { list: false, key: false },
      /so the link may be booked\. This service can't look it up: ask its operators/,
    ],
    [{ list: true, key: false }, /What this list does not show by Sun 1 Nov 12:10 was never made\./],
    [{ list: true, key: true }, /To settle it: slices-conn reserve be-gent1 .+ --idempotency-key \S+\n/],
  ])('a create without an id, at a service with %j', async (abilities, says) => {
    const { world, answers } = await scene(abilities);
    answers.push(undefined, undefined, undefined);
    await world.run(...LINK, '--start', 'tomorrow 14:00', '--for', '2h');
    const { stderr } = await world.run('list');
    expect(stderr).toMatch(/be-gent1 – pl-poznan1: no valid answer came to the request of Sun 1 Nov 12:00/);
    expect(stderr).toMatch(says);
  });

  // Without a list each is asked for.
  test.each<[string, RegExp]>([
    [
      'a create',
      /The service's answer about (\S+), asked for at .+, could not be verified\. To see its state: .* show \1\n/,
    ],
    [
      'a deletion',
      /No valid answer came to the last request about (\S+), sent at .+ To see its state: .* show \1\n/,
    ],
  ])('%s whose answer does not verify, until the service answers', async (what, says) => {
    const { world, answers, reads } = await scene({ list: false, key: false });
    const bad = () => jwt(makeToken(makeKey('ES256'), claimsOf('connectivity')));
    if (what === 'a create') answers.push(bad());
    const { stdout } = await world.run('--json', ...LINK, '--start', 'tomorrow 14:00', '--for', '2h');
    if (what === 'a deletion') {
      answers.push(html());
      await world.run('--yes', 'delete', JSON.parse(stdout).reservation.id);
    }
    reads.push(bad());
    const { stderr } = await world.run('list');
    expect(stderr).toMatch(
      /warning: The service could not be asked for (\S+), which is shown as it was last: /,
    );
    expect(stderr).toMatch(says);
    expect((await world.run('list')).stderr).not.toContain('To see its state');
  });
});
