import { describe, expect, test } from 'vitest';
import { reportOf } from '../../e2e/command.ts';
import { type CommandRun, offlineWorld } from '../../fixtures/command-world.ts';
import { NOW } from '../../fixtures/tokens.ts';
import { person } from '../person.ts';

const LINK = ['be-gent1', 'pl-poznan1', '--start', '2026-11-02T09:00Z', '--for', '6h', '--bandwidth', '100M'];

/** A reservation of 100 Mbps for six hours, and a person who gives this answer. */
async function scene(answer: string) {
  const world = await offlineWorld();
  const texts = ['--name', 'own', '--description', 'a copy'];
  const { stdout, stderr } = await world.run('--offline', '--json', 'reserve', ...LINK, ...texts);
  if (stdout === '') throw new Error(stderr);
  const id: string = JSON.parse(stdout).reservation.id;
  const { ask, questions } = person(answer);
  return {
    id,
    questions,
    run: (...args: string[]) => world.run('--offline', ...args),
    asked: (...args: string[]) => world.runIn({ ask }, '--offline', ...args),
  };
}

test('the card of an update has old and new of each thing that changed', async () => {
  const { run } = await scene('');
  const lines = async (...flags: string[]): Promise<string[]> =>
    (await run('update', 'own', ...flags)).stdout.split('\n');
  const first = await lines('--bandwidth', '150M', '--start', '2026-11-02T10:00Z', '--description', 'b');
  expect(first[0]).toBe('Updated be-gent1 – pl-poznan1, 100 → 150 Mbps');
  expect(first.slice(2, 6)).toEqual([
    '  name         own',
    '  description  a copy → b',
    expect.stringMatching(/^ {2}from {9}Mon 2 Nov 09:00 → Mon 2 Nov 10:00 UTC \(in .*\)$/),
    '  until        Mon 2 Nov 15:00 (for 5 h, was 6 h)',
  ]);
  const second = await lines('--extend', '1h', '--description', '');
  expect(second[0]).toBe('Updated be-gent1 – pl-poznan1, 150 Mbps');
  expect(second.slice(3, 6)).toEqual([
    '  description  b → (none)',
    expect.stringMatching(/^ {2}from {9}Mon 2 Nov 10:00 UTC \(in .*\)$/),
    '  until        Mon 2 Nov 15:00 → Mon 2 Nov 16:00 (for 6 h, was 5 h)',
  ]);
});

test('the start of one that has begun is refused, and what can change is said', async () => {
  const { run } = await scene('');
  await run('reserve', ...LINK.with(2, '--start-now').toSpliced(3, 1), '--name', 'begun');
  for (const start of [
    ['--start', '+1h'],
    ['--start', '+1h', '--extend', '2h'],
  ]) {
    const report = reportOf(await run('--json', 'update', 'begun', ...start));
    expect([start, report.code, report.exitCode]).toEqual([start, 'reservation_started', 6]);
    expect(report.message).toMatch(/began at .*: its end and bandwidth can change, its start can't\./);
  }
  expect((await run('update', 'begun', '--extend', '1h', '--bandwidth', '150M')).exitCode).toBe(0);
});

describe('on a terminal, an update asks before it makes a reservation', () => {
  test.each([
    ['13 h long in place of 6 h', ['--extend', '7h']],
    ['1 Gbps in place of 100 Mbps', ['--bandwidth', '1G']],
    ['13 h long in place of 6 h, and 1 Gbps in place of 100 Mbps', ['--bandwidth', '1G', '--for', '13h']],
  ])('%s', async (what, flags) => {
    const { asked, run, questions, id } = await scene('');
    const before = (await run('--json', 'show', id)).stdout;
    const { exitCode, stdout } = await asked('update', id, ...flags);
    expect([exitCode, stdout, questions]).toEqual([0, '', [`Make it ${what}? [y/N] `]]);
    expect(JSON.parse((await run('--json', 'show', id)).stdout).reservation).toEqual(
      JSON.parse(before).reservation,
    );
  });

  test.each([
    ['twice as long and twice as wide', ['--for', '12h', '--bandwidth', '200M']],
    ['with --yes', ['--for', '13h', '--yes']],
  ])('but not %s', async (_, flags) => {
    const { asked, questions, id } = await scene('');
    const { exitCode, stdout } = await asked('update', id, ...flags);
    expect([exitCode, stdout.slice(0, 7), questions]).toEqual([0, 'Updated', []]);
  });

  test('yes goes on, and without a terminal nothing is asked', async () => {
    const { asked, run, id } = await scene('y');
    expect((await asked('update', id, '--for', '13h')).stdout).toMatch(/^Updated/);
    expect((await run('update', id, '--for', '27h')).stdout).toMatch(/^Updated/);
  });
});

describe('what was deleted can be booked again', () => {
  /** Runs a printed command. */
  const pasted = async (run: (...args: string[]) => Promise<CommandRun>, command: string) => {
    const words = [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '');
    return JSON.parse((await run('--json', ...words.slice(2))).stdout).reservation;
  };

  test('delete has the command, with all that the reservation had', async () => {
    const { run, id } = await scene('');
    const before = JSON.parse((await run('--json', 'show', id)).stdout).reservation;
    const { stdout } = await run('delete', '--yes', id);
    const [, first = '', second = ''] = stdout.split('\n');
    expect(first).toMatch(/^ {2}To book it again: slices-conn --offline reserve /);
    expect(second).toBe('');
    const again = await pasted(run, first.replace('  To book it again: ', ''));
    const { site1, site2, bandwidth, start_date, end_date, name, description } = before;
    expect(again).toMatchObject({ site1, site2, bandwidth, start_date, end_date, name, description });
  });

  test('and its route', async () => {
    const { run } = await scene('');
    const asked = ['be-gent1', 'fr-slices', '--avoid', 'pl-poznan1', '--bandwidth', '1', '--start-now'];
    await run('reserve', ...asked, '--for', '1h', '--name', 'routed');
    const { stdout } = await run('--json', 'delete', '--yes', 'routed');
    expect(JSON.parse(stdout).items[0].again).toContain(' --via fr-lille ');
  });

  test('of one that has begun it starts now; --json has it too, null for what was not there', async () => {
    const { run } = await scene('');
    const link = ['be-gent1', 'se-kth', '--start-now', '--end', '2026-11-02T09:00Z', '--bandwidth', '1500M'];
    await run('reserve', ...link, '--name', 'begun');
    const { stdout } = await run('--json', 'delete', '--yes', '--if-exists', 'begun', 'nothing-there');
    expect(JSON.parse(stdout).items.map(({ again }: { again: unknown }) => again)).toEqual([
      'slices-conn --offline reserve be-gent1 se-kth --bandwidth 1.5G --start-now --end 2026-11-02T09:00Z --name begun',
      null,
    ]);
  });

  test('show says when this machine deleted it, with the same command: exit 3', async () => {
    const { run, id } = await scene('');
    const again = JSON.parse((await run('--json', 'delete', '--yes', 'own')).stdout).items[0].again;
    for (const word of ['own', id]) {
      expect(reportOf(await run('--json', 'show', word))).toMatchObject({
        exitCode: 3,
        why: `This machine deleted it at ${new Date(NOW).toISOString()}.`,
        fix: again,
      });
    }
  });
});
