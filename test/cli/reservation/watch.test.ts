import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Clock, Processes } from '../../../src/cli/context.ts';
import type { OpenProgressLine } from '../../../src/cli/print/progress.ts';
import { Failure } from '../../../src/contract/failure.ts';
import { createReferenceServer } from '../../../src/reference-server.ts';
import { SqliteDatabase } from '../../../src/store/sqlite/database.ts';
import { LEDGER_FORMAT } from '../../../src/store/sqlite/format.ts';
import { type Changes, commandWorld, tokenOf } from '../../fixtures/command-world.ts';
import { recordedStream } from '../../fixtures/recorded-stream.ts';
import { NOW } from '../../fixtures/tokens.ts';

const MINUTE = 60_000;
const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G'];

type Step = () => Promise<unknown>;

/** How a scene is set up. */
interface Setup {
  /** Columns of the terminal; without it there is none. */
  columns?: number;
  /** The service has no list of reservations. */
  withoutList?: boolean;
  /** The ledger can't be used. */
  withoutLedger?: boolean;
}

/**
 * A service and a machine with one clock. It stands still but for the pauses of `watch`, which last as long as they say. What
 * happens meanwhile is done at its time. When nothing is left to happen, the watch is stopped.
 */
async function scene({ columns, withoutList = false, withoutLedger = false }: Setup = {}) {
  let now = NOW;
  const server = await createReferenceServer({ now: () => now });
  onTestFinished(() => server.close());
  let isAway = false;
  /** The times of requests to list reservations or to read one, in seconds from the beginning. */
  const looks: number[] = [];
  const happening: { at: number; step: Step }[] = [];
  const stop = Promise.withResolvers<void>();
  const sleep: Clock['sleep'] = async (milliseconds) => {
    const until = now + milliseconds;
    for (;;) {
      const [next] = happening.toSorted((one, other) => one.at - other.at);
      if (!next) {
        stop.resolve();
        // As on a terminal: Ctrl-C ends the process.
        return new Promise(() => undefined);
      }
      if (next.at > until) break;
      now = Math.max(now, next.at);
      happening.splice(happening.indexOf(next), 1);
      await next.step();
    }
    now = until;
  };
  const connection = {
    async fetch(request: Request): Promise<Response> {
      const path = new URL(request.url).pathname;
      if (isAway) throw Object.assign(new TypeError('fetch failed'), { code: 'ECONNREFUSED' });
      // Its time does not pass by itself: what happens is found by looks.
      if (path.endsWith('/events')) return new Response('', { status: 404 });
      if (withoutList && request.method === 'GET' && path.endsWith('/connectivity')) {
        return new Response('', { status: 405 });
      }
      if (request.method === 'GET' && path.includes('/connectivity')) looks.push((now - NOW) / 1000);
      return server.fetch(request);
    },
    userToken: tokenOf(() => server.signIn('lead')),
    close: async () => undefined,
  };
  const [stdout, stderr] = [recordedStream(columns), recordedStream(columns)];
  const ledger = await SqliteDatabase.open(':memory:', LEDGER_FORMAT);
  const machine: Changes = {
    now: () => now,
    openLedger: async () => ({
      transaction: (work) => ledger.transaction(work),
      close: async () => undefined,
    }),
  };
  const person = commandWorld(connection, machine);
  let tellStop: Parameters<Processes['onStop']>[0] | undefined;
  const progressLine = vi.fn<OpenProgressLine>(async () => ({
    start: () => undefined,
    stop: () => undefined,
  }));
  const openLedger = async (): Promise<never> => {
    throw new Failure('state_unusable', "The ledger can't be used.");
  };
  const watcher = commandWorld(connection, {
    ...machine,
    ...(withoutLedger ? { openLedger } : {}),
    sleep,
    stdout,
    stderr,
    onStop: (tell) => {
      tellStop = tell;
    },
    ...(columns === undefined ? {} : { progressLine }),
  });
  const run = async (...args: string[]) => {
    const { exitCode, stdout: text, stderr: problem } = await person.run('--offline', ...args);
    if (exitCode !== 0) throw new Error(`${args.join(' ')} ended with ${exitCode}: ${problem}`);
    return text;
  };
  return {
    run,
    looks,
    /** Books the link. @returns the reservation's id */
    reserve: async (...args: string[]): Promise<string> =>
      JSON.parse(await run(...LINK, '--json', ...args)).reservation.id,
    /** Does something so many minutes after the beginning; without a step the watch only goes on until then. */
    at: (minute: number, step: Step = async () => undefined): void =>
      void happening.push({ at: NOW + minute * MINUTE, step }),
    /** What is drawn on the progress line. */
    drawn: () => progressLine.mock.lastCall?.[0](),
    /** Ctrl-C. @returns the exit code, and all that was printed */
    interrupt: () => ({ exitCode: tellStop?.('interrupted'), stdout: stdout.text, stderr: stderr.text }),
    away: (is: boolean) => async () => {
      isAway = is;
    },
    /** Runs a command until it ends, or nothing is left to happen. @returns undefined as exit code where it goes on */
    async watch(...args: string[]) {
      const ended = watcher.run('--offline', ...args).then(({ exitCode }) => exitCode);
      const exitCode = await Promise.race([ended, stop.promise.then(() => undefined)]);
      return { exitCode, stdout: stdout.text, stderr: stderr.text };
    },
  };
}

/** The events that `watch --json` printed: minutes from the beginning, the event, the id. */
function told(stdout: string): [number, string, string][] {
  return stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const { event, at, reservation } = JSON.parse(line);
      return [(Date.parse(at) - NOW) / MINUTE, event, reservation.id];
    });
}

/** A test's view of the lines that people get. */
const linesOf = (text: string, id: string): string[] =>
  text.replaceAll(id, 'ID').replaceAll(id.slice(-4), 'SHORT').split('\n').slice(0, -1);

describe('watch', () => {
  test('--json: each event is an object on a line of its own, at its time', async () => {
    const { run, reserve, at, watch } = await scene();
    const id = await reserve('--start', '+1m', '--for', '12m');
    let other = '';
    at(1.1, async () => {
      other = await reserve('--start-now', '--for', '2h');
    });
    at(2.1, () => run('update', id, '--bandwidth', '2G'));
    at(4.1, () => run('delete', '--yes', other));
    at(14);
    const { exitCode, stdout, stderr } = await watch('watch', '--json');
    expect([exitCode, stderr]).toEqual([undefined, '']);
    expect(told(stdout)).toEqual([
      [1, 'started', id],
      [1.25, 'started', other],
      [2.25, 'updated', id],
      [3, 'ending_soon', id],
      [4.25, 'deleted', other],
      [13, 'ended', id],
    ]);
    const [first = ''] = stdout.split('\n');
    expect(Object.keys(JSON.parse(first))).toEqual(['event', 'at', 'reservation']);
  });

  test('looks at least every 30 s', async () => {
    const { reserve, looks, at, watch } = await scene();
    await reserve('--start', '+100s', '--for', '2h');
    at(5);
    await watch('watch');
    const gaps = looks.map((look, index) => look - (looks[index - 1] ?? look));
    expect(Math.max(...gaps)).toBeLessThanOrEqual(30);
    expect(looks).toContain(100);
    // Two lists each time, and no more than a service can bear.
    expect(looks.length).toBeLessThan(60);
  });

  test('people: short times in their zone, which is named once, full ids, one row a line', async () => {
    const { run, reserve, at, watch } = await scene();
    const id = await reserve('--start', '+1m', '--end', '2026-11-01T12:13:00Z');
    at(1.1, () => run('update', id, '--bandwidth', '2G', '--extend', '1h'));
    at(1.6, () => run('update', id, '--extend', '30s'));
    at(1.9, () => run('update', id, '--end', '2026-11-01T12:05:00Z'));
    at(2.1, () => run('delete', '--yes', id));
    at(3);
    const { stdout, stderr } = await watch('watch', '--tz', 'Europe/Brussels');
    expect(stderr).toBe('');
    expect(linesOf(stdout, id)).toEqual([
      'Sun 1 Nov 13:01 Europe/Brussels  started      ID  be-gent1 – pl-poznan1, 1 Gbps, 13:01 to 13:13',
      'Sun 1 Nov 13:01  updated      ID  be-gent1 – pl-poznan1: 1 Gbps → 2 Gbps, until 13:13 → 14:13',
      'Sun 1 Nov 13:01  updated      ID  be-gent1 – pl-poznan1: until 14:13:00 → 14:13:30',
      'Sun 1 Nov 13:02  updated      ID  be-gent1 – pl-poznan1: until 14:13 → 13:05',
      'Sun 1 Nov 13:02  ending soon  ID  be-gent1 – pl-poznan1, 2 Gbps, 13:01 to 13:05 (in 3 min)',
      'Sun 1 Nov 13:02  deleted      ID  be-gent1 – pl-poznan1, 2 Gbps, 13:01 to 13:05',
    ]);
  });

  test('a terminal of 60 columns: what is watched and since when, then short ids, in two lines', async () => {
    const { reserve, at, watch } = await scene({ columns: 60 });
    const id = await reserve('--start', '+1m', '--for', '12m');
    at(4);
    const { stdout, stderr } = await watch('watch', '--color', 'never');
    expect(stderr.replaceAll('\n', ' ').trim()).toBe(
      'Watching experiment demo (1 reservation now) since Sun 1 Nov 12:00 UTC. Ctrl-C stops.',
    );
    expect(linesOf(stdout, id)).toEqual([
      '1 Nov 12:01  started      SHORT',
      '    be-gent1 – pl-poznan1, 1 Gbps, 12:01 to 12:13',
      '1 Nov 12:03  ending soon  SHORT',
      '    be-gent1 – pl-poznan1, 1 Gbps, 12:01 to 12:13 (in 10 min)',
    ]);
  });

  test.each([
    [undefined, /^Sun 1 Nov 12:01 UTC {2}started {6}con_\S+ {2}nightly {2}be-gent1 – pl-poznan1, /],
    [120, /^1 Nov 12:01 {2}started {6}nightly {2}be-gent1 – pl-poznan1, /],
  ])('a reservation with a name is called by it (terminal of %s columns)', async (columns, line) => {
    const { reserve, at, watch } = await scene(columns === undefined ? {} : { columns });
    await reserve('--start', '+1m', '--for', '2h', '--name', 'nightly');
    at(2);
    expect((await watch('watch', 'nightly', '--color', 'never')).stdout).toMatch(line);
  });

  test('a service that is away is said once; what happened meanwhile is told when it is back', async () => {
    const { run, reserve, away, at, watch } = await scene();
    const id = await reserve('--start', '+3m', '--for', '2h');
    const other = await reserve('--start-now', '--for', '1h');
    at(0.1, () => run('delete', '--yes', other));
    at(1, away(true));
    at(5, away(false));
    at(6);
    const { exitCode, stdout, stderr } = await watch('watch', '--json');
    expect(exitCode).toBeUndefined();
    expect(told(stdout)).toEqual([
      [0, 'started', other],
      [0.25, 'deleted', other],
      [5, 'started', id],
    ]);
    expect(stderr.split('\n')).toEqual([
      expect.stringMatching(/ The service is asked again until it answers\.$/),
      'The service answers again.',
      '',
    ]);
  });

  test('a service that is away from the beginning is a failure: exit 7', async () => {
    const { away, watch } = await scene();
    await away(true)();
    expect(await watch('watch')).toMatchObject({ exitCode: 7, stdout: '' });
  });

  test('a ledger that can not be used is a warning, once', async () => {
    const { reserve, at, watch } = await scene({ withoutLedger: true });
    const id = await reserve('--start', '+1m', '--for', '1h');
    at(2);
    const { stdout, stderr } = await watch('watch', '--json');
    expect(told(stdout)).toEqual([[1, 'started', id]]);
    expect(stderr).toBe("warning: The ledger can't be used.\n");
  });

  test('a service without a list: what this machine asked for', async () => {
    const { run, reserve, at, watch } = await scene({ withoutList: true });
    const id = await reserve('--start', '+1m', '--for', '1h');
    const other = await reserve('--start', '+2m', '--for', '1h');
    at(1.1, () => run('delete', '--yes', other));
    at(2);
    const { stdout, stderr } = await watch('watch', '--json');
    expect(stderr).toBe('');
    expect(told(stdout)).toEqual([
      [1, 'started', id],
      [1.25, 'deleted', other],
    ]);
  });
});

describe('watch ID', () => {
  test('ends with 0 when the reservation has ended', async () => {
    const { reserve, at, watch } = await scene({ columns: 80 });
    const id = await reserve('--start', '+1m', '--for', '2m');
    await reserve('--start-now', '--for', '1h');
    at(60);
    const { exitCode, stdout, stderr } = await watch('watch', id.slice(-6), '--json');
    expect(exitCode).toBe(0);
    expect(told(stdout)).toEqual([
      [1, 'started', id],
      [1, 'ending_soon', id],
      [3, 'ended', id],
    ]);
    expect(stderr.replaceAll('\n', ' ').trim()).toBe(
      `Watching ${id} (be-gent1 – pl-poznan1, 1 Gbps, 1 Nov 12:01 to 12:03) since Sun 1 Nov 12:00 UTC, until it has ended. Ctrl-C stops.`,
    );
  });

  test('of one that has ended already: says so, exit 0; of one that is not there: exit 3', async () => {
    const { reserve, at, watch } = await scene();
    const id = await reserve('--start-now', '--for', '1m');
    at(2, async () => undefined);
    // Time passes while another is watched.
    expect(await watch('watch', id, '--json')).toMatchObject({ exitCode: 0 });
    const again = await watch('watch', id, '--json');
    expect([again.exitCode, told(again.stdout).at(-1)]).toEqual([0, [expect.any(Number), 'ended', id]]);
    expect(await watch('watch', 'con_conn.example.org_nothere')).toMatchObject({ exitCode: 3 });
  });
});

describe('reserve --wait', () => {
  const SOON = [...LINK, '--start', '+1m', '--for', '1h'];

  test('--json: one object, when the link has started', async () => {
    const { looks, run, at, watch } = await scene();
    at(0.5, async () => undefined);
    at(60);
    const { exitCode, stdout, stderr } = await watch(...SOON, '--wait', '--json');
    expect([exitCode, stderr]).toEqual([0, '']);
    const { reservation, verified } = JSON.parse(stdout);
    expect([reservation.start_date, verified]).toEqual(['2026-11-01T12:01:00.000Z', true]);
    expect(Math.max(...looks)).toBe(60);
    expect(JSON.parse(await run('list', '--json')).items).toMatchObject([{ state: 'active' }]);
  });

  test('people: the card at once, a notice at the start', async () => {
    const { at, watch } = await scene();
    at(60);
    const { exitCode, stdout, stderr } = await watch(...SOON, '--wait');
    expect([exitCode, stderr]).toEqual([0, 'The link has started.\n']);
    expect(stdout).toMatch(/^Reserved be-gent1 – pl-poznan1, 1 Gbps\n/);
  });

  test('when the seconds are over: exit 8, the reservation stays and is named', async () => {
    const { run, at, watch } = await scene();
    at(60);
    const { exitCode, stdout, stderr } = await watch(...SOON, '--wait', '40', '--json');
    expect([exitCode, stdout]).toEqual([8, '']);
    const [{ reservation }] = JSON.parse(await run('list', '--json')).items;
    expect(JSON.parse(stderr).error).toMatchObject({
      code: 'start_pending',
      message: 'The link has not started within 40 s.',
      why: 'It is booked, and starts at 2026-11-01T12:01:00.000Z.',
      fix: `slices-conn --offline watch ${reservation.id}`,
      reservation: reservation.id,
      retryable: false,
    });
  });

  test('a link that starts at once is not waited for', async () => {
    const { looks, watch } = await scene();
    const { exitCode } = await watch(...LINK, '--start-now', '--for', '1h', '--wait', '0', '--json');
    expect([exitCode, looks]).toEqual([0, []]);
  });

  test('a start that is put off is waited for; what is printed is as it is then', async () => {
    const { run, at, watch } = await scene();
    at(0.4, async () => {
      const [{ reservation }] = JSON.parse(await run('list', '--json')).items;
      await run('update', reservation.id, '--start', '+90s');
    });
    at(60);
    const { exitCode, stdout } = await watch(...SOON, '--wait', '--json');
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout).reservation.start_date).toBe('2026-11-01T12:01:54.000Z');
  });

  test('a reservation that is deleted meanwhile: exit 3', async () => {
    const { run, at, watch } = await scene();
    at(0.4, () => run('delete', '--all', '--yes'));
    at(60);
    const { exitCode, stdout, stderr } = await watch(...SOON, '--wait', '--json');
    expect([exitCode, stdout]).toEqual([3, '']);
    expect(JSON.parse(stderr).error).toMatchObject({
      message: 'The reservation was deleted before it started.',
      reservation: expect.stringMatching(/^con_/),
    });
  });

  test('Ctrl-C: exit 130, the reservation stays and is named', async () => {
    const { run, at, watch, interrupt } = await scene();
    at(0.5);
    await watch(...SOON, '--wait', '--json');
    const { exitCode, stdout, stderr } = interrupt();
    expect([exitCode, stdout]).toEqual([130, '']);
    const [{ reservation, state }] = JSON.parse(await run('list', '--json')).items;
    expect(state).toBe('scheduled');
    expect(JSON.parse(stderr).error).toMatchObject({
      why: 'The link is booked, and stays so.',
      reservation: reservation.id,
      fix: `slices-conn --offline watch ${reservation.id}`,
      maybeDone: false,
    });
  });

  test('a dry run has nothing to wait for: exit 2', async () => {
    const { watch } = await scene();
    expect(await watch(...SOON, '--wait', '--dry-run')).toMatchObject({
      exitCode: 2,
      stderr: "error: --dry-run and --wait can't be given together.\n",
    });
  });

  test('a terminal shows what is waited for', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const { drawn, at, watch } = await scene({ columns: 80 });
    at(0.5, async () => {
      await vi.advanceTimersByTimeAsync(1000);
      expect(drawn()).toBe('the link to start at Sun 1 Nov 12:01 UTC (30 s)');
    });
    at(60);
    expect.assertions(1);
    await watch(...SOON, '--wait');
  });
});

test.each([
  ['says so', {}, 'error: Interrupted.\n'],
  ['is no error on a terminal', { columns: 80 }, expect.stringMatching(/Ctrl-C\sstops\.\n\n$/)],
])('Ctrl-C ends watch with 130, and %s', async (_what, where, stderr) => {
  const { at, watch, interrupt } = await scene(where);
  at(1);
  await watch('watch');
  expect(interrupt()).toMatchObject({ exitCode: 130, stderr });
});
