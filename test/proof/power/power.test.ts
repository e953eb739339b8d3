import { cpSync, globSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { LAUNCHER } from '../../fixtures/program.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';
import { expectNothingFound } from '../nothing-found.ts';
import { newReport, printed, type Report } from '../report.ts';
import { cutClients } from './client.ts';
import type { Changed } from './cuts.ts';
import { CAN_RECORD } from './recording.ts';
import { cutServers } from './server.ts';

const until = { kills: 100 };

/** The program as it was built, with one of its settings changed. @returns its launcher */
function programWith(setting: string, other: string): string {
  const own = dirname(dirname(LAUNCHER));
  const folder = temporaryFolder();
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const name of ['bin', 'package.json', 'dist/cli'])
    cpSync(join(own, name), join(folder, name), { recursive: true });
  symlinkSync(join(own, 'node_modules'), join(folder, 'node_modules'));
  const changed = globSync(join(folder, 'dist/cli/**/*.cjs')).filter((file) => {
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.replaceAll(setting, other));
    return text.includes(setting);
  });
  expect(changed, `files with ${setting}`).not.toEqual([]);
  return join(folder, 'bin', basename(LAUNCHER));
}

/** A recording of a program that does not wait for some files or names. */
function withoutSyncOf(path: RegExp, aim?: RegExp): Changed {
  return {
    ...(aim ? { aim } : {}),
    change: (step) => (step.act === 'sync' && path.test(step.path) ? { ...step, path: '/' } : step),
    report: newReport(`power cuts without a sync of ${path}`, 'SQLite', 1),
  };
}

function expectFound(report: Report, what: RegExp): void {
  expect(report.findings.map((each) => each.what).join('\n'), printed(report)).toMatch(what);
}

const title = CAN_RECORD ? 'power cuts' : 'power cuts: strace is not installed, or may not trace';
describe.skipIf(!CAN_RECORD && !process.env['CI'])(title, () => {
  test('of the client: requests, logins, logouts and profiles stay as they were (THREATS.md 68)', async () => {
    const aims = [/the login is back/, /config\.json is not the new one/];
    const names = aims.map((aim) => withoutSyncOf(/\/(?:credentials|config\/slices-conn)$/, aim));
    expectNothingFound(await cutClients({ until, seed: 1 }, { also: names }), until);
    // Where nobody waits for the names of these folders, it is found.
    for (const { aim = /^$/, report } of names) expectFound(report, aim);
  });

  test('with the journal’s removal not waited for, as synchronous = FULL has it, the ledger loses requests', async () => {
    const launcher = programWith('synchronous = EXTRA', 'synchronous = FULL');
    const aim = /unknown to the ledger|the ledger does not know/;
    const report = newReport('power cuts with synchronous = FULL', 'SQLite', 1);
    await cutClients({ until, seed: 1 }, { launcher, also: [{ aim, change: (step) => step, report }] });
    expectFound(report, aim);
  });

  test('of the server: what was answered with yes is in its file (THREATS.md 69)', async () => {
    const [log, name] = [withoutSyncOf(/-wal$/), withoutSyncOf(/\/machine1(?:\/data)?$/)];
    expectNothingFound(await cutServers({ until, seed: 1 }, { also: [log, name] }), until);
    // Where nobody waits for its log, as synchronous = NORMAL has it, or for the name of its data folder, it is found.
    for (const { report } of [log, name]) expectFound(report, /request \d+ is undone/);
  });
});
