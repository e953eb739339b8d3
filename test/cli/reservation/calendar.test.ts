import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { offlineWorld } from '../../fixtures/command-world.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';
import { NOW } from '../../fixtures/tokens.ts';

const run = promisify(execFile);
const hasKhal = await run('sh', ['-c', 'command -v khal']).then(
  () => true,
  () => false,
);

const DESCRIPTION = `Ünïcödé 😀; back\\slash, a comma ${'long '.repeat(20)}end`;

/** What `list --ics` prints of a route that is booked and a link that was deleted, and their ids. */
async function exported() {
  const { run: slices } = await offlineWorld();
  const book = async (...args: string[]): Promise<string> => {
    const { stdout } = await slices('--offline', '--json', 'reserve', ...args, '--for', '2h');
    return JSON.parse(stdout).reservation.id;
  };
  const rate = ['--bandwidth', '2500M', '--start', '2026-11-03T09:00Z'];
  const texts = ['--name', 'nightly', '--description', DESCRIPTION];
  const route = await book('hu-sztaki', 'fr-lille', ...rate, ...texts);
  const gone = await book('be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start', '2026-11-02T09:00Z');
  await slices('--offline', 'delete', gone, '--yes');
  const { stdout } = await slices('--offline', 'list', '--all', '--ics');
  return { text: stdout, route, gone, slices };
}

test('each reservation is an event; lines end as RFC 5545 says, and have at most 75 octets', async () => {
  const { text, route, gone, slices } = await exported();
  const lines = text.split('\r\n');
  expect(lines.pop()).toBe('');
  expect(lines.filter((line) => line.includes('\n') || Buffer.byteLength(line) > 75)).toEqual([]);
  const events = text.replaceAll('\r\n ', '').split('BEGIN:VEVENT').slice(1);
  expect(events).toHaveLength(2);
  expect(events[1]?.replaceAll(/\\(?=[\\;,])/g, '')).toContain(DESCRIPTION);
  expect(events[0]).toContain(`UID:${gone}\r\n`);
  expect(events[0]).toContain('STATUS:CANCELLED\r\n');
  for (const line of [
    `UID:${route}`,
    'DTSTAMP:20261101T120000Z',
    'DTSTART:20261103T090000Z',
    'DTEND:20261103T110000Z',
    'STATUS:CONFIRMED',
    'SUMMARY:nightly: fr-lille – hu-sztaki via be-gent1\\, pl-poznan1\\, 2.5 Gbps',
  ]) {
    expect(events[1]).toContain(`\r\n${line}\r\n`);
  }
  const sequences = events.map((event) => Number(/\r\nSEQUENCE:(\d+)\r\n/.exec(event)?.[1]));
  expect(sequences[0]).toBe((sequences[1] ?? 0) + 1);
  expect(sequences[1]).toBe((NOW - Date.UTC(2026, 0, 1)) / 250);
  expect(events[1]).toContain('\r\nLAST-MODIFIED:20261101T120000Z\r\n');
  const none = await slices('--offline', 'list', '--mine', '--site', 'gr-uth', '--ics');
  expect(none.stdout).toMatch(/^BEGIN:VCALENDAR\r\n[\s\S]*END:VCALENDAR\r\n$/);
  expect(none.stdout).not.toContain('VEVENT');
  expect((await slices('--offline', 'list', '--ics', '--timeline')).exitCode).toBe(2);
});

describe.skipIf(!hasKhal)('a calendar program (skipped where khal is not installed)', () => {
  test('reads them, and takes a later list in place of an earlier one', async () => {
    const { text, route, gone } = await exported();
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'links'));
    writeFileSync(join(folder, 'list.ics'), text);
    writeFileSync(
      join(folder, 'config'),
      `[calendars]
[[links]]
path = ${folder}/links
[sqlite]
path = ${folder}/database
[locale]
timeformat = %H:%M
dateformat = %Y-%m-%d
longdateformat = %Y-%m-%d
datetimeformat = %Y-%m-%dT%H:%M
longdatetimeformat = %Y-%m-%dT%H:%M
local_timezone = UTC
default_timezone = UTC
`,
    );
    const env = { PATH: process.env['PATH'], HOME: folder, LC_ALL: 'C.UTF-8' };
    const khal = async (...args: string[]): Promise<string> =>
      (await run('khal', ['-c', join(folder, 'config'), ...args], { env })).stdout;
    await khal('import', '--batch', join(folder, 'list.ics'));
    await khal('import', '--batch', join(folder, 'list.ics'));
    const format = '{uid}|{start-long-full}|{end-long-full}|{status}|{location}|{title}|{description}|';
    const listed = await khal('list', '2026-11-01', '5d', '--day-format', '', '-f', format);
    expect(listed.split('|').map((part) => part.trim())).toEqual([
      gone,
      '2026-11-02T09:00',
      '2026-11-02T11:00',
      'CANCELLED',
      'be-gent1 – pl-poznan1',
      'be-gent1 – pl-poznan1, 1 Gbps',
      expect.stringMatching(/be-gent1: S-tag \d+, C-tag \d+\npl-poznan1: S-tag \d+, C-tag \d+/),
      route,
      '2026-11-03T09:00',
      '2026-11-03T11:00',
      'CONFIRMED',
      'fr-lille – be-gent1 – pl-poznan1 – hu-sztaki',
      'nightly: fr-lille – hu-sztaki via be-gent1, pl-poznan1, 2.5 Gbps',
      expect.stringContaining(`${DESCRIPTION}\nfr-lille: S-tag `),
      '',
    ]);
  });
});
