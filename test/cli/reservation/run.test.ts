import { describe, expect, onTestFinished, test } from 'vitest';
import { GUARDIAN } from '../../../src/cli/commands.ts';
import type { Clock, Files, Pipe, Processes } from '../../../src/cli/context.ts';
import type { TextStream } from '../../../src/cli/print/output.ts';
import { durationWord } from '../../../src/contract/durations.ts';
import { Failure } from '../../../src/contract/failure.ts';
import { Secret } from '../../../src/contract/secret.ts';
import type { Fetch } from '../../../src/contract/sending.ts';
import { createReferenceServer, type ReferenceServer } from '../../../src/reference-server.ts';
import type { Connection } from '../../../src/session/login/connection.ts';
import { reportOf } from '../../e2e/command.ts';
import { type Changes, commandWorld, tokenOf } from '../../fixtures/command-world.ts';
import { NOW } from '../../fixtures/tokens.ts';

const [MINUTE, HOUR] = [60_000, 3_600_000];
const LINK = ['be-gent1', 'pl-poznan1'] as const;
const FILE = '/private/';
/** The last lines that a guardian is told where nothing is left. */
const NOTHING_LEFT = ['null', 'END'];

type Sent = { method: string; path: string; at: number };

/** A command of a person's that runs in a scene: what it was given, and how it ends. */
interface Command {
  words: readonly string[];
  variables: Readonly<Record<string, string>>;
  signals: string[];
  end(exitCode: number): void;
}

/** What is answered in place of the service, where it is not nothing. */
type Instead = (request: Request, server: ReferenceServer) => Promise<Response> | Response | undefined;

/**
 * A machine whose clock moves on only while `run` waits. At each moment of `plan`, milliseconds after the start of the
 * command, something happens; the last of them ends the command.
 */
async function scene(
  changes: {
    instead?: Instead;
    tokens?: Partial<Pick<Connection, 'userToken' | 'experimentToken'>>;
    world?: Changes;
  } = {},
) {
  let now = NOW;
  let command: Command | undefined;
  let plan: [number, () => unknown][] = [];
  let begun = 0;
  let printed = '';
  /** Told to each guardian, line by line; the last line is `END` where the pipe was closed. */
  const guardians: { args: readonly string[]; lines: string[] }[] = [];
  const requests: Sent[] = [];
  const server = await createReferenceServer({ now: () => now });
  onTestFinished(() => server.close());
  const fetch: Fetch = async (request) => {
    // Its time does not pass by itself: what happens is found by looks.
    if (new URL(request.url).pathname.endsWith('/events')) return new Response('', { status: 404 });
    requests.push({ method: request.method, path: new URL(request.url).pathname, at: now - begun });
    return (await changes.instead?.(request, server)) ?? server.fetch(request);
  };
  let isKilled = false;
  const pause: Clock['sleep'] = async (milliseconds, signal) => {
    // Only `run` gives a signal: its guardian goes on.
    if (isKilled && signal) return new Promise(() => undefined);
    const until = now + milliseconds;
    for (const [at, happen] of command ? plan.filter(([at]) => begun + at <= until) : []) {
      plan = plan.filter(([other]) => other !== at);
      now = Math.max(now, begun + at);
      await happen();
      // What has ended is known a turn later.
      await new Promise(setImmediate);
      if (signal?.aborted) throw new Error('over');
      if (isKilled && signal) return new Promise(() => undefined);
    }
    now = until;
  };
  /** The processes that a guardian has asked to end. */
  const terminated: number[] = [];
  const processes: Pick<Processes, 'check' | 'start' | 'startGuardian' | 'terminate'> = {
    terminate: (pid) => void terminated.push(pid),
    check: async () => undefined,
    async start(words, { variables }) {
      begun = now;
      const { promise, resolve } = Promise.withResolvers<number>();
      const started: Command = { words, variables, signals: [], end: resolve };
      command = started;
      return {
        pid: 4711,
        ended: promise,
        signal(name) {
          started.signals.push(name);
          if (name === 'SIGKILL') resolve(137);
        },
      };
    },
    async startGuardian(args): Promise<Pipe> {
      const lines: string[] = [];
      guardians.push({ args, lines });
      return { tell: async (line) => void lines.push(line), close: () => void lines.push('END') };
    },
  };
  const privatePath: Files['privatePath'] = async (name) => FILE + name;
  const stderr: TextStream & { onWrite?: (text: string) => void } = {
    isTerminal: false,
    columns: undefined,
    write(text) {
      printed += text;
      stderr.onWrite?.(text);
    },
  };
  const world = commandWorld(
    {
      fetch,
      userToken: tokenOf(() => server.signIn('lead')),
      close: async () => undefined,
      ...changes.tokens,
    },
    {
      now: () => now,
      sleep: pause,
      ...processes,
      privatePath,
      stopSignal: () => new Promise(() => undefined),
      stderr,
      ...changes.world,
    },
  );
  return {
    async run(...args: string[]) {
      const before = printed.length;
      const ended = await world.run(...args);
      return { ...ended, stderr: printed.slice(before) };
    },
    files: world.files,
    server,
    requests,
    guardians,
    terminated,
    stderr,
    get now() {
      return now;
    },
    get isKilled(): boolean {
      return isKilled;
    },
    /** `run` does nothing more, as after SIGKILL. */
    kill() {
      isKilled = true;
    },
    get command(): Command {
      if (!command) throw new Error('no command was started');
      return command;
    },
    /** The id of the command's reservation. */
    get id(): string {
      return this.command.variables['SLICES_CONN_RESERVATION_ID'] ?? '';
    },
    /** The last lines that the first guardian was told. */
    get told() {
      return guardians[0]?.lines.slice(-2);
    },
    /** Ends the command after so long. */
    ends: (at: number, exitCode = 0): [number, () => unknown] => [at, () => command?.end(exitCode)],
    /** Runs a command with this plan. */
    async under(happenings: typeof plan, ...args: string[]) {
      plan = happenings;
      return this.run('--offline', ...args);
    },
    /** What the service has of the experiment. */
    async list(): Promise<{ id: string; end_date: string }[]> {
      const { stdout } = await this.run('--offline', '--json', 'list');
      return JSON.parse(stdout).items.map(({ reservation }: { reservation: object }) => reservation);
    },
  };
}

type Scene = Awaited<ReturnType<typeof scene>>;

const line = (...flags: string[]): string[] => ['run', ...LINK, '--bandwidth', '1G', '--for', '1h', ...flags];

describe('a command that ends', () => {
  test('finds its link in the environment, and leaves nothing behind', async () => {
    const here = await scene();
    let proof: unknown;
    let booked: unknown;
    const look = async (): Promise<void> => {
      const { SLICES_CONN_RESERVATION_FILE: file = '' } = here.command.variables;
      proof = here.files.get(file);
      [booked] = await here.list();
    };
    const ended = await here.under([[1, look], here.ends(5 * MINUTE, 7)], ...line('--', 'a', '--json'));
    expect(here.command.words).toEqual(['a', '--json']);
    const { id, end_date } = booked as { id: string; end_date: string };
    expect(here.command.variables).toEqual({
      SLICES_CONN_RESERVATION_ID: id,
      SLICES_CONN_RESERVATION_FILE: expect.stringMatching(/^\/private\/.*\.jwt$/),
      SLICES_CONN_SITE1: 'be-gent1',
      SLICES_CONN_SITE2: 'pl-poznan1',
      SLICES_CONN_SITE1_S_TAG: '1001',
      SLICES_CONN_SITE1_C_TAG: '1',
      SLICES_CONN_SITE2_S_TAG: '1001',
      SLICES_CONN_SITE2_C_TAG: '1',
      SLICES_CONN_BANDWIDTH: '1000',
      SLICES_CONN_END: end_date,
    });
    expect(end_date).toBe(new Date(NOW + HOUR + 5000).toISOString());
    expect(proof).toMatch(/^eyJ[\w.-]+\n$/);
    expect(ended).toEqual({
      exitCode: 7,
      stdout: '',
      stderr: `Reserved be-gent1 – pl-poznan1, 1 Gbps, until Sun 1 Nov 13:00:05 UTC (in 1 h): ${id}\nDeleted ${id}\n`,
    });
    expect(await here.list()).toEqual([]);
    expect([...here.files.keys()]).toEqual([]);
  });

  test('with --json the reservation is one line on stderr, and stdout is the command’s', async () => {
    const here = await scene();
    const ended = await here.under([here.ends(1)], '--json', ...line('--', 'a'));
    const [first = ''] = ended.stderr.split('\n');
    expect(ended).toMatchObject({ exitCode: 0, stdout: '' });
    expect(JSON.parse(first)).toMatchObject({
      reservation: { id: here.id },
      verified: true,
      token: expect.stringMatching(/^eyJ/),
      source: 'service',
    });
  });

  test('its guardian knows of the request before it is sent, of the id, and that nothing is left', async () => {
    const sent: number[] = [];
    const here: Scene = await scene({
      instead: ({ method }) => {
        if (method === 'POST') sent.push(here.guardians[0]?.lines.length ?? 0);
        return undefined;
      },
    });
    await here.under([here.ends(1)], '--experiment', 'demo', '--timeout', '20', ...line('--', 'a'));
    const [{ args, lines } = { args: [], lines: [] }] = here.guardians;
    expect(args).toEqual(['--profile=offline', '--experiment=demo', '--timeout=20']);
    expect(sent).toEqual([1]);
    expect(lines).toEqual([
      expect.stringContaining('"id":null'),
      expect.stringContaining(`"id":"${here.id}"`),
      'null',
      'END',
    ]);
  });

  test('its tokens are renewed: a user token lasts for an hour, an experiment token for 15 minutes', async () => {
    const here = await scene();
    // A second experiment would have to be chosen from.
    const other = (): Promise<unknown> =>
      here.run('--offline', 'experiment', 'create', 'other', '--end', '+1d');
    const { exitCode, stderr } = await here.under(
      [[MINUTE / 2, other], here.ends(90 * MINUTE)],
      ...['run', ...LINK, '--bandwidth', '1G', '--for', '2h', '--', 'a'],
    );
    expect([exitCode, stderr]).toEqual([0, expect.stringMatching(/^Reserved [^\n]*\nDeleted [^\n]*\n$/)]);
  });
});

describe('the command is not started', () => {
  test('where it is not found: nothing is booked', async () => {
    const missing = new Failure('command_not_found', 'There is no command "a".');
    const here = await scene({ world: { check: async () => Promise.reject(missing) } });
    const { exitCode, stderr } = await here.run('--offline', ...line('--', 'a'));
    expect([exitCode, stderr]).toEqual([127, 'error: There is no command "a".\n']);
  });

  test('where starting fails: the reservation is deleted', async () => {
    const refused = new Failure('command_not_runnable', 'The command "a" can’t be started.');
    const here = await scene({ world: { start: async () => Promise.reject(refused) } });
    const { exitCode, stderr } = await here.run('--offline', ...line('--', 'a'));
    expect(exitCode).toBe(126);
    expect(stderr).toMatch(/^Reserved .*\nDeleted .*\nerror: The command "a" can’t be started\.\n$/);
    expect(await here.list()).toEqual([]);
  });

  test.each<[string[], string]>([
    [['run', ...LINK, '--bandwidth', '1G', '--for', '1h', 'ls'], 'after two dashes'],
    [['run', ...LINK, 'ls', '--', '-l', '--bandwidth', '1G', '--for', '1h'], 'needs --bandwidth'],
    [['run', ...LINK, '--', 'ls', '--bandwidth', '1G', '--for', '1h'], 'needs --bandwidth'],
    [line('--'), 'needs <command...>'],
    [line('--on-lost', 'cry', '--', 'a'), '--on-lost cry: '],
  ])('%j is a mistake', async (args, said) => {
    const here = await scene();
    const report = reportOf(await here.run('--offline', '--json', ...args));
    expect(report).toMatchObject({ exitCode: 2, message: expect.stringContaining(said) });
    expect(here.requests).toEqual([]);
  });
});

describe('--extend', () => {
  test('at two thirds of the time by the same again, as long as the command runs; the file has each new token', async () => {
    const here = await scene();
    const ends: unknown[] = [];
    const look = (at: number): [number, () => Promise<void>] => [
      at * MINUTE,
      async () => {
        const token = String(here.files.get(here.command.variables['SLICES_CONN_RESERVATION_FILE'] ?? ''));
        const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
        const [listed] = await here.list();
        ends.push([at, ...[listed, claims.connectivity].map(({ end_date }) => end_date.slice(11, 16))]);
      },
    ];
    const plan = [39, 41, 99, 101].map(look);
    const { stderr } = await here.under([...plan, here.ends(110 * MINUTE)], ...line('--extend', '--', 'a'));
    expect(ends).toEqual([
      [39, '13:00', '13:00'],
      [41, '14:00', '14:00'],
      [99, '14:00', '14:00'],
      [101, '15:00', '15:00'],
    ]);
    expect(stderr.match(/The link lasts until .*/g)).toEqual([
      'The link lasts until Sun 1 Nov 14:00:05 UTC (in 1 h 20 min).',
      'The link lasts until Sun 1 Nov 15:00:05 UTC (in 1 h 20 min).',
    ]);
    const puts = here.requests.filter(({ method }) => method === 'PUT');
    expect(puts.map(({ at }) => Math.round(at / 1000))).toEqual([40 * 60 + 5, 100 * 60 + 5]);
  });

  test('refused: says how long is left, with the command that extends it; and asks again', async () => {
    const here = await scene();
    const taken = [...['--bandwidth', '99500M', '--start', '+90m'], '--for', '3h'];
    expect((await here.run('--offline', 'reserve', ...LINK, ...taken)).exitCode).toBe(0);
    const { stderr, exitCode } = await here.under([here.ends(59 * MINUTE)], ...line('--extend', '--', 'a'));
    expect(exitCode).toBe(0);
    const id = here.id;
    const said = stderr.split('\n').slice(1);
    expect(said[0]).toBe(
      `warning: The link was not extended by 1 h: 500 Mbps of the 1 Gbps asked for are free from Sun 1 Nov 13:30 UTC to 14:00:05. It ends at Sun 1 Nov 13:00:05 (in 20 min).`,
    );
    // What is refused then has what would be accepted.
    expect(said[1]).toBe(`  try: slices-conn --offline update ${id} --extend 1h`);
    // At two thirds of what is left: 13 min later, then 4, then 1 …
    const warnings = stderr.match(/ends at .* \(in .*\)/g) ?? [];
    expect(warnings.length).toBeGreaterThan(2);
    expect(warnings.length).toBeLessThan(12);
  });

  test('never beyond the end of the experiment', async () => {
    const here = await scene();
    await here.run('--offline', 'experiment', 'create', 'short', '--end', '+100m');
    const ends: (string | undefined)[] = [];
    const look = async (): Promise<void> => {
      const { stdout } = await here.run('--offline', '--experiment', 'short', '--json', 'list');
      ends.push(JSON.parse(stdout).items[0]?.reservation.end_date);
    };
    const { stderr, exitCode } = await here.under(
      [
        [41 * MINUTE, look],
        [99 * MINUTE, look],
        [99 * MINUTE + 1, () => here.command.end(3)],
      ],
      '--experiment',
      'short',
      ...line('--extend', '--', 'a'),
    );
    const expiry = new Date(NOW + 100 * MINUTE).toISOString();
    expect([exitCode, ends]).toEqual([3, [expiry, expiry]]);
    expect(stderr).toContain("warning: The link can't be extended: the experiment ends then. It ends at");
    expect(stderr.match(/can't be extended/g)).toHaveLength(1);
  });
});

describe('a link that is not free yet', () => {
  /** A scene in which another reservation leaves half of what is asked for, for three hours. */
  async function taken(): Promise<Scene> {
    const here = await scene();
    const flags = ['--bandwidth', '99500M', '--start-now', '--for', '3h', '--offline', '--json'];
    const { stdout } = await here.run('reserve', ...LINK, ...flags);
    freeAt = Date.parse(JSON.parse(stdout).reservation.end_date);
    return here;
  }
  let freeAt: number;

  test.each([[['--earliest']], [['--wait', '4h']]])(
    '%j: waits for its turn, and has the whole time',
    async (flags) => {
      const here = await taken();
      const { exitCode, stderr } = await here.under([here.ends(MINUTE, 8)], ...line(...flags, '--', 'a'));
      expect([exitCode, here.now]).toEqual([8, freeAt + MINUTE]);
      expect(Date.parse(here.command.variables['SLICES_CONN_END'] ?? '')).toBe(freeAt + HOUR);
      expect(stderr).toMatch(
        /^Reserved be-gent1 – pl-poznan1, 1 Gbps, from .* \(in 3 h\) until .*\nDeleted con_\S+\n$/,
      );
      expect(here.told).toEqual(NOTHING_LEFT);
    },
  );

  test('nothing is booked that starts later than --wait says; what is free sooner or later is told', async () => {
    const here = await taken();
    const report = reportOf(await here.run('--offline', '--json', ...line('--wait', '2h', '--', 'a')));
    expect(report.exitCode).toBe(6);
    // Alternatives start with a whole minute.
    const first = Math.ceil(freeAt / MINUTE) * MINUTE;
    const free = `${new Date(first).toISOString()} (in 3 h 1 min)`;
    expect(report.message).toBe(`1 Gbps for 1 h can't start within 2 h. The earliest start is ${free}.`);
    const typed = 'slices-conn --offline --json run be-gent1 pl-poznan1';
    const wait = durationWord(Math.ceil((first - here.now) / MINUTE) * MINUTE);
    expect(report.alternatives.at(-1)).toMatchObject({
      command: `${typed} --bandwidth 1G --for 1h --wait ${wait} -- a`,
    });
    expect(here.told).toEqual(NOTHING_LEFT);
  });

  test('a reservation that somebody deletes meanwhile: the command is not started, 3', async () => {
    const here = await taken();
    let deletion: Promise<unknown> | undefined;
    here.stderr.onWrite = (text) => {
      const [, id = ''] = /^Reserved .*: (con_\S+)$/m.exec(text) ?? [];
      if (id !== '') deletion = here.run('--offline', 'delete', '--yes', id);
    };
    const { exitCode } = await here.under([], ...line('--earliest', '--', 'a'));
    await deletion;
    expect(exitCode).toBe(3);
    expect(() => here.command).toThrow('no command was started');
    expect(here.told).toEqual(NOTHING_LEFT);
  });
});

describe('a link that is lost', () => {
  /** The command's reservation is deleted by someone else, after ten minutes. */
  const deleted = (here: Scene): [number, () => Promise<unknown>] => [
    10 * MINUTE,
    () => here.run('--offline', 'delete', '--yes', here.id),
  ];

  test('is looked at every minute, and by default only told', async () => {
    const here = await scene();
    here.stderr.onWrite = (text) => {
      if (text.includes('goes on')) here.command.end(4);
    };
    const { exitCode, stderr } = await here.under([deleted(here)], ...line('--', 'a'));
    const id = here.id;
    expect(exitCode).toBe(4);
    expect(stderr.split('\n').slice(1)).toEqual([
      `warning: The reservation ${id} was deleted. The command goes on without the link.`,
      '',
    ]);
    const looks = here.requests.filter(({ method, path }) => method === 'GET' && path.endsWith(id ?? ''));
    expect(looks.map(({ at }) => at / MINUTE)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(here.command.signals).toEqual([]);
    expect(here.told).toEqual(NOTHING_LEFT);
  });

  test('with --on-lost term the command is asked to end: 124', async () => {
    const here = await scene();
    const term = (): void => {
      if (here.command.signals.includes('SIGTERM')) here.command.end(0);
    };
    const plan: [number, () => unknown][] = [deleted(here), [10 * MINUTE + 100, term]];
    const ended = await here.under(plan, '--json', ...line('--on-lost', 'term', '--', 'a'));
    expect(reportOf(ended)).toMatchObject({ code: 'link_lost', exitCode: 124 });
    expect(here.command.signals).toEqual(['SIGTERM']);
  });

  test('and killed where it does not end within 10 s', async () => {
    const here = await scene();
    const { exitCode, stderr } = await here.under([deleted(here)], ...line('--on-lost', 'term', '--', 'a'));
    expect(exitCode).toBe(124);
    expect(here.command.signals).toEqual(['SIGTERM', 'SIGKILL']);
    expect(here.now - NOW).toBe(10 * MINUTE + 10_000);
    expect(stderr.split('\n').slice(-3)).toEqual([
      expect.stringMatching(/^error: The reservation con_\S+ was deleted\.$/),
      '  why: The command was ended, as --on-lost term says.',
      '',
    ]);
  });

  test('when its time is over', async () => {
    const here = await scene();
    const { exitCode, stderr } = await here.under([], ...line('--on-lost', 'term', '--', 'a'));
    expect(exitCode).toBe(124);
    expect(stderr).toContain('The link ended at Sun 1 Nov 13:00:05 UTC. The command is asked to end.\n');
    expect(here.now - NOW).toBe(HOUR + 5000 + 10_000);
  });

  test('another end and other bandwidth are told to the command', async () => {
    const here = await scene();
    const update = (): Promise<unknown> =>
      here.run(...['--offline', 'update', here.id], ...['--bandwidth', '2G', '--extend', '1h']);
    const { exitCode, stderr } = await here.under(
      [[10 * MINUTE, update], here.ends(100 * MINUTE)],
      ...line('--on-lost', 'term', '--', 'a'),
    );
    expect(exitCode).toBe(0);
    expect(stderr).toContain('The link lasts until Sun 1 Nov 14:00:05 UTC (in 1 h 50 min).\n');
    expect(stderr).toContain('warning: The reservation was changed: 1 Gbps → 2 Gbps.');
  });
});

describe('what goes wrong', () => {
  test('a deletion that fails is told with the id, even with --quiet, and left to the guardian', async () => {
    const here = await scene({
      instead: ({ method }) =>
        method === 'DELETE' ? Response.json({ detail: 'no' }, { status: 503 }) : undefined,
    });
    const { exitCode, stderr } = await here.under([here.ends(1, 5)], '--quiet', ...line('--', 'a'));
    const id = here.id;
    expect(exitCode).toBe(5);
    expect(stderr).toContain(`warning: ${id} is not deleted yet: `);
    expect(stderr).toMatch(
      / The deletion is tried again in the background until that works, or the link ends at /,
    );
    expect(stderr).not.toContain('try: ');
    expect(here.told).toEqual([expect.stringContaining(`"id":"${id}"`), 'END']);
  });

  test('a refusal has what would work, with the flags of run; a person can pick it', async () => {
    const here = await scene({ world: { ask: async () => '1', stdinIsTerminal: true } });
    const taken = ['--bandwidth', '99500M', '--start', '+30m', '--for', '3h'];
    expect((await here.run('--offline', 'reserve', ...LINK, ...taken)).exitCode).toBe(0);
    const report = reportOf(await here.run('--offline', '--json', ...line('--', 'a', '--for', '9h')));
    expect(report).toMatchObject({ code: 'bandwidth_unavailable', exitCode: 6 });
    const typed = 'slices-conn --offline --json run be-gent1 pl-poznan1';
    expect(report.fix).toBe(`${typed} --bandwidth 500M --for 1h -- a --for 9h`);
    const picked = await here.under([here.ends(1, 8)], ...line('--', 'a'));
    expect(picked.exitCode).toBe(8);
    expect(here.command.variables['SLICES_CONN_BANDWIDTH']).toBe('500');
    for (const { lines } of here.guardians) expect(lines.slice(-2)).toEqual(NOTHING_LEFT);
  });

  test('an answer that is not signed: 9, and the reservation is deleted', async () => {
    const here = await scene({
      instead: (request, server) => {
        if (request.method === 'DELETE' || !request.url.includes('/connectivity')) return undefined;
        request.headers.set('accept', 'application/json');
        return server.fetch(request);
      },
    });
    const report = reportOf(await here.run('--offline', '--json', ...line('--', 'a')));
    expect(report).toMatchObject({
      exitCode: 9,
      maybeDone: false,
      why: expect.stringContaining('was deleted'),
    });
    expect(await here.list()).toEqual([]);
    expect(here.told).toEqual(NOTHING_LEFT);
  });

  test('Ctrl-C while it books: 130, and what was booked is left to the guardian', async () => {
    let tellStop: ((how: 'interrupted' | 'terminated') => number) | undefined;
    const asked = Promise.withResolvers<void>();
    const here = await scene({
      instead: ({ method }) => {
        if (method !== 'POST') return undefined;
        asked.resolve();
        return new Promise(() => undefined);
      },
      world: {
        onStop: (tell) => {
          tellStop = tell;
        },
      },
    });
    const printed: string[] = [];
    here.stderr.onWrite = (text) => void printed.push(text);
    void here.run('--offline', ...line('--', 'a'));
    await asked.promise;
    expect(tellStop?.('interrupted')).toBe(130);
    expect(printed.join('')).toBe(
      'error: Interrupted.\n  why: A reservation that was made is deleted in the background.\n',
    );
    expect(here.guardians[0]?.lines).toEqual([expect.stringContaining('"id":null')]);
  });

  test('an answer that is lost for good is left to the guardian', async () => {
    const broken = new Failure('network', 'The connection broke.', { maybeDone: true });
    const here = await scene({
      instead: (request, server) =>
        request.method === 'POST' ? server.fetch(request).then(() => Promise.reject(broken)) : undefined,
    });
    const report = reportOf(await here.run('--offline', '--json', ...line('--', 'a')));
    expect(report).toMatchObject({
      exitCode: 7,
      maybeDone: true,
      why: expect.stringContaining('in the background'),
    });
    expect(here.guardians[0]?.lines).toEqual([expect.stringContaining('"id":null'), 'END']);
  });

  test.each<['userToken' | 'experimentToken', string]>([
    ['userToken', 'SLICES_CONN_USER_TOKEN'],
    ['experimentToken', 'SLICES_CONN_EXPERIMENT_TOKEN'],
  ])('a fixed %s that expires before the end: 2, before anything is created', async (name, where) => {
    const here = await scene();
    const portal = await here.run('--offline', '--json', 'experiment', 'token');
    const token = name === 'userToken' ? await here.server.signIn('lead') : JSON.parse(portal.stdout).token;
    const given = {
      origin: 'environment',
      where,
      isFixed: true,
      get: async () => new Secret(token),
    } as const;
    const other = await scene({
      instead: (request) => here.server.fetch(request),
      tokens: { userToken: tokenOf(() => here.server.signIn('lead')), [name]: given },
    });
    const report = reportOf(await other.run('--offline', '--json', ...line('--', 'a')));
    expect(report).toMatchObject({ code: 'usage', exitCode: 2, message: expect.stringContaining(where) });
    expect(report.fix).toContain(name === 'userToken' ? '--for 59m' : '--for 14m');
    expect(other.requests.filter(({ method }) => method === 'POST')).toEqual([]);
    expect(other.guardians).toEqual([]);
    const shorter = ['run', ...LINK, '--bandwidth', '1G', '--for', '14m', '--', 'a'];
    expect((await other.under([other.ends(1)], ...shorter)).exitCode).toBe(0);
  });
});

describe('the guardian', () => {
  /** A run that was killed at a moment: what its guardian has been told by then. */
  async function killed(
    held: 'asked' | 'booked',
    answer: (request: Request, here: Scene) => ReturnType<Instead> = () => undefined,
    flags: readonly string[] = [],
  ) {
    const here: Scene = await scene({
      instead: (request, server) => {
        if (here.isKilled || held === 'booked' || request.method !== 'POST') return answer(request, here);
        return server.fetch(request).then(() => new Promise(() => halted()));
      },
    });
    let halted = (): void => undefined;
    const stopped = new Promise<void>((resolve) => {
      halted = () => {
        here.kill();
        resolve();
      };
    });
    void here.under([[1, () => halted()]], ...line(...flags, '--', 'a'));
    await stopped;
    const { args, lines } = here.guardians[0] ?? { args: [], lines: [] };
    /** Runs the guardian, which reads this. */
    const guard = async (told = lines.map((text) => `${text}\n`).join('')) => {
      here.files.set('-', told);
      return here.run(GUARDIAN, ...args);
    };
    return { here, lines, guard };
  }

  test.each(['asked', 'booked'] as const)(
    'deletes what a run has left that was killed when it had %s',
    async (held) => {
      const { here, guard } = await killed(held);
      expect(await here.list()).toHaveLength(1);
      expect(await guard()).toEqual({ exitCode: 0, stdout: '', stderr: '' });
      expect(await here.list()).toEqual([]);
      expect([...here.files.keys()]).toEqual(['-']);
      const { stdout } = await here.run('--offline', '--json', 'list', '--all');
      expect(JSON.parse(stdout).items.map(({ state }: { state: string }) => state)).toEqual(['deleted']);
    },
  );

  test.each<[string[], number[]]>([
    [['--on-lost', 'term'], [4711]],
    [['--on-lost', 'warn'], []],
  ])('with %j ends the processes %j', async (flags, ended) => {
    const { here, guard } = await killed('booked', undefined, flags);
    expect(await guard()).toEqual({ exitCode: 0, stdout: '', stderr: '' });
    expect(here.terminated).toEqual(ended);
    expect(await here.list()).toEqual([]);
  });

  test('is told when the command has ended, so that no later process is taken for it', async () => {
    const here: Scene = await scene();
    await here.under([here.ends(1)], ...line('--on-lost', 'term', '--', 'a'));
    const told = (here.guardians[0]?.lines ?? []).slice(0, -2).map((text) => JSON.parse(text).command);
    expect(told).toEqual([null, null, 4711, null]);
  });

  test('deletes it where the ledger does not know its id, and only the line end is missing', async () => {
    const { here, lines, guard } = await killed('booked');
    expect(await guard(`${lines.join('\n')}\n{"id":nul`)).toMatchObject({ exitCode: 0 });
    expect(await here.list()).toEqual([]);
  });

  test.each([
    ['nothing was told', ''],
    ['nothing is left', 'null\n'],
    ['the key was never used', undefined],
  ])('does nothing where %s', async (_, told) => {
    const { here, lines, guard } = await killed('booked');
    const unused = `${(lines[0] ?? '').replace(/"key":"[^"]*"/, '"key":"unused"')}\n`;
    const before = here.requests.length;
    expect(await guard(told ?? unused)).toEqual({ exitCode: 0, stdout: '', stderr: '' });
    expect(here.requests.slice(before).filter(({ method }) => method !== 'GET')).toEqual([]);
    expect(await here.list()).toHaveLength(1);
  });

  test('asks a service that is away again, until the reservation has ended by itself', async () => {
    let isAway = true;
    const tries: number[] = [];
    const { here, guard } = await killed('booked', ({ method }, { now }) => {
      if (method !== 'DELETE') return undefined;
      tries.push(now);
      if (!isAway) return undefined;
      throw new Failure('network', 'Nothing answers.', { retryable: true });
    });
    const started = here.now;
    expect(await guard()).toEqual({ exitCode: 0, stdout: '', stderr: '' });
    const waits = tries.map((at) => (at - started) / 1000);
    expect(waits.slice(0, 8)).toEqual([0, 1, 3, 7, 15, 31, 63, 123]);
    expect(here.now - started).toBeLessThan(HOUR + 5000);
    isAway = false;
    await guard();
    expect(await here.list()).toEqual([]);
  });

  test('gives up where the service refuses', async () => {
    const { here, guard } = await killed('booked', ({ method }) =>
      method === 'DELETE'
        ? Response.json({ code: 'role_not_allowed', detail: [] }, { status: 403 })
        : undefined,
    );
    const started = here.now;
    expect(await guard()).toEqual({ exitCode: 0, stdout: '', stderr: '' });
    expect(here.now).toBe(started);
  });
});
