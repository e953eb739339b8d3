import * as v from 'valibot';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { createReferenceServer, type ReferenceServer } from '../../../src/reference-server.ts';
import { claimedSubject } from '../../../src/tokens/claimed.ts';
import { type Changes, type CommandWorld, commandWorld, connectionTo } from '../../fixtures/command-world.ts';
import { NOW } from '../../fixtures/tokens.ts';

const OFFLINE = '--offline';
const LINK = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '2h'];
const opened: ReferenceServer[] = [];
afterAll(async () => {
  for (const server of opened) await server.close();
});

/** A server whose ids are the same every time. */
async function open(...administrators: string[]): Promise<ReferenceServer> {
  let drawn = 0;
  const random = (bytes: number): Uint8Array => {
    drawn += 1;
    return new Uint8Array(bytes).fill(drawn);
  };
  const server = await createReferenceServer({ now: () => NOW, random, administrators });
  opened.push(server);
  return server;
}

function worldOf(
  server: ReferenceServer,
  user: 'lead' | 'viewer' | 'member',
  changes: Changes = {},
): CommandWorld {
  return commandWorld(connectionTo(server, server.fetch, user), changes);
}

const Released = v.object({
  items: v.tuple([
    v.strictObject({
      id: v.string(),
      deleted: v.literal(true),
      reason: v.string(),
      reservation: v.looseObject({ created_by: v.string() }),
    }),
  ]),
});

const viewer = claimedSubject(await (await open()).signIn('viewer')) ?? '';
let server: ReferenceServer;
let lead: CommandWorld;
let id: string;

beforeEach(async () => {
  server = await open(viewer);
  lead = worldOf(server, 'lead');
  id = JSON.parse((await lead.run(OFFLINE, '--json', 'reserve', ...LINK)).stdout).reservation.id;
});

const isThere = async (): Promise<boolean> => (await lead.run(OFFLINE, 'show', id)).exitCode === 0;
const asAdministrator = (...more: string[]): string[] => [
  OFFLINE,
  'delete',
  id,
  '--as-administrator',
  ...more,
];

describe('delete --as-administrator', () => {
  test('deletes another person’s reservation, and names its owner and the reason', async () => {
    const result = await worldOf(server, 'viewer').run(
      ...asAdministrator('--yes', '--reason', 'its job died'),
    );
    expect(result).toMatchObject({ exitCode: 0, stderr: '' });
    expect(result.stdout).toContain(`Deleted ${id}\n`);
    expect(result.stdout).toMatch(/booked by user_offline\.localhost_\w+; reason: its job died/);
    expect(await isThere()).toBe(false);
  });

  test('prints JSON', async () => {
    const booker = claimedSubject(await server.signIn('lead'));
    const { stdout } = await worldOf(server, 'viewer').run(
      '--json',
      ...asAdministrator('--yes', '--reason', ' x '),
    );
    const [item] = v.parse(Released, JSON.parse(stdout)).items;
    expect(item).toMatchObject({ id, reason: 'x', reservation: { id, created_by: booker } });
  });

  test.each([
    [true, 0, false],
    [false, 0, true],
    [undefined, 2, true],
  ])('asks first and names the owner: %s', async (answer, exitCode, stays) => {
    const questions: string[] = [];
    const ask = async (question: string): Promise<string> => {
      questions.push(question);
      return answer ? 'y' : '';
    };
    const world = worldOf(server, 'viewer', answer === undefined ? {} : { ask });
    const result = await world.run(...asAdministrator('--reason', "the job's gone"));
    expect(result.exitCode).toBe(exitCode);
    expect(await isThere()).toBe(stays);
    if (answer === undefined) {
      expect(result.stderr).toContain(
        `slices-conn --yes --offline delete ${id} --as-administrator --reason 'the job'\\''s gone'`,
      );
      return;
    }
    const booker = claimedSubject(await server.signIn('lead'));
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
    let sent = 0;
    const count: ReferenceServer['fetch'] = (request) => {
      sent += 1;
      return server.fetch(request);
    };
    const world = commandWorld(connectionTo(server, count, 'viewer'));
    expect((await world.run(OFFLINE, 'delete', id, '--yes', ...flags)).exitCode).toBe(2);
    expect(sent).toBe(0);
    expect(await isThere()).toBe(true);
  });

  test.each(['lead', 'member'] as const)(
    '%s is not an administrator: exit 5, and the reservation stays',
    async (user) => {
      const result = await worldOf(server, user).run(...asAdministrator('--yes', '--reason', 'x'));
      expect(result.exitCode).toBe(5);
      expect(result.stderr).toContain('does not know you as an administrator');
      expect(await isThere()).toBe(true);
    },
  );

  test.each(['viewer', 'member'] as const)(
    'by a part of an id, as %s of its experiment or not: exit 3, with where the whole ids are',
    async (user) => {
      const part = id.slice(-4);
      const args = [OFFLINE, 'delete', part, '--as-administrator', '--yes', '--reason', 'x'];
      const { exitCode, stderr } = await worldOf(await open(viewer), user).run(...args);
      expect([exitCode, stderr]).toEqual([
        3,
        `error: An administrator gives the whole id of a reservation.\n  why: No reservation of yours is named ${part} or has it in its id. The ids of all are in the audit of the server.\n  try: slices-conn serve audit\n`,
      ]);
    },
  );

  test('deletes none of several reservations when one of them does not exist', async () => {
    const gone = `${id.slice(0, -1)}${id.endsWith('0') ? '1' : '0'}`;
    const world = worldOf(server, 'viewer');
    const alone = await world.run(OFFLINE, 'delete', gone, '--as-administrator', '--yes', '--reason', 'x');
    expect(alone.exitCode).toBe(3);
    const both = await world.run(...asAdministrator(gone, '--yes', '--reason', 'x'));
    expect(both.exitCode).toBe(3);
    expect(both.stderr).toContain('2 of 2 reservations were not deleted');
    expect(await isThere()).toBe(true);
  });
});
