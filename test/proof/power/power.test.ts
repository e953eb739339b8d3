import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { expectNothingFound } from '../nothing-found.ts';
import { printed, type Report } from '../report.ts';
import { LAUNCHER } from '../served-process.ts';
import { cutClients } from './client.ts';
import { CAN_RECORD, type Step } from './recording.ts';
import { cutServers } from './server.ts';

const until = { kills: 100 };

/** The program as it was built, with one of its settings changed. @returns its launcher */
function programWith(setting: string, other: string): string {
  const own = dirname(dirname(LAUNCHER));
  const folder = mkdtempSync(join(tmpdir(), 'slices-conn-mutant-'));
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

/** Nothing waits for the names of folders such as this one. */
function withoutSyncOf(folder: RegExp): (step: Step) => Step {
  return (step) => (step.act === 'sync' && folder.test(step.path) ? { ...step, path: '/' } : step);
}

function expectFound({ findings, ...report }: Report, what: RegExp): void {
  expect(findings.map((each) => each.what).join('\n'), printed({ ...report, findings })).toMatch(what);
}

const title = CAN_RECORD ? 'power cuts' : 'power cuts: strace is not installed, or may not trace';
describe.skipIf(!CAN_RECORD && !process.env['CI'])(title, () => {
  test('of the client: requests, logins, logouts and profiles stay as they were (THREATS.md 68)', async () => {
    expectNothingFound(await cutClients({ until, seed: 1 }), until);
  });

  test('with the journal’s removal not waited for, as synchronous = FULL has it, the ledger loses requests', async () => {
    const launcher = programWith('synchronous = EXTRA', 'synchronous = FULL');
    expectFound(
      await cutClients({ until, seed: 1 }, { launcher }),
      /reached the service, unknown to the ledger/,
    );
  });

  test('where names are not waited for, a login comes back and config.json is the old one', async () => {
    const changed = withoutSyncOf(/\/(?:credentials|config\/slices-conn)$/);
    const report = await cutClients({ until, seed: 1 }, { changed });
    expectFound(report, /the login is back/);
    expectFound(report, /config\.json is not the new one/);
  });

  test('of the server: what was answered with yes is in its file (THREATS.md 69)', async () => {
    expectNothingFound(await cutServers({ until, seed: 1 }), until);
  });

  test('with synchronous = NORMAL the server loses what it has answered', async () => {
    const launcher = programWith('synchronous = EXTRA', 'synchronous = NORMAL');
    expectFound(await cutServers({ until, seed: 1 }, { launcher }), /request \d+ is undone/);
  });

  test('where the name of its new data folder is not waited for, the server loses everything', async () => {
    const changed = withoutSyncOf(/\/machine1(?:\/data)?$/);
    expectFound(await cutServers({ until, seed: 1 }, { changed }), /request \d+ is undone/);
  });
});
