import { describe, expect, test } from 'vitest';
import type { Processes } from '../../src/cli/context.ts';
import { createReferenceServer } from '../../src/reference-server.ts';
import { reportOf } from '../e2e/command.ts';
import { commandWorld, connectionTo } from '../fixtures/command-world.ts';
import { recordedStream } from '../fixtures/recorded-stream.ts';
import { NOW } from '../fixtures/tokens.ts';

const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start', '+1h', '--for', '2h'];

type TellStop = Parameters<Processes['onStop']>[0];
type Held = 'POST' | 'PUT' | 'DELETE' | 'GET';

/** A machine with a reservation, at a service that does its work and then holds an answer back. */
async function scene(held: Held) {
  const server = await createReferenceServer({ now: () => NOW });
  const stderr = recordedStream();
  let arrived: (() => void) | undefined;
  let tellStop: TellStop | undefined;
  const world = commandWorld(
    connectionTo(server, async (request) => {
      const reply = await server.fetch(request);
      if (!arrived || request.method !== held) return reply;
      arrived();
      return new Promise<Response>(() => undefined);
    }),
    {
      stderr,
      onStop: (tell) => {
        tellStop = tell;
      },
      ask: () => {
        arrived?.();
        return new Promise(() => undefined);
      },
    },
  );
  const { stdout } = await world.run('--offline', '--json', ...LINK);
  const id: string = JSON.parse(stdout).reservation.id;
  return {
    world,
    id,
    /** The output of a command that is stopped while its answer is held back. */
    async stopped(how: Parameters<TellStop>[0], ...args: string[]) {
      const before = stderr.text.length;
      await new Promise<void>((resolve) => {
        arrived = resolve;
        void world.run('--offline', ...args);
      });
      arrived = undefined;
      return { exitCode: tellStop?.(how) ?? 0, stdout: '', stderr: stderr.text.slice(before) };
    },
  };
}

test('Ctrl-C at a question: exit 130, nothing was changed, and no word of a defect', async () => {
  const { stopped } = await scene('POST');
  expect(await stopped('interrupted', 'delete', '--all')).toMatchObject({
    ...{ exitCode: 130, stderr: 'error: Interrupted.\n  why: Nothing was changed.\n' },
  });
});

describe('row 44: a command that is stopped while it waits for an answer', () => {
  test.each<[Exclude<Held, 'GET'>, string[], string, string[]]>([
    ['POST', LINK, 'list', ['scheduled', 'scheduled']],
    ['PUT', ['update', 'ID', '--bandwidth', '2G'], 'show ID', ['scheduled']],
    ['DELETE', ['delete', '--yes', 'ID'], 'show ID', ['deleted']],
  ])('%s of %j: it may have taken effect, and `list` shows the outcome', async (held, words, fix, states) => {
    const { world, id, stopped } = await scene(held);
    const args = words.map((word) => word.replace('ID', id));
    expect(reportOf(await stopped('interrupted', '--json', ...args))).toMatchObject({
      ...{ code: 'interrupted', exitCode: 130, maybeDone: true, retryable: false },
      why: expect.stringContaining('may have taken effect'),
      fix: `slices-conn --offline ${fix.replace('ID', id)}`,
      reservation: held === 'POST' ? null : id,
    });
    const { stdout } = await world.run('--offline', '--json', 'list', '--all');
    const found = JSON.parse(stdout).items.map(({ state }: { state: string }) => state);
    expect(found.toSorted()).toEqual(states);
  });

  test('SIGTERM, without --json: exit 143', async () => {
    const { stopped } = await scene('POST');
    const { exitCode, stderr } = await stopped('terminated', ...LINK);
    expect(exitCode).toBe(143);
    expect(stderr).toMatch(
      /^error: .*\n {2}why: .*may have taken effect\.\n {2}try: slices-conn --offline list\n$/m,
    );
  });

  test.each<[string, Held, string[]]>([
    ['before anything was sent', 'GET', LINK],
    ['while a rehearsal is awaited', 'POST', [...LINK, '--dry-run']],
    ['while something is read', 'GET', ['list']],
  ])('%s: maybeDone is false', async (_, held, args) => {
    const { stopped } = await scene(held);
    const report = reportOf(await stopped('interrupted', '--json', ...args));
    expect(report).toMatchObject({ code: 'interrupted', exitCode: 130, maybeDone: false, fix: null });
    expect(`${report.message} ${report.why}`).not.toContain('may have');
  });
});
