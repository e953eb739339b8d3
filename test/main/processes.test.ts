import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { checkProgram } from '../../src/main/processes.ts';
import { failureOf } from '../fixtures/failures.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

// The rules of Windows are tried on any system: its files stand for those of Windows, which takes both slashes.
const [tools, more] = [temporaryFolder(), temporaryFolder()];
const env = { PATH: `"${tools}";;${more}`, PATHEXT: '.COM;.EXE;.BAT;.CMD;.VBS' };
beforeAll(() => {
  const names = ['iperf3.exe', 'edit.com', 'npm', 'npm.cmd', 'report.vbs', 'measure.v2', 'plain', 'both.cmd'];
  for (const path of [...names.map((name) => join(tools, name)), join(more, 'both.exe')])
    writeFileSync(path, '');
  mkdirSync(join(tools, 'folder.exe'));
});

test.each(['iperf3', 'iperf3.exe', 'edit', 'measure.v2', 'both', `${tools}/iperf3`, `${tools}/iperf3.exe`])(
  'on Windows %s is started',
  (program) => checkProgram(program, env, true),
);

const SCRIPT = 'A script is started by the shell of Windows: cmd /c ';
const [NOT_ON_PATH, NO_FILE] = ['It is in no folder of PATH.', 'There is no such file.'];

test.each([
  ['npm', 'command_not_runnable', `${SCRIPT}npm`],
  ['npm.cmd', 'command_not_runnable', `${SCRIPT}npm.cmd`],
  ['report', 'command_not_runnable', `${SCRIPT}report`],
  [`${tools}/npm`, 'command_not_runnable', `${SCRIPT}${tools}/npm`],
  ['plain', 'command_not_runnable', 'It is not a program, or you may not run it.'],
  ['no-such-command', 'command_not_found', NOT_ON_PATH],
  ['folder', 'command_not_found', NOT_ON_PATH],
  ['', 'command_not_found', NOT_ON_PATH],
  [`${tools}/no-such-file`, 'command_not_found', NO_FILE],
  ['C:\\tools\\no-such-file.exe', 'command_not_found', NO_FILE],
])('on Windows %j is %s: %s', async (program, code, why) => {
  expect(await failureOf(() => checkProgram(program, env, true))).toMatchObject({ code, facts: { why } });
});
