import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { Failure } from '../../src/contract/failure.ts';
import { checkProgram } from '../../src/main/processes.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

// The rules are tried on any system: its files stand for those of Windows, which takes both slashes.
describe('a command on Windows', () => {
  const [tools, more] = [temporaryFolder(), temporaryFolder()];
  const env = { PATH: `"${tools}";;${more}`, PATHEXT: '.COM;.EXE;.BAT;.CMD;.VBS' };
  beforeAll(() => {
    for (const name of [
      'iperf3.exe',
      'edit.com',
      'npm',
      'npm.cmd',
      'report.vbs',
      'measure.v2',
      'plain',
      'both.cmd',
    ]) {
      writeFileSync(join(tools, name), '');
    }
    mkdirSync(join(tools, 'folder.exe'));
    writeFileSync(join(more, 'both.exe'), '');
  });

  test.each(['iperf3', 'iperf3.exe', 'edit', 'measure.v2', 'both', `${tools}/iperf3`, `${tools}/iperf3.exe`])(
    '%s is started',
    (program) => checkProgram(program, env, true),
  );

  const found = (program: string): Failure => {
    try {
      checkProgram(program, env, true);
    } catch (error) {
      if (error instanceof Failure) return error;
      throw error;
    }
    throw new Error(`${program} would be started`);
  };

  test.each(['npm', 'npm.cmd', 'report', `${tools}/npm`])('%s is a script, and needs a shell', (program) => {
    const { code, facts } = found(program);
    expect([code, facts.why]).toEqual([
      'command_not_runnable',
      `A script is started by the shell of Windows: cmd /c ${program}`,
    ]);
  });

  test('a file that is no program is not started', () => {
    expect(found('plain')).toMatchObject({
      code: 'command_not_runnable',
      facts: { why: 'It is not a program, or you may not run it.' },
    });
  });

  test.each([
    ['no-such-command', 'It is in no folder of PATH.'],
    ['folder', 'It is in no folder of PATH.'],
    ['', 'It is in no folder of PATH.'],
    [`${tools}/no-such-file`, 'There is no such file.'],
    ['C:\\tools\\no-such-file.exe', 'There is no such file.'],
  ])('%j is not found: %s', (program, why) => {
    expect(found(program)).toMatchObject({ code: 'command_not_found', facts: { why } });
  });
});
