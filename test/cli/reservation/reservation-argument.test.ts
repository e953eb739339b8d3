import { afterEach, describe, expect, test } from 'vitest';
import { createReferenceServer, type ReferenceServer } from '../../../src/reference-server.ts';
import { reportOf } from '../../e2e/command.ts';
import { type Changes, type CommandWorld, commandWorld, connectionTo } from '../../fixtures/command-world.ts';
import { NOW } from '../../fixtures/tokens.ts';
import { person } from '../person.ts';

/** The command that books a deleted reservation again. */
const AGAIN = expect.stringMatching(/^slices-conn .*reserve /);

const LINK = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start', '+1h'];

let server: ReferenceServer;
afterEach(() => server.close());

/** A machine of this user, whose `json` is the object that a command prints. */
function machine(user: 'lead' | 'admin', changes: Changes = {}) {
  const world = commandWorld(connectionTo(server, server.fetch, user), changes);
  const run: CommandWorld['run'] = (...args) => world.run('--offline', ...args);
  const json = async (...args: string[]) => JSON.parse((await run('--json', ...args)).stdout);
  return {
    run,
    json,
    reserve: async (...more: string[]): Promise<string> =>
      (await json('reserve', ...LINK, ...(more.length > 0 ? more : ['--for', '2h']))).reservation.id,
    ids: async (): Promise<string[]> =>
      (await json('list')).items.map(({ reservation }: { reservation: { id: string } }) => reservation.id),
  };
}

/**
 * A server whose ids differ in a few characters only: the clock stands still, and so do most of the random bits. Each id has
 * the next one's end in its middle.
 */
async function open(): Promise<void> {
  let drawn = 0;
  server = await createReferenceServer({
    now: () => NOW,
    random: (bytes) => {
      drawn += 1;
      const low = new Uint8Array(bytes);
      // Ids take ten bytes each from what is drawn.
      for (let at = 9; at < bytes; at += 10) {
        low[at] = (at + drawn) % 251;
        low[at - 5] = ((at + drawn) % 251) + 1;
      }
      return low;
    },
  });
}

const sectionOf = (id: string): string => id.split('_').at(-1) ?? '';

describe('an ID argument', () => {
  test.each<[string, (section: string) => string]>([
    ['the last four characters', (section) => section.slice(-4)],
    ['the last characters as a list shortens them', (section) => `…${section.slice(-6)}`],
    ['the end as a plan shortens it', (section) => `con_…${section.slice(-4)}`],
    ['the end in capitals', (section) => section.slice(-4).toUpperCase()],
    ['the whole id in capitals', (section) => `CON_OFFLINE.LOCALHOST_${section.toUpperCase()}`],
  ])('can be %s', async (_, part) => {
    await open();
    const { run, reserve, json } = machine('lead');
    const [id] = [await reserve(), await reserve()];
    const short = part(sectionOf(id));
    expect((await json('show', short)).reservation.id).toBe(id);
    expect((await json('update', short, '--bandwidth', '2G')).reservation).toMatchObject({
      id,
      bandwidth: 2000,
    });
    expect(await json('delete', '--yes', short)).toEqual({ items: [{ id, deleted: true, again: AGAIN }] });
    // A reservation that was deleted is known by its part as well.
    expect((await run('show', short)).exitCode).toBe(3);
  });

  test('is the end of one id rather than the middle of another', async () => {
    await open();
    const { reserve, json } = machine('lead');
    const [first, second] = [await reserve(), await reserve()];
    const end = sectionOf(second).slice(-4);
    expect(sectionOf(first)).toContain(end);
    expect((await json('show', end)).reservation.id).toBe(second);
  });

  test('finds a reservation that only the service’s list or only the ledger knows', async () => {
    await open();
    const lead = machine('lead');
    const admin = machine('admin');
    const id = await lead.reserve();
    expect((await admin.json('show', sectionOf(id).slice(-5))).reservation.id).toBe(id);
    await lead.run('experiment', 'create', 'second', '--end', '+2d');
    const elsewhere = await lead.reserve('--for', '1h', '--experiment', 'second');
    const shown = await lead.json('show', sectionOf(elsewhere).slice(-5));
    expect(shown.reservation.id).toBe(elsewhere);
  });

  test('that fits several is exit 2, and lists them with link and period', async () => {
    await open();
    const lead = machine('lead');
    const ids = [await lead.reserve(), await machine('lead').reserve()];
    const part = sectionOf(ids[0] ?? '').slice(0, 8);
    for (const command of [['show'], ['update', '--bandwidth', '2G'], ['delete', '--yes']]) {
      const report = reportOf(await lead.run('--json', ...command, part));
      expect(report).toMatchObject({ code: 'usage', exitCode: 2, message: `${part} fits 2 reservations.` });
      for (const id of ids) expect(report.why).toContain(`${id}  be-gent1 – pl-poznan1, 1 Gbps, `);
    }
    const { stderr } = await lead.run('show', part);
    expect(stderr.split('\n').filter((line) => /^ {4}con_\S+ {2}be-gent1/.test(line))).toHaveLength(2);
    expect(await lead.ids()).toHaveLength(2);
  });

  test('that fits nothing, or has less than four characters and is no name, is exit 3', async () => {
    await open();
    const { run } = machine('lead');
    expect(reportOf(await run('--json', 'show', 'zzzz'))).toMatchObject({ code: 'not_found', exitCode: 3 });
    expect(reportOf(await run('--json', 'show', 'zzz'))).toMatchObject({
      code: 'not_found',
      exitCode: 3,
      why: 'Of an id, four characters or more are needed.',
    });
  });
});

describe('without an ID argument', () => {
  test.each([['show'], ['update', '--bandwidth', '2G'], ['delete', '--yes']])(
    '%s: exit 2 without a terminal, before anything is sent',
    async (...args) => {
      await open();
      expect(reportOf(await machine('lead').run('--json', ...args))).toMatchObject({
        message: `slices-conn ${args[0]} needs <id>.`,
        exitCode: 2,
      });
    },
  );

  test('a person chooses by number', async () => {
    await open();
    const { ask, questions } = person('7', '2');
    const { reserve, run, json, ids } = machine('lead', { ask });
    await reserve();
    await reserve();
    const [, second] = await ids();
    const { stdout, stderr } = await run('show');
    expect(stdout).toContain(second);
    expect(questions).toHaveLength(2);
    expect(stderr).toMatch(
      /^Which reservation do you want to see\? \(Times in UTC\)\n {2}1 {2}\w{4,} {2}be-gent1 – pl-poznan1, 1 Gbps, /,
    );
    expect(stderr).toContain('Type a number from 1 to 2.');
    expect((await json('list')).items).toHaveLength(2);
  });

  test.each([undefined, '', 'q'])('a person who answers %j chooses nothing: exit 0', async (answer) => {
    await open();
    const { reserve, run, ids } = machine('lead', { ask: person(answer).ask });
    await reserve();
    const stderr = expect.stringMatching(/Nothing was changed\.\n$/);
    expect(await run('delete')).toEqual({ exitCode: 0, stdout: '', stderr });
    expect(await ids()).toHaveLength(1);
  });
});

describe('delete', () => {
  test('asks with link and period, also for a full id that this machine does not know', async () => {
    await open();
    const id = await machine('lead').reserve();
    const { ask, questions } = person('n', 'y');
    const { run, ids } = machine('admin', { ask });
    expect(await run('delete', id)).toMatchObject({ exitCode: 0, stderr: 'Nothing was deleted.\n' });
    expect(await ids()).toEqual([id]);
    expect((await run('delete', id)).exitCode).toBe(0);
    expect(await ids()).toEqual([]);
    expect(questions[0]).toMatch(/^Delete be-gent1 – pl-poznan1, 1 Gbps, .* \(con_.*\)\? \[y\/N\] $/);
    expect(questions[0]).toContain(id);
  });

  test('of several asks one question below a list', async () => {
    await open();
    const { ask, questions } = person('y');
    const { reserve, run, ids } = machine('lead', { ask });
    const both = [await reserve(), await reserve()];
    const { stderr } = await run('delete', ...both);
    expect(questions).toEqual(['Delete these 2 reservations? [y/N] ']);
    for (const id of both) expect(stderr).toContain(`${id.slice(-4)}  be-gent1 – pl-poznan1, 1 Gbps, `);
    expect(await ids()).toEqual([]);
  });
});

describe('delete --all', () => {
  test('deletes what this user created in the chosen experiment and has not ended', async () => {
    await open();
    const lead = machine('lead');
    await lead.run('experiment', 'create', 'second', '--end', '+2d');
    const mine = [
      await lead.reserve('--for', '1h', '--experiment', 'demo'),
      await lead.reserve('--for', '2h', '--experiment', 'demo'),
    ];
    const elsewhere = await lead.reserve('--for', '1h', '--experiment', 'second');
    // An admin can delete, but has created nothing.
    const admin = machine('admin');
    expect(await admin.json('delete', '--all', '--yes', '--experiment', 'demo')).toEqual({ items: [] });
    expect(await machine('lead').json('delete', '--all', '--yes', '--experiment', 'demo')).toEqual({
      items: mine.map((id) => ({ id, deleted: true, again: AGAIN })),
    });
    expect((await lead.json('show', elsewhere)).reservation.id).toBe(elsewhere);
    expect((await lead.run('delete', '--all', '--yes', '--experiment', 'demo')).stdout).toBe(
      'You have no reservation here that is scheduled or active.\n',
    );
  });

  test('--everyone: other users’ too, which an admin may not book again', async () => {
    await open();
    const id = await machine('lead').reserve();
    const admin = machine('admin', { ask: person('y').ask });
    const items = [{ id, deleted: true, again: null }];
    expect(await admin.json('delete', '--all', '--everyone')).toEqual({ items });
  });

  test.each([
    [['--all'], 'The deletion was not confirmed.'],
    [['--all', '--everyone'], 'The deletion was not confirmed.'],
    [['--all', '--yes', 'abcd'], "--all and ids can't be given together."],
    [['--everyone', '--yes', 'abcd'], '--everyone needs --all.'],
    [['--all', '--yes', '--as-administrator', '--reason', 'x'], 'An administrator names each reservation.'],
  ])('%j without a terminal: exit 2', async (flags, message) => {
    await open();
    const { run, reserve, ids } = machine('lead');
    await reserve();
    expect(reportOf(await run('--json', 'delete', ...flags))).toMatchObject({ exitCode: 2, message });
    expect(await ids()).toHaveLength(1);
  });
});
