import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { CompletionShell } from '../../src/cli/completion/scripts.ts';
import { atEndOfFile } from '../fixtures/end-of-file.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { environmentIn } from '../fixtures/program.ts';
import { type Machine, newMachine, reservationIn } from './command.ts';
import { LAUNCHER, newClient, pointingAt, record } from './served.ts';

/** A machine on whose PATH the program is, by its name. */
function machineWithProgram(): Machine & { env: Record<string, string> } {
  const machine = newMachine();
  const { home } = machine;
  const program = join(home, 'bin', 'slices-conn');
  mkdirSync(dirname(program));
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${LAUNCHER}' "$@"\n`, { mode: 0o755 });
  const PATH = [dirname(program), process.env['PATH']].join(delimiter);
  return { ...machine, env: { ...environmentIn(home), PATH, TERM: 'xterm', LANG: 'C.UTF-8' } };
}

/** A set-up in which Ctrl-G prints the line that is being edited, between marks. */
const SETUP: Readonly<Record<'bash' | 'zsh', string>> = {
  bash: String.raw`PS1='ready> '; stty rows 50 cols 120
bind 'set bell-style none'
bind -x '"\C-g": printf "\n<<%s>>\n" "$READLINE_LINE"'
`,
  zsh: `PS1='ready> '; stty rows 50 cols 120; setopt no_beep
show-line() { zle -I; print -r -- "<<$BUFFER>>" }
zle -N show-line; bindkey '^G' show-line
`,
};

/** Starts an interactive shell with a set-up of its own, through `script`, which gives it a terminal: for a test that types like a person. */
function typist(command: string, { home, env }: { home: string; env: Record<string, string> }) {
  const terminal = spawn('script', ['-qec', command, '/dev/null'], { cwd: home, env });
  atEndOfFile(() => terminal.kill('SIGKILL'));
  let output = '';
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const waiting = { timeout: PATIENCE, interval: 20 };
  return {
    /** Types keys at an empty prompt, and reads the line that they have come to; what was shown meanwhile beside it. */
    async type(keys: string): Promise<{ line: string; shown: string }> {
      await vi.waitFor(() => expect(output).toContain('ready> '), waiting);
      const from = output.length;
      terminal.stdin.write(`\u0015${keys}\u0007`);
      return vi.waitFor(() => {
        // Until it shows its prompt again, the shell has given the terminal back, which would itself take Ctrl-U.
        const found = /<<(.*)>>(?=.*ready> )/s.exec(output.slice(from));
        if (!found) throw new Error(`exit ${terminal.exitCode}; the terminal shows: ${output}`);
        const [marked, line = ''] = found;
        return { line, shown: output.slice(from, output.indexOf(marked, from)) };
      }, waiting);
    },
  };
}
type Typist = ReturnType<typeof typist>;

/** Whether a program is there, and does what it is told. */
const works = (program: string, ...args: string[]): boolean => spawnSync(program, args).status === 0;
const terminal = works('script', '-qec', 'true', '/dev/null');

function testable(shell: CompletionShell): { title: string; skipped: boolean } {
  const found = works(shell, '-c', 'true') && (shell === 'fish' || terminal);
  if (found) return { title: `in ${shell}`, skipped: false };
  const title = `NOT TESTED in ${shell}: it, or a terminal for it, is missing`;
  process.stderr.write(`Completion is ${title}.\n`);
  // In CI these tests would be green without having run.
  return { title, skipped: shell !== 'bash' || !process.env['CI'] };
}

const [bash, zsh, fish] = [testable('bash'), testable('zsh'), testable('fish')];

/** What both shells with a line editor of their own make of the keys. */
const TYPED: readonly (readonly [keys: string, line: string])[] = [
  ['slices-conn reserv\t', 'slices-conn reserve '],
  ['slices-conn reserve be-g\t', 'slices-conn reserve be-gent1 '],
  ['slices-conn reserve poznan\t', 'slices-conn reserve pl-poznan1 '],
  ['slices-conn list --profile=off\t', 'slices-conn list --profile=offline '],
  ['slices-conn reserve a b --start 2026-12-01T10:\t', 'slices-conn reserve a b --start 2026-12-01T10:'],
  ['slices-conn reserve a b --start=2026-12-01T10:0\t', 'slices-conn reserve a b --start=2026-12-01T10:0'],
  ["slices-conn reserve 'be-g\t", "slices-conn reserve 'be-gent1' "],
  ['slices-conn verify my\t', String.raw`slices-conn verify my\ link.jwt `],
  ['slices-conn reserve a b --save=my\t', String.raw`slices-conn reserve a b --save=my\ link.jwt `],
  ['slices-conn verify ~/my\t', String.raw`slices-conn verify ~/my\ link.jwt `],
  ['echo; FOO=1 slices-conn reserv\t', 'echo; FOO=1 slices-conn reserve '],
];

/** The same, where a service is asked. */
const ASKED = ['slices-conn --offline experiment use d\t', 'slices-conn --offline experiment use demo '];

/** Looks again until it passes: on a busy machine an answer comes too late for the first Tab, and a person presses it again. */
function atLast(look: () => Promise<void> | void): Promise<void> {
  return vi.waitFor(look, { timeout: PATIENCE, interval: 0 });
}

async function typesWhatIsAsked(person: Typist): Promise<void> {
  const [keys = '', line] = ASKED;
  await atLast(async () => expect((await person.type(keys)).line).toBe(line));
}

describe.skipIf(bash.skipped)(bash.title, () => {
  const machine = machineWithProgram();
  let person: Typist;
  let id: string;
  beforeAll(async () => {
    const link = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '2h'];
    ({ id } = reservationIn(await machine.json('reserve', ...link)));
    writeFileSync(join(machine.home, 'my link.jwt'), '');
    writeFileSync(join(machine.home, '.bashrc'), SETUP.bash);
    await machine.run(['--install-completion', 'bash']);
    person = typist('bash --noprofile -i', machine);
  });

  test.each(TYPED)('%j: %j', async (keys, line) => {
    expect((await person.type(keys)).line).toBe(line);
  });

  test('what a service answers', () => typesWhatIsAsked(person));

  test('nothing on the line is run while it is completed', async () => {
    const keys = 'slices-conn experiment use $(touch run) --experiment `touch run` ';
    expect((await person.type(`${keys}\t\t`)).line).toBe(keys);
    expect(existsSync(join(machine.home, 'run'))).toBe(false);
  });

  test('candidates are listed with their descriptions, and not inserted', async () => {
    const { line, shown } = await person.type('slices-conn reserve fr-\t\t');
    expect(line).toBe('slices-conn reserve fr-');
    expect(shown).toContain('fr-lille  (France)');
    expect(shown).not.toContain('be-gent1');
  });

  test('a reservation by its id', async () => {
    const [shown, deleted] = [`slices-conn --offline show ${id} `, `slices-conn --offline delete ${id} `];
    await atLast(async () => {
      expect((await person.type('slices-conn --offline show con_\t')).line).toBe(shown);
    });
    expect((await person.type(`${deleted}\t`)).line).toBe(deleted);
  });

  test('row 60: a description is never more than text to the shell, however much of it is inserted', async () => {
    const other = machineWithProgram();
    const program = join(other.home, 'bin', 'slices-conn');
    const { stdout } = await other.run(['completion', 'bash']);
    // Names that differ in case only, as a portal may list them.
    const answer = 'demo\\t$(touch run)\\nDEMO\\t$(touch run)\\n:0\\n';
    writeFileSync(program, `#!/bin/sh\nprintf '${answer}'\n`);
    writeFileSync(join(other.home, '.script'), stdout);
    writeFileSync(
      join(other.home, '.bashrc'),
      `${SETUP.bash}bind 'set completion-ignore-case on'; bind 'set show-all-if-ambiguous on'\n. ~/.script\n`,
    );
    const { line } = await typist('bash --noprofile -i', other).type('slices-conn experiment use d\t');
    expect(line).not.toMatch(/[$`;&|]/);
  });
});

describe.skipIf(zsh.skipped)(zsh.title, () => {
  const machine = machineWithProgram();
  let person: Typist;
  beforeAll(async () => {
    writeFileSync(join(machine.home, 'my link.jwt'), '');
    writeFileSync(join(machine.home, '.zshrc'), SETUP.zsh);
    await machine.run(['--install-completion', 'zsh']);
    person = typist('zsh -d -i', machine);
  });

  test.each(TYPED)('%j: %j', async (keys, line) => {
    expect((await person.type(keys)).line).toBe(line);
  });

  test('what a service answers', () => typesWhatIsAsked(person));

  test('sites are listed with their country', async () => {
    const { shown } = await person.type('slices-conn reserve \t');
    expect(shown).toMatch(/be-antwerp +be-gent1 +-- Belgium/);
    expect(shown).toMatch(/pl-poznan1 +-- Poland/);
  });

  test('as a function on the fpath, which compinit finds by itself', async () => {
    const folder = join(machine.home, 'functions');
    mkdirSync(join(folder, 'rc'), { recursive: true });
    const { stdout } = await machine.run(['completion', 'zsh']);
    writeFileSync(join(folder, '_slices-conn'), stdout);
    writeFileSync(
      join(folder, 'rc', '.zshrc'),
      `${SETUP.zsh}fpath=(${folder} $fpath); autoload -Uz compinit; compinit -u -D\n`,
    );
    const env = { ...machine.env, ZDOTDIR: join(folder, 'rc') };
    const other = typist('zsh -d -i', { ...machine, env });
    expect((await other.type('slices-conn reserv\t')).line).toBe('slices-conn reserve ');
    expect((await other.type('slices-conn reserve be-g\t')).line).toBe('slices-conn reserve be-gent1 ');
  });
});

describe.skipIf(fish.skipped)(fish.title, () => {
  const machine = machineWithProgram();
  beforeAll(async () => {
    writeFileSync(join(machine.home, 'my link.jwt'), '');
    await machine.run(['--install-completion', 'fish']);
  });

  /** What fish offers at the end of a line, by the file that it finds by itself. */
  function offered(line: string): string[] {
    const { home: cwd, env } = machine;
    const asking = ['-c', 'complete -C "$argv[1]"', line];
    const { stdout, stderr, status } = spawnSync('fish', asking, { cwd, env, encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
    return stdout.split('\n').filter(Boolean);
  }

  test.each<[string, string[]]>([
    ['slices-conn re', ['reserve\tbook a link between two sites']],
    ['slices-conn reserve poznan', ['pl-poznan1\tPoland']],
    ["slices-conn reserve 'be-g", ['be-gent1\tBelgium']],
    ['slices-conn list --profile=of', ['--profile=offline\tprofile']],
    ['slices-conn reserve a b --start 2026-12-01T10:', []],
    [
      'slices-conn reserve a b --start 2026-12-01T10:00 --dry',
      ['--dry-run\tsay what would be booked, and book nothing'],
    ],
    ['slices-conn verify my', ['my link.jwt']],
    ['slices-conn reserve a b --save=my', ['--save=my link.jwt']],
    ['slices-conn nonsense ', []],
  ])('%j: %j', (line, expected) => {
    expect(offered(line).toSorted()).toEqual(expected);
  });

  test('what a service answers', async () => {
    const expected = ['demo\tlead, Comes with the reference server.'];
    await atLast(() => expect(offered('slices-conn --offline experiment use d')).toEqual(expected));
  });
});

test('__complete as a process: at a service that never answers, it asks once and ends', async () => {
  const { url, requests } = await record(() => 'hang');
  const client = newClient({ ...pointingAt(url), SLICES_CONN_USER_TOKEN: 'x.y.z' }, { ownProcess: true });
  const ended = await client.command('__complete', '--', 'experiment', 'use', '');
  expect(ended).toEqual({ exitCode: 0, stdout: ':0\n', stderr: '' });
  expect(requests).toHaveLength(1);
});
