import { describe, expect, onTestFinished, test } from 'vitest';
import type { Clock, Processes } from '../../../src/cli/context.ts';
import { createReferenceServer } from '../../../src/reference-server.ts';
import { SqliteDatabase } from '../../../src/store/sqlite/database.ts';
import { LEDGER_FORMAT } from '../../../src/store/sqlite/format.ts';
import { type Changes, commandWorld, connectionTo } from '../../fixtures/command-world.ts';
import { recordedStream } from '../../fixtures/recorded-stream.ts';
import { NOW } from '../../fixtures/tokens.ts';

const MINUTE = 60_000;
const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G'];

type Step = () => Promise<unknown>;

/**
 * A service and a machine with one clock. It stands still but for the pauses of `watch`, which last as long as they say. What
 * happens meanwhile is done at its time. When nothing is left to happen, the watch is stopped.
 *
 * @param columns of the terminal; without it there is none
 */
async function scene({ columns }: { columns?: number } = {}) {
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
  const connection = connectionTo(server, async (request) => {
    const path = new URL(request.url).pathname;
    if (isAway) throw Object.assign(new TypeError('fetch failed'), { code: 'ECONNREFUSED' });
    // Its time does not pass by itself: what happens is found by looks.
    if (path.endsWith('/events')) return new Response('', { status: 404 });
    if (request.method === 'GET' && path.includes('/connectivity')) looks.push((now - NOW) / 1000);
    return server.fetch(request);
  });
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
  const watcher = commandWorld(connection, {
    ...machine,
    sleep,
    stdout,
    stderr,
    onStop: (tell) => {
      tellStop = tell;
    },
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
