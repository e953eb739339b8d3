import { describe, expect, test } from 'vitest';
import { reportOf } from '../../e2e/command.ts';
import { offlineWorld } from '../../fixtures/command-world.ts';
import { NOW } from '../../fixtures/tokens.ts';

const LINK = ['--offline', 'reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G'];

/** Books with these flags. @returns what was printed */
async function book(flags: string[], changes: Parameters<typeof offlineWorld>[0] = {}) {
  return (await offlineWorld(changes)).run(...LINK, ...flags);
}

describe('a time of day, at Sunday 12:00 UTC', () => {
  const flags = ['--start', 'tomorrow 14:00', '--end', '16:00'];

  test('the card shows it as it was typed, and names the zone once', async () => {
    const { exitCode, stdout, stderr } = await book(flags, { variables: { TZ: 'Europe/Brussels' } });
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout).toContain('  from        Mon 2 Nov 14:00 Europe/Brussels (in 1 d 1 h)\n');
    expect(stdout).toContain('  until       Mon 2 Nov 16:00 (for 2 h)\n');
    expect(stdout.match(/Brussels/g)).toHaveLength(1);
  });

  test.each<[string, string[], Parameters<typeof offlineWorld>[0], string]>([
    ['--tz', ['--tz', 'Asia/Tokyo'], { variables: { TZ: 'Europe/Brussels' } }, '2026-11-02T05:00:00.000Z'],
    ['TZ', [], { variables: { TZ: ':Europe/Brussels' } }, '2026-11-02T13:00:00.000Z'],
    ['the system’s', [], { localZone: () => 'Europe/Athens' }, '2026-11-02T12:00:00.000Z'],
  ])('is in the zone of %s; JSON has UTC', async (_, zone, changes, start) => {
    const { stdout } = await book([...flags, ...zone, '--json'], changes);
    expect(JSON.parse(stdout).reservation.start_date).toBe(start);
  });

  test('a TZ that is no zone is exit 2 where a time needs one, and said where a time is shown', async () => {
    const env = { TZ: 'Mars/Base' };
    expect(reportOf(await book([...flags, '--json'], { variables: env }))).toMatchObject({
      exitCode: 2,
      message: 'TZ is "Mars/Base", which is not a time zone.',
    });
    const { exitCode, stdout, stderr } = await book(['--start-now', '--for', '2h'], { variables: env });
    expect(exitCode).toBe(0);
    expect(stderr).toBe('TZ is "Mars/Base", which is not a time zone: times are in UTC.\n');
    expect(stdout).toContain('Sun 1 Nov 12:00 UTC (now)');
  });
});

test.each<[string[], string]>([
  [['--start', '+2h', '--for', '90m'], 'from        Sun 1 Nov 14:00 UTC (in 2 h)'],
  [['--start-now', '--for', '45m'], 'until       Sun 1 Nov 12:45 (in 45 min)'],
])('a duration is repeated as typed, whatever time the answer took: %j', async (flags, line) => {
  let late = 0;
  const now = () => {
    late = Math.min(300, late + 10);
    return NOW + late;
  };
  const { stdout } = await book(flags, { now });
  expect(stdout).toContain(line);
});

test.each([
  [4999, 7_200_000, ''],
  [15_000, 7_190_000, 'Warning: the reservation is 10 s shorter than the 2 h that were asked for.\n'],
])('--start-now --for 2h whose request arrives %i ms later', async (late, least, warning) => {
  const { stdout, stderr } = await book(['--start-now', '--for', '2h', '--json'], { now: () => NOW - late });
  const { start_date, end_date } = JSON.parse(stdout).reservation;
  expect(Date.parse(end_date) - Date.parse(start_date)).toBeGreaterThanOrEqual(least);
  expect(stderr).toBe(warning);
});
