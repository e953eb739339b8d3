import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { summary } from '../../../src/cli/reservation/delete.ts';
import { Failure, type FailureFacts } from '../../../src/contract/failure.ts';
import type { Fetch } from '../../../src/contract/sending.ts';
import { createReferenceServer, type ReferenceServer } from '../../../src/reference-server.ts';
import { claimedSubject } from '../../../src/tokens/claimed.ts';
import { type Changes, type CommandWorld, commandWorld, connectionTo } from '../../fixtures/command-world.ts';
import { NOW } from '../../fixtures/tokens.ts';
import { person } from '../person.ts';

const OFFLINE = '--offline';
const LINK = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '2h'];

/** A server whose ids are the same every time. */
async function open(...administrators: string[]): Promise<ReferenceServer> {
  let drawn = 0;
  const random = (bytes: number): Uint8Array => {
    drawn += 1;
    return new Uint8Array(bytes).fill(drawn);
  };
  const server = await createReferenceServer({ now: () => NOW, random, administrators });
  onTestFinished(() => server.close());
  return server;
}

let server: ReferenceServer;
let lead: CommandWorld;
let id: string;
let booker: string;
/** Runs a command as a user of the server. */
type Run = CommandWorld['run'];
const as = (user: 'lead' | 'viewer' | 'member', changes: Changes = {}, fetch: Fetch = server.fetch): Run =>
  commandWorld(connectionTo(server, fetch, user), changes).run;

beforeEach(async () => {
  server = await open(claimedSubject(await (await open()).signIn('viewer')) ?? '');
  lead = commandWorld(connectionTo(server));
  id = JSON.parse((await lead.run(OFFLINE, '--json', 'reserve', ...LINK)).stdout).reservation.id;
  booker = claimedSubject(await server.signIn('lead')) ?? '';
});

const isThere = async (): Promise<boolean> => (await lead.run(OFFLINE, 'show', id)).exitCode === 0;
const given = (...more: string[]): string[] => [OFFLINE, 'delete', id, '--as-administrator', ...more];

describe('delete --as-administrator', () => {
  test('deletes another person’s reservation, and names its owner and the reason', async () => {
    expect(await as('viewer')(...given('--yes', '--reason', 'its job died'))).toEqual({
      exitCode: 0,
      stdout: `Deleted ${id}\n  booked by ${booker}; reason: its job died\n`,
      stderr: '',
    });
    expect(await isThere()).toBe(false);
  });

  test('prints JSON', async () => {
    const { stdout } = await as('viewer')('--json', ...given('--yes', '--reason', ' x '));
    const reservation = expect.objectContaining({ id, created_by: booker });
    expect(JSON.parse(stdout)).toEqual({ items: [{ id, deleted: true, reason: 'x', reservation }] });
  });

  test.each([
    [true, 0, false],
    [false, 0, true],
    [undefined, 2, true],
  ])('asks first and names the owner: %s', async (answer, exitCode, stays) => {
    const { ask, questions } = person(answer ? 'y' : '');
    const run = as('viewer', answer === undefined ? {} : { ask });
    const result = await run(...given('--reason', "the job's gone"));
    expect([result.exitCode, await isThere()]).toEqual([exitCode, stays]);
    if (answer === undefined) {
      expect(result.stderr).toContain(
        `slices-conn --yes --offline delete ${id} --as-administrator --reason 'the job'\\''s gone'`,
      );
      return;
    }
    expect(questions).toEqual([
      expect.stringMatching(
        `^Delete be-gent1 – pl-poznan1, 1 Gbps, .+ UTC \\(${id}\\), booked by ${booker} for exp_\\S+\\? `,
      ),
    ]);
  });

  test.each([
    ['without a reason', ['--as-administrator']],
    ['with an empty one', ['--as-administrator', '--reason', ' ']],
    ['with one that is too long', ['--as-administrator', '--reason', 'x'.repeat(201)]],
    ['with one of two lines', ['--as-administrator', '--reason', 'its job\ndied']],
    ['with a reason, but as oneself', ['--reason', 'x']],
  ])('%s: exit 2, and nothing is sent', async (_, flags) => {
    const run = as('viewer', {}, () => expect.fail('it was sent'));
    expect((await run(OFFLINE, 'delete', id, '--yes', ...flags)).exitCode).toBe(2);
  });

  test.each(['lead', 'member'] as const)('%s is not an administrator: exit 5, and it stays', async (user) => {
    const { exitCode, stderr } = await as(user)(...given('--yes', '--reason', 'x'));
    expect([exitCode, stderr]).toEqual([5, expect.stringContaining('does not know you as an administrator')]);
    expect(await isThere()).toBe(true);
  });

  test('by a part of an id: exit 3, with where the whole ids are', async () => {
    const part = id.slice(-4);
    expect(await as('member')(...given('--yes', '--reason', 'x').with(2, part))).toMatchObject({
      exitCode: 3,
      stderr: `error: An administrator gives the whole id of a reservation.\n  why: ${part} is a name or a part of an id. The ids of all are in the audit of the server.\n  try: slices-conn serve audit\n`,
    });
  });
});

test('without a terminal what is not there is not found, and a reason that is missing is asked for, before --yes is', async () => {
  expect((await lead.run(OFFLINE, 'delete', 'not-there')).exitCode).toBe(3);
  expect((await lead.run(...given())).stderr).toContain('--reason');
});

describe('one failure for several deletions', () => {
  const unknown = new Failure('outcome_unknown', 'Nobody knows.', { maybeDone: true, retryable: false });
  const away = new Failure('unavailable', 'Not now.', { retryable: true });
  const gone = new Failure('not_found', 'It is gone.');
  const known = new Failure('not_found', 'There is no reservation con_2.');
  const doubt = { maybeDone: true, retryable: false };

  test.each<[string, (Failure | undefined)[], string, FailureFacts]>([
    ['one unknown, two done', [unknown, undefined, undefined], 'partly_done', doubt],
    ['one unknown, two away', [away, unknown, away], 'unavailable', doubt],
    ['one unknown, one gone', [gone, unknown, undefined], 'partly_done', doubt],
    [
      'which were made is told to programs too, and no id twice',
      [gone, known, undefined],
      'partly_done',
      {
        why: expect.objectContaining({}),
        fix: 'slices-conn list',
        items: ['con_1', 'con_2', 'con_3'].map((one) => ({ id: one, deleted: one === 'con_3' })),
      },
    ],
  ])('row 43: %s', (_, failed, code, facts) => {
    const ids = ['con_1', 'con_2', 'con_3'];
    const targets = ids.map((one, at) => ({ id: one, failure: failed[at] }));
    const { code: told, facts: more } = summary(targets);
    expect([told, more]).toMatchObject([code, facts]);
    if (failed[1] === known)
      expect(String(more.why)).toBe('con_1: It is gone. There is no reservation con_2.');
  });

  test('row 43: deletions that were not made have no maybeDone', () => {
    const targets = [
      { id: 'con_1', failure: away },
      { id: 'con_2', failure: gone },
    ];
    expect(summary(targets).facts.maybeDone).toBeUndefined();
  });
});
