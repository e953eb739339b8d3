import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { expectNothingFound } from '../nothing-found.ts';
import { newReport, printed, type Report } from '../report.ts';
import { cutClients } from './client.ts';
import type { Changed } from './cuts.ts';
import { CAN_RECORD } from './recording.ts';
import { cutServers } from './server.ts';

const until = { kills: 100 };

/** A recording of a program that does not wait for some files or names. */
function withoutSyncOf(path: RegExp, aim?: RegExp): Changed {
  return {
    ...(aim ? { aim } : {}),
    change: (step) => (step.act === 'sync' && path.test(step.path) ? { ...step, path: '/' } : step),
    report: newReport(`power cuts without a sync of ${path}`, 'SQLite', 1),
  };
}

/** A recording of a program that does not wait for the removal of a journal, as with `synchronous` FULL in place of EXTRA. */
function withFullSync(aim: RegExp): Changed {
  let removed = '';
  return {
    aim,
    change(step) {
      if (step.act === 'remove') removed = step.path;
      const isItsFolder = step.act === 'sync' && removed === join(step.path, 'ledger.sqlite-journal');
      return isItsFolder ? { ...step, path: '/' } : step;
    },
    report: newReport('power cuts with synchronous = FULL', 'SQLite', 1),
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
    const full = withFullSync(/unknown to the ledger|the ledger does not know/);
    expectNothingFound(await cutClients({ until, seed: 1 }, { also: [...names, full] }), until);
    // Where nobody waits for the names of these folders, or for the end of a journal, it is found.
    for (const { aim = /^$/, report } of [...names, full]) expectFound(report, aim);
  });

  test('of the server: what was answered with yes is in its file (THREATS.md 69)', async () => {
    const [log, name] = [withoutSyncOf(/-wal$/), withoutSyncOf(/\/machine1(?:\/data)?$/)];
    expectNothingFound(await cutServers({ until, seed: 1 }, { also: [log, name] }), until);
    // Where nobody waits for its log, as synchronous = NORMAL has it, or for the name of its data folder, it is found.
    for (const { report } of [log, name]) expectFound(report, /request \d+ is undone/);
  });
});
