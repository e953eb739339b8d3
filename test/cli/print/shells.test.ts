import { describe, expect, test } from 'vitest';
import { asStarted, startedAs } from '../../../src/cli/print/as-started.ts';
import { type AdviceShell, quoted, shellOf } from '../../../src/cli/print/shells.ts';
import { ownCommand } from '../../../src/contract/failure.ts';
import { offlineWorld } from '../../fixtures/command-world.ts';
import { recordedStream } from '../../fixtures/recorded-stream.ts';

/** What Windows sets for every program, and PowerShell for those that it starts. */
const WINDOWS = {
  OS: 'Windows_NT',
  ProgramFiles: 'C:\\Program Files',
  SystemRoot: 'C:\\WINDOWS',
  PSModulePath:
    'C:\\Program Files\\WindowsPowerShell\\Modules;C:\\WINDOWS\\system32\\WindowsPowerShell\\v1.0\\Modules',
};
const POWERSHELL = {
  ...WINDOWS,
  PSModulePath: `C:\\Users\\x\\OneDrive\\Dokumente\\WindowsPowerShell\\Modules;${WINDOWS.PSModulePath}`,
};

test.each<[AdviceShell, Record<string, string>]>([
  ['posix', {}],
  ['posix', { PSModulePath: '/root/.local/share/powershell/Modules' }],
  ['cmd', WINDOWS],
  ['powershell', POWERSHELL],
  ['powershell', { ...WINDOWS, PSModulePath: 'C:\\Users\\x\\Documents\\PowerShell\\Modules' }],
  ['posix', { ...WINDOWS, MSYSTEM: 'MINGW64', SHELL: '/usr/bin/bash' }],
])('the shell is %s with %o', (shell, variables) => {
  expect(shellOf(variables)).toBe(shell);
});

// A path with a blank, names that people chose, and what each shell would replace or take for its end.
test.each([
  ['be-gent1', 'be-gent1', 'be-gent1'],
  ['2026-12-01T10:00:00+01:00', '2026-12-01T10:00:00+01:00', '2026-12-01T10:00:00+01:00'],
  ['baseUrl=http://127.0.0.1:4280', 'baseUrl=http://127.0.0.1:4280', 'baseUrl=http://127.0.0.1:4280'],
  ['', '""', '""'],
  ["my link's", `"my link's"`, `"my link's"`],
  ['a & b | c > d', '"a & b | c > d"', '"a & b | c > d"'],
  ['@home', '"@home"', '"@home"'],
  ['C:\\my links\\', '"C:\\my links\\\\"', '"C:\\my links\\\\"'],
  ['$(calc)', "'$(calc)'", '"$(calc)"'],
  ["it's $1 ’x", "'it''s $1 ’’x'", `"it's $1 ’x"`],
  ['`calc`', "'`calc`'", '"`calc`"'],
  ['“calc”', "'“calc”'", '"“calc”"'],
  ['%PATH%', '"%PATH%"', '^"^%PATH^%^"'],
  ['a" & calc "', `'a" & calc "'`, '^"a\\^" ^& calc \\^"^"'],
])('%j is one word: %s in PowerShell, %s in cmd', (text, powershell, cmd) => {
  expect(quoted('powershell', text)).toBe(powershell);
  expect(quoted('cmd', text)).toBe(cmd);
});

describe('advice', () => {
  const both = (text: string): [string, string] => [text, text];
  test.each<[string, powershell: string, cmd: string]>([
    ["slices-conn show 'my link'\\''s'", ...both(`slices-conn show "my link's"`)],
    ...(
      [
        ['reserve a b --via x,y --for 1h', 'reserve a b --via "x,y" --for 1h'],
        ['run a b --for 1h -- iperf3 -c 10.0.0.2', 'run a b --for 1h "--" iperf3 -c 10.0.0.2'],
      ] as const
    ).map(([unix, powershell]): [string, string, string] => {
      return [`slices-conn ${unix}`, `slices-conn ${powershell}`, `slices-conn ${unix}`];
    }),
    ['unset TZ', 'Remove-Item Env:TZ', 'set "TZ="'],
    ['unset A_B C_D', 'Remove-Item Env:A_B, Env:C_D', 'set "A_B=" && set "C_D="'],
    [
      'unset https_proxy && slices-conn login',
      'Remove-Item Env:https_proxy; slices-conn login',
      'set "https_proxy=" && slices-conn login',
    ],
    [
      "mv 'C:'\\\\'x'\\\\'a.json' 'C:'\\\\'x'\\\\'a.json.bad'",
      ...both('move C:\\x\\a.json C:\\x\\a.json.bad'),
    ],
    [
      "slices-conn list --description 'unset TZ, mv it --via a,b -- slices-conn list'",
      ...both('slices-conn list --description "unset TZ, mv it --via a,b -- slices-conn list"'),
    ],
    // Sentences stay, with their apostrophes.
    ...["It isn't known, and can't be unset.", 'Put a new one there, or unset it.'].map(
      (text): [string, string, string] => [text, ...both(text)],
    ),
  ])('%s', (advice, powershell, cmd) => {
    expect(asStarted(startedAs({ variables: POWERSHELL }), advice)).toBe(powershell);
    expect(asStarted(startedAs({ variables: WINDOWS }), advice)).toBe(cmd);
  });

  test.each([
    ['C:\\my links\\links.exe', '& "C:\\my links\\links.exe" list', '"C:\\my links\\links.exe" list'],
    ['.\\links.exe', '.\\links.exe list', '.\\links.exe list'],
    ['C:\\my links\\slices-conn.exe', 'slices-conn list', 'slices-conn list'],
  ])('of the executable %s', (executable, powershell, cmd) => {
    const typed = (variables: typeof WINDOWS): string =>
      asStarted(startedAs({ variables, executable }), ownCommand('list'));
    expect([typed(POWERSHELL), typed(WINDOWS)]).toEqual([powershell, cmd]);
  });
});

test('PowerShell, which takes two dashes away from scripts, is told how to type them', async () => {
  const { run, server } = await offlineWorld({ variables: POWERSHELL });
  const { exitCode, stderr } = await run(
    ...'run be-gent1 se-kth --bandwidth 1G --for 1h hostname'.split(' '),
  );
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('Type them in quotes: "--"\n')]);
  await server.close();
});

test.each([
  ['PowerShell', POWERSHELL, `"it's 5 % of x"`, '`'],
  ['cmd', WINDOWS, `^"it's 5 ^% of x^"`, '^'],
])('what %s is advised is written for it', async (_, variables, description, goesOn) => {
  const changes = { variables: { ...variables, SLICES_CONN_PROFILE: 'offline' } };
  const { run, runIn, server } = await offlineWorld(changes);
  const words = ['--start-now', '--for', '1h', '--description', "it's 5 % of x"];
  const link = ['reserve', 'be-gent1', 'se-kth', ...words];
  const booked = await run(...link, '--bandwidth', '8G', '--json');
  const { id } = JSON.parse(booked.stdout).reservation;

  const { fix } = JSON.parse((await run(...link, '--bandwidth', '9G', '--json')).stderr).error;
  expect(fix).toContain(` --description ${description} --bandwidth `);
  expect((await run(...link, '--bandwidth', '9G')).stderr).toContain(` --description ${description} `);
  const deleted = JSON.parse((await run('delete', '--yes', id, '--json')).stdout);
  expect(deleted.items[0].again).toContain(` --description ${description}`);

  // Where the terminal is narrow, a command goes on in the next line.
  const stdout = recordedStream(60);
  await runIn({ stdout }, 'run', '--help');
  const lines = stdout.text.split('\n').filter((line) => line.startsWith('  slices-conn run '));
  expect(lines.length).toBeGreaterThan(1);
  for (const line of lines) expect(line.endsWith(` ${goesOn}`)).toBe(true);
  await server.close();
});

const NPX = { npm_command: 'exec', npm_lifecycle_script: "'slices-conn'" };

describe('the program is typed', () => {
  test.each([
    ['npx slices-conn', NPX],
    ['npx slices-conn', { npm_command: 'exec' }],
    ['slices-conn', {}],
    ['slices-conn', { npm_command: 'run-script', npm_lifecycle_script: 'slices-conn list' }],
    ['slices-conn', { npm_command: 'exec', npm_lifecycle_script: 'vitest' }],
  ])('%s with %o', (program, variables) => {
    expect(startedAs({ variables })).toEqual({ program, shell: 'posix' });
  });

  test.each([
    ['slices-conn', 'slices-conn'],
    ['/opt/bin/slices-conn', 'slices-conn'],
    ['C:\\tools\\slices-conn.exe', 'slices-conn'],
    ['./slices-conn-linux-x64', './slices-conn-linux-x64'],
    ['/home/a b/links', "'/home/a b/links'"],
  ])('the executable %s as %s', (executable, program) => {
    expect(startedAs({ variables: {}, executable }).program).toBe(program);
  });
});

test.each([
  ['slices-conn --offline list', 'npx slices-conn --offline list'],
  ['sudo slices-conn probe x', 'sudo npx slices-conn probe x'],
  ["It isn't known. To see it: slices-conn list", "It isn't known. To see it: npx slices-conn list"],
  ['npx slices-conn list', 'npx slices-conn list'],
  ['Another slices-conn command holds it.', 'Another slices-conn command holds it.'],
  ['/opt/slices-conn list', '/opt/slices-conn list'],
  [
    "slices-conn reserve --description 'it'\\''s for slices-conn run' && slices-conn list",
    "npx slices-conn reserve --description 'it'\\''s for slices-conn run' && npx slices-conn list",
  ],
])('%s', (advice, typed) => {
  expect(asStarted({ program: 'npx slices-conn', shell: 'posix' }, advice)).toBe(typed);
});
