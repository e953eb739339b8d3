import { describe, expect, onTestFinished, test } from 'vitest';
import type { Fetch } from '../../../src/contract/sending.ts';
import { createReferenceServer } from '../../../src/reference-server.ts';
import { reportOf } from '../../e2e/command.ts';
import { type Changes, type CommandWorld, commandWorld, connectionTo } from '../../fixtures/command-world.ts';
import { recordedStream } from '../../fixtures/recorded-stream.ts';
import { NOW } from '../../fixtures/tokens.ts';

const HOUR = 3_600_000;
const LINK = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G'];

/** What is answered in place of the service, where it is not nothing. */
type Instead = (
  request: Request,
  forward: Fetch,
) => Promise<Response | undefined> | Response | undefined | false;

/** A service, its clock, and machines of its lead. */
async function scene() {
  let now = NOW;
  let instead: Instead | undefined;
  const server = await createReferenceServer({ now: () => now });
  onTestFinished(() => server.close());
  const machine = (changes: Changes = {}) => {
    const answer = async (request: Request) =>
      (await instead?.(request.clone(), server.fetch)) || server.fetch(request);
    const world = commandWorld(connectionTo(server, answer), { now: () => now, ...changes });
    const run: CommandWorld['run'] = (...args) => world.run('--offline', ...args);
    return {
      run,
      /** Without `--offline`. */
      plain: world.run,
      /** Books a link for two hours. @returns its id */
      reserve: async (...more: string[]): Promise<string> => {
        const { stdout, stderr } = await run('--json', 'reserve', ...LINK, '--for', '2h', ...more);
        if (stdout === '') throw new Error(stderr);
        return JSON.parse(stdout).reservation.id;
      },
      json: async (...args: string[]) => JSON.parse((await run('--json', ...args)).stdout),
    };
  };
  return {
    ...machine(),
    machine,
    after: (hours: number): void => {
      now = NOW + hours * HOUR;
    },
    answers: (answer: Instead): void => {
      instead = answer;
    },
  };
}

describe('a name is accepted wherever an id is', () => {
  test.each([['show'], ['update', '--bandwidth', '2G'], ['delete', '--yes']])('%s', async (...command) => {
    const { run, reserve } = await scene();
    const id = await reserve('--start', '+1h', '--name', 'nightly');
    await reserve('--start', '+1h');
    const { exitCode, stdout } = await run(...command, 'nightly');
    expect(exitCode).toBe(0);
    expect(stdout).toContain(id);
  });

  test('short names too, and before a part of an id', async () => {
    const { reserve, json } = await scene();
    const other = await reserve('--start', '+1h');
    // Four characters of the other's id that could be a name.
    const part = /[a-z][a-z0-9]{3}/.exec(other.split('_').at(-1) ?? '')?.[0] ?? expect.fail();
    expect((await json('show', part)).reservation.id).toBe(other);
    const named = await reserve('--start', '+4h', '--name', part);
    const short = await reserve('--start', '+8h', '--name', 'x');
    expect((await json('show', part)).reservation.id).toBe(named);
    expect((await json('show', 'x')).reservation.id).toBe(short);
  });

  test('of one that is live before those that ended; of several that ended it is exit 2 with all of them', async () => {
    const { run, reserve, json, after } = await scene();
    const first = await reserve('--start-now', '--name', 'nightly');
    after(3);
    expect((await json('show', 'nightly')).reservation.id).toBe(first);
    const second = await reserve('--start-now', '--name', 'nightly');
    expect((await json('show', 'nightly')).reservation.id).toBe(second);
    after(6);
    const report = reportOf(await run('--json', 'show', 'nightly'));
    expect(report).toMatchObject({
      code: 'usage',
      exitCode: 2,
      message: 'nightly is the name of 2 reservations.',
    });
    expect(report.why).toMatch(/^The id tells them apart\. /);
    for (const id of [first, second]) {
      expect(report.why).toContain(`${id}  nightly: be-gent1 – pl-poznan1, 1 Gbps, 2026-11-01T`);
    }
  });

  test('a name belongs to its experiment: the chosen one, else the one where this machine gave it', async () => {
    const { run, reserve, json } = await scene();
    await run('experiment', 'create', 'second', '--end', '+2d');
    const there = await reserve('--start', '+1h', '--name', 'nightly', '--experiment', 'second');
    // Two experiments are active, and none is chosen.
    expect((await json('show', 'nightly')).reservation.id).toBe(there);
    expect(reportOf(await run('--json', 'show', 'nightly', '--experiment', 'demo'))).toMatchObject({
      exitCode: 3,
      message: 'No reservation that is known is named nightly or has it in its id.',
    });
    const here = await reserve('--start', '+1h', '--name', 'nightly', '--experiment', 'demo');
    expect((await json('show', 'nightly', '--experiment', 'demo')).reservation.id).toBe(here);
    expect((await json('show', 'nightly', '--experiment', 'second')).reservation.id).toBe(there);
    expect(reportOf(await run('--json', 'show', 'nightly')).why).toMatch(
      /^They are of several experiments: --experiment tells them apart, or the id\. /,
    );
  });
});

describe('reserve --name', () => {
  test('a name that is taken is exit 2: which reservation has it, and a command with a free name', async () => {
    const { run, reserve } = await scene();
    const id = await reserve('--start', '+1h', '--name', 'nightly');
    const typed = ['reserve', ...LINK, '--start', '+1h', '--for', '2h', '--name'];
    expect(reportOf(await run('--json', ...typed, 'nightly'))).toMatchObject({
      code: 'name_taken',
      exitCode: 2,
      message: 'Another reservation has the name nightly until it ends or is deleted.',
      why: `${id} has it.`,
      fix: 'slices-conn --offline --json reserve be-gent1 pl-poznan1 --bandwidth 1G --start +1h --for 2h --name nightly-2026-11-01t1200',
    });
  });

  test('the name is in the card, in a dry run, and beside what is deleted; then it is free again', async () => {
    const { run, reserve, json } = await scene();
    const asked = [...LINK, '--start', '+1h', '--for', '2h', '--name', 'nightly'];
    expect((await run('reserve', ...asked, '--dry-run')).stdout).toMatch(/^ {2}name +nightly$/m);
    expect((await run('reserve', ...asked)).stdout).toMatch(/^ {2}id .*\n {2}name +nightly$/m);
    expect((await json('show', 'nightly')).reservation.name).toBe('nightly');
    await run('delete', '--yes', 'nightly');
    expect((await json('show', await reserve('--start', '+1h', '--name', 'nightly'))).reservation.name).toBe(
      'nightly',
    );
  });
});

describe('update --name', () => {
  test('renames: the new name is found, also by another experiment’s command, and the old one is free', async () => {
    const { run, reserve, json } = await scene();
    await run('experiment', 'create', 'second', '--end', '+2d');
    const id = await reserve('--start', '+1h', '--name', 'one', '--experiment', 'second');
    const { stdout } = await run('update', 'one', '--name', 'two');
    expect(stdout).toMatch(/^ {2}name +one → two$/m);
    // Two experiments are active, and none is chosen: the ledger knows which one it is in.
    expect((await json('show', 'two')).reservation).toMatchObject({ id, name: 'two' });
    expect((await run('show', 'one', '--experiment', 'second')).exitCode).toBe(3);
    await reserve('--start', '+1h', '--name', 'one', '--experiment', 'second');
  });

  test('an update of anything else sends no name, so that it takes back no other’s', async () => {
    const { run, reserve, answers } = await scene();
    await reserve('--start', '+1h', '--name', 'one');
    const sent: unknown[] = [];
    answers(async (request) => {
      if (request.method === 'PUT') sent.push(await request.json());
      return undefined;
    });
    await run('update', 'one', '--bandwidth', '2G');
    expect(sent).toEqual([expect.not.objectContaining({ name: expect.anything() })]);
  });
});

test('list has the names', async () => {
  const { machine } = await scene();
  const stdout = recordedStream(80);
  const { run } = machine({ stdout });
  await run('--json', 'reserve', ...LINK, '--start', '+1h', '--for', '2h', '--name', 'nightly');
  await run('list', '--color', 'never');
  expect(stdout.text).toMatch(
    /^\w{4} +nightly +scheduled +be-gent1 – pl-poznan1 +1 Gbps +1 Nov 13:00 +15:00$/m,
  );
});
