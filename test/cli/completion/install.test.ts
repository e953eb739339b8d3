import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { installCompletion, withBlock } from '../../../src/cli/completion/completion.ts';
import { type CompletionShell, SHELLS, scriptOf } from '../../../src/cli/completion/scripts.ts';
import { Failure } from '../../../src/contract/failure.ts';
import { filesOn } from '../../../src/main/files.ts';
import { commandWorld, NO_SERVICE } from '../../fixtures/command-world.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';

let home: string;
beforeEach(() => {
  home = temporaryFolder();
});

const inHome = (path: string): string => join(home, path);
const text = (path: string): string => readFileSync(inHome(path), 'utf8');
const install = (shell: CompletionShell, env: Record<string, string> = {}) =>
  installCompletion(shell, { home, variables: env }, filesOn(home));

/** Writes a file in the home folder, and makes its folders. */
function put(path: string, content: string | Buffer): void {
  mkdirSync(dirname(inHome(path)), { recursive: true });
  writeFileSync(inHome(path), content);
}

/** Every file below the home folder, with content, mode and time of the last change. */
function everything(): string[] {
  return readdirSync(home, { recursive: true, encoding: 'utf8' })
    .map((path) => {
      const { ino, mtimeNs, size } = lstatSync(inHome(path), { bigint: true });
      return `${path} ${ino} ${mtimeNs} ${size}`;
    })
    .toSorted();
}

const BASH = '.local/share/bash-completion/completions/slices-conn';
const ZSH = '.local/share/slices-conn/zsh/_slices-conn';
const FISH = '.config/fish/completions/slices-conn.fish';

describe('the place of the script', () => {
  test.each<[CompletionShell, Record<string, string>, string[]]>([
    ['bash', {}, [BASH, '.bashrc']],
    ['bash', { XDG_DATA_HOME: '~/data' }, ['data/bash-completion/completions/slices-conn', '.bashrc']],
    ['bash', { BASH_COMPLETION_USER_DIR: '~/own' }, ['own/completions/slices-conn', '.bashrc']],
    ['bash', { XDG_DATA_HOME: 'relative' }, [BASH, '.bashrc']],
    ['zsh', {}, [ZSH, '.zshrc']],
    ['zsh', { XDG_DATA_HOME: '~/data' }, ['data/slices-conn/zsh/_slices-conn', '.zshrc']],
    ['zsh', { ZDOTDIR: '~/zsh', XDG_DATA_HOME: '' }, [ZSH, 'zsh/.zshrc']],
    ['fish', {}, [FISH]],
    ['fish', { XDG_CONFIG_HOME: '~/conf' }, ['conf/fish/completions/slices-conn.fish']],
  ])('%s with %j: %j', async (shell, env, paths) => {
    const set = Object.entries(env).map(([name, value]) => [name, value.replace('~', home)]);
    const files = await install(shell, Object.fromEntries(set));
    expect(files.map(({ path }) => path)).toEqual(paths.map(inHome));
    expect(text(paths[0] ?? '')).toBe(`${scriptOf(shell)}\n`);
    const written = readdirSync(home, { recursive: true, encoding: 'utf8' }).filter((path) =>
      lstatSync(inHome(path)).isFile(),
    );
    expect(written.toSorted()).toEqual(paths.toSorted());
  });

  test('a block names the script relative to the home folder, which differs between machines', async () => {
    await install('bash');
    expect(text('.bashrc')).toContain(`. "$HOME"/${BASH}\n`);
    expect(text('.bashrc')).not.toContain(home);
  });

  test('a path with a shell’s special characters is quoted', async () => {
    await install('zsh', { XDG_DATA_HOME: inHome("it's $HOME") });
    expect(text('.zshrc')).toContain(`source "$HOME"/'it'\\''s $HOME/slices-conn/zsh/_slices-conn'\n`);
  });
});

test.each(SHELLS)('a second installation for %s touches no file', async (shell) => {
  put('.bashrc', 'alias ll="ls -l"');
  const first = await install(shell);
  const before = everything();
  const second = await install(shell);
  expect(everything()).toEqual(before);
  expect(first.map(({ done }) => done)).not.toContain('Unchanged:');
  expect(second).toEqual(first.map(({ path }) => ({ path, done: 'Unchanged:' })));
});

describe('a block in a file', () => {
  const [BEGIN, END] = ['# >>> slices-conn completion >>>', '# <<< slices-conn completion <<<'];
  const BLOCK = `${BEGIN}\nnew $& $1\n${END}\n`;

  test.each<[string, string, string]>([
    ['an empty file', '', BLOCK],
    ['a line', 'one\n', `one\n\n${BLOCK}`],
    ['a line without an end', 'one', `one\n\n${BLOCK}`],
    ['an older block', `one\n${BEGIN}\nold\n${END}\ntwo\n`, `one\n${BLOCK}two\n`],
    ['an older block at the end, cut', `one\n${BEGIN}\nold\n${END}`, `one\n${BLOCK}`],
    ['a begin without an end', `${BEGIN}\nmine\n`, `${BEGIN}\nmine\n\n${BLOCK}`],
    ['a begin without an end before a block', `${BEGIN}\nmine\n${BLOCK}`, `${BEGIN}\nmine\n${BLOCK}`],
    ['a begin within a line', `echo '${BEGIN}'\nmine\n${END}\n`, `echo '${BEGIN}'\nmine\n${END}\n\n${BLOCK}`],
  ])('%s', (_, content, expected) => {
    const once = withBlock(Buffer.from(content), BLOCK);
    expect(Buffer.from(once).toString()).toBe(expected);
    expect(Buffer.compare(withBlock(once, BLOCK), once)).toBe(0);
  });

  test('text that is not UTF-8 keeps every byte', () => {
    const latin1 = Buffer.from([0x23, 0x20, 0xe9, 0xff, 0x00, 0x0d, 0x0a]);
    const block = `${BEGIN}\n"$HOME"/é\n${END}\n`;
    const changed = Buffer.from(withBlock(latin1, block));
    expect(changed).toEqual(Buffer.concat([latin1, Buffer.from(`\n${block}`)]));
    expect(Buffer.from(withBlock(changed, block))).toEqual(changed);
  });
});

describe('a set-up file that is a symbolic link', () => {
  test.each<[string, string]>([
    ['relative', 'dotfiles/bashrc'],
    ['absolute', '~/dotfiles/bashrc'],
  ])('%s: its target is written and keeps its mode', async (_, target) => {
    put('dotfiles/bashrc', 'mine\n');
    chmodSync(inHome('dotfiles/bashrc'), 0o640);
    symlinkSync(target.replace('~', home), inHome('.bashrc'));
    await install('bash');
    expect(readlinkSync(inHome('.bashrc'))).toBe(target.replace('~', home));
    expect(text('dotfiles/bashrc')).toMatch(/^mine\n\n# >>> slices-conn/);
    expect(statSync(inHome('dotfiles/bashrc')).mode & 0o777).toBe(0o640);
    expect(readdirSync(inHome('dotfiles'))).toEqual(['bashrc']);
  });

  test('a link to a link, in a folder that is also a link, is followed', async () => {
    put('elsewhere/deep/zshrc', 'mine\n');
    mkdirSync(inHome('elsewhere/zsh'));
    symlinkSync('elsewhere/zsh', inHome('zsh'));
    symlinkSync('../deep/link', inHome('elsewhere/zsh/.zshrc'));
    symlinkSync('zshrc', inHome('elsewhere/deep/link'));
    await install('zsh', { ZDOTDIR: inHome('zsh') });
    expect(text('elsewhere/deep/zshrc')).toMatch(/^mine\n\n# >>> slices-conn/);
    expect(lstatSync(inHome('elsewhere/zsh/.zshrc')).isSymbolicLink()).toBe(true);
    expect(lstatSync(inHome('elsewhere/deep/link')).isSymbolicLink()).toBe(true);
  });

  test('that leads to itself is a failure, not an endless search', async () => {
    symlinkSync('.bashrc', inHome('.bashrc'));
    await expect(install('bash')).rejects.toThrow(Failure);
  });
});

test('a failed write is reported and leaves no draft', async () => {
  mkdirSync(inHome('.bashrc'));
  await expect(install('bash')).rejects.toMatchObject({ code: 'file_unusable' });
  put('.local/share/slices-conn', 'a file where a folder must be');
  await expect(install('zsh')).rejects.toMatchObject({ code: 'file_unusable' });
  expect(existsSync(inHome('.zshrc'))).toBe(false);
  const left = readdirSync(home, { recursive: true, encoding: 'utf8' });
  expect(left.filter((path) => path.endsWith('.tmp'))).toEqual([]);
});

describe('--install-completion', () => {
  const run = (env: Record<string, string>, ...args: string[]) =>
    commandWorld(NO_SERVICE, { ...filesOn(home), home, variables: env }).run(...args);

  test('names the written files and the next step, and at the second run that all was done already', async () => {
    const first = await run({}, '--install-completion', 'bash');
    expect(first).toEqual({
      exitCode: 0,
      stdout: `Wrote ${inHome(BASH)}\nWrote a block in ${inHome('.bashrc')}\nOpen a new shell, then type: slices-conn <Tab>\n`,
      stderr: '',
    });
    const second = await run({}, '--install-completion', 'bash');
    expect(second.stdout).toMatch(/^Unchanged: .*\nUnchanged: .*\nOpen a new shell/);
  });

  test('a file that can’t be written leads to the way without it', async () => {
    put('.local/share', 'a file where a folder must be');
    const { exitCode, stderr } = await run({}, '--install-completion', 'bash', '--json');
    const { error } = JSON.parse(stderr);
    expect([exitCode, error.code, error.fix]).toEqual([2, 'file_unusable', 'slices-conn completion --help']);
  });

  test.each([
    ['/bin/zsh', '--install-completion'],
    ['zsh', '--install-completion'],
    ['/bin/tcsh', '--install-completion=zsh'],
  ])('where SHELL is %s, %s prints one object', async (SHELL, flag) => {
    const { exitCode, stdout, stderr } = await run({ SHELL }, flag, '--json');
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(JSON.parse(stdout)).toEqual({ shell: 'zsh', files: [inHome(ZSH), inHome('.zshrc')] });
  });

  test.each(['--install-completion tcsh', '--install-completion', 'completion tcsh', 'completion'])(
    '%s: 2, and nothing is written',
    async (args) => {
      for (const SHELL of ['/bin/tcsh', '/bin/sh', '']) {
        const { exitCode, stdout } = await run({ SHELL }, ...args.split(' '));
        expect([exitCode, stdout, readdirSync(home)]).toEqual([2, '', []]);
      }
    },
  );

  test.each(SHELLS)('completion %s prints what is installed', async (shell) => {
    expect((await run({}, 'completion', shell)).stdout).toBe(`${scriptOf(shell)}\n`);
    const { stdout } = await run({}, 'completion', shell, '--json');
    expect(JSON.parse(stdout)).toEqual({ shell, script: scriptOf(shell) });
  });
});
