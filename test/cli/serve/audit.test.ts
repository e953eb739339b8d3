import { expect, test } from 'vitest';
import type { ServerCommands } from '../../../src/cli/serve/server.ts';
import type { AuditItem } from '../../../src/operate/audit.ts';
import type { AuditOptions } from '../../../src/operate/options.ts';
import { commandWorld, NO_SERVICE, serverCommands } from '../../fixtures/command-world.ts';
import { recordedStream } from '../../fixtures/recorded-stream.ts';
import { IDS, NOW } from '../../fixtures/tokens.ts';

const DAY = 86_400_000;
/** The database where no flag names one. */
const DEFAULT = '/home/somebody/serve';
const booked: AuditItem = {
  at: '2026-11-01T11:59:58.123Z',
  link: 'be-gent1~pl-poznan1',
  version: 3,
  action: 'create',
  accepted: true,
  by: IDS.user,
  name: 'alice',
  experiment: IDS.experiment,
  reservation: IDS.reservation,
  reservation_name: null,
  site1: 'pl-poznan1',
  site2: 'be-gent1',
  start_date: '2026-11-01T12:00:00.000Z',
  end_date: '2026-11-01T14:00:00.000Z',
  bandwidth: 2500,
  tags: { site1_s_tag: 1, site1_c_tag: 2, site2_s_tag: 3, site2_c_tag: 4 },
  why: null,
  count: 1,
};
const refused: AuditItem = {
  ...booked,
  accepted: false,
  name: null,
  reservation: null,
  site1: null,
  site2: null,
  end_date: '2026-11-03T14:00:00.000Z',
  tags: null,
  why: 'bandwidth: 400 of 1000 Mbps free',
};
const forged: AuditItem = {
  ...booked,
  action: 'delete',
  by: 'user_\u001b[2J',
  experiment: 'exp_\u009b',
  reservation: 'con_\u202e',
  link: 'a~\u200b',
  why: 'died\n\u001b]0;x\u0007',
};

/** Runs `serve audit` on these portions of decisions. */
async function audit(
  args: readonly string[],
  portions: readonly AuditItem[][] = [],
  { more = false, columns }: { more?: boolean; columns?: number | undefined } = {},
) {
  const asked: AuditOptions[] = [];
  const readAudit: ServerCommands['readAudit'] = async (settings, take) => {
    asked.push(settings);
    for (const portion of portions) await take(portion);
    return more;
  };
  const connection = NO_SERVICE;
  const stdout = recordedStream(columns);
  const world = commandWorld(connection, { server: serverCommands({ readAudit }), stdout });
  const { exitCode, stderr } = await world.run('serve', 'audit', ...args);
  return { exitCode, stdout: stdout.text, stderr, asked };
}

/** The cells of each line. */
const cells = (stdout: string): string[][] => stdout.split('\n').map((line) => line.split(/ {2,}/));
const HEAD = ['WHAT', 'OUTCOME', 'LINK', 'S/C TAGS', 'BANDWIDTH', 'PERIOD', 'RESERVATION', 'BY', 'WHY'];

test('without a terminal the audit is a table with one line for each decision', async () => {
  const { stdout, stderr, exitCode } = await audit([], [[booked, refused]]);
  expect({ exitCode, stderr }).toEqual({
    exitCode: 0,
    stderr: `Read on ${DEFAULT}; --data and --database name another server's.\n`,
  });
  const asked = ['be-gent1 – pl-poznan1', '1/2 – 3/4', '2.5 Gbps', '2026-11-01 12:00:00 – 14:00:00'];
  const [link, , rate] = asked;
  const longer = '2026-11-01 12:00:00 – 2026-11-03 14:00:00';
  const when = '2026-11-01 11:59:58';
  expect(cells(stdout)).toEqual([
    ['WHEN (UTC)', ...HEAD],
    [when, 'create', 'accepted', ...asked, IDS.reservation, 'alice', '–'],
    [when, 'create', 'refused', link, '–', rate, longer, '–', IDS.user, refused.why],
    [''],
  ]);
});

test('times are in the zone of --tz; in the hour that comes twice they have their offset', async () => {
  const twice = ['2026-10-25T00:30:05.000Z', '2026-10-25T01:30:05.000Z'].map((at) => ({ ...booked, at }));
  const { stdout } = await audit(['--tz', 'Europe/Brussels'], [[booked, ...twice]]);
  for (const text of [
    ...['WHEN (Europe/Brussels)', '2026-11-01 12:59:58', '2026-11-01 13:00:00 – 15:00:00'],
    ...['2026-10-25 02:30:05 (UTC+2)', '2026-10-25 02:30:05 (UTC+1)'],
  ]) {
    expect(stdout).toContain(text);
  }
});

test('row 59: counted refusals show their number', async () => {
  expect((await audit([], [[{ ...refused, count: 37 }]])).stdout).toContain('refused 37 times');
});

test.each([undefined, 1000, 80])('row 7: control characters in decisions, columns %s', async (columns) => {
  const { stdout } = await audit(['--color', 'never'], [[forged]], { columns });
  expect(stdout.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u200b\u202e]/);
  expect(stdout).toContain('died\\u000a\\u001b]0;x\\u0007');
});

test('--json prints one object for all portions', async () => {
  for (const portions of [[], [[]], [[booked], [refused, forged]], [[], [booked], [], [forged], []]]) {
    const { stdout, stderr } = await audit(['--json'], portions, { more: true });
    expect(JSON.parse(stdout)).toEqual({ items: portions.flat(), more: true, database: DEFAULT });
    expect(stdout).toMatch(/^[^\u0000-\u001f]+\n$/);
    expect(stderr).toContain('there are older ones');
  }
  const { stdout } = await audit(['--json'], [[booked]]);
  expect(JSON.parse(stdout)).toEqual({ items: [booked], more: false, database: DEFAULT });
});

test('the output says that there are more decisions, or that there are none', async () => {
  const { stderr } = await audit(['--data', '/d', '--limit', '7'], [[booked]], { more: true });
  expect(stderr).toBe('These are the newest 7; there are older ones. To see more: --limit 70\n');
  expect((await audit(['--quiet'], [[booked]], { more: true })).stderr).toBe('');
  expect(await audit(['--data', '/d'])).toMatchObject({ stdout: 'No decision on /d matches.\n', stderr: '' });
});

test('the flags are passed on, with times and ids parsed', async () => {
  expect((await audit([])).asked).toEqual([{ limit: 100 }]);
  const { reservation, experiment } = IDS;
  const { asked } = await audit([
    ...['--data', 'd', '--reservation', reservation, '--experiment', experiment, '--user', 'u@h'],
    ...['--since', '2d', '--until', '2026-11-01T00:00:00Z', '--refused', '--limit', '5'],
  ]);
  const span = { since: NOW - 2 * DAY, until: Date.parse('2026-11-01T00:00:00Z') };
  const flags = { data: 'd', user: 'u@h', refused: true, limit: 5 };
  expect(asked).toEqual([{ reservation, experiment, ...span, ...flags }]);
  const database = 'postgres://slices@db.example.org/slices';
  expect((await audit(['--database', database])).asked).toEqual([{ limit: 100, database }]);
});

test.each([
  ['two words', ['--link', 'pl-poznan1', 'be-gent1']],
  ['as it is written', ['--link', 'pl-poznan1~be-gent1']],
  ['each after its flag', ['--link', 'pl-poznan1', '--link', 'be-gent1']],
])('a link is selected by its sites, %s', async (_, args) => {
  expect((await audit([...args, '--refused'])).asked).toMatchObject([{ link: ['pl-poznan1', 'be-gent1'] }]);
});

test.each([
  ['one site', ['--link', 'be-gent1']],
  ['no site', ['--link', 'BE~GENT']],
  ["an experiment's name", ['--experiment', 'demo']],
  ['neither id nor name', ['--reservation', 'R1']],
  ['no time', ['--since', 'often']],
  ['a period that holds nothing', ['--since', '1d', '--until', '2d']],
  ['a folder and a database', ['--data', 'd', '--database', 'postgres://a@b/c']],
])('%s: exit 2, and nothing is read', async (_, args) => {
  const { exitCode, stdout, stderr, asked } = await audit(args);
  expect({ exitCode, stdout, asked }).toEqual({ exitCode: 2, stdout: '', asked: [] });
  expect(stderr).toMatch(/^error: /);
  expect(stderr).not.toContain('--start');
});
