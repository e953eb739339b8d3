import { basename, dirname, isAbsolute, join, relative } from 'node:path';
import { Failure, shellWord } from '../../contract/failure.ts';
import type { Variables } from '../../session/profiles/folders.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context, Environment, Files } from '../context.ts';
import { escapeText } from '../print/output.ts';
import { type CompletionShell, SHELLS, scriptOf } from './scripts.ts';

/** `slices-conn completion bash|zsh|fish`. */
export const command: CommandDeclaration = {
  about:
    'Prints the script by which a shell completes commands, flags, sites, profiles, experiments, projects and reservations.\n--install-completion sets it up permanently.',
  args: { '<shell>': { help: 'your shell', choices: SHELLS } },
  examples: [
    '# permanently, for the shell that $SHELL names',
    'slices-conn --install-completion',
    'slices-conn --install-completion fish',
    '# for this shell only',
    'eval "$(slices-conn completion bash)"',
    'eval "$(slices-conn completion zsh)"',
    'slices-conn completion fish | source',
  ],
};

/** Prints a shell's script. */
export async function run({ output }: Context, [name]: readonly string[]): Promise<void> {
  const shell = name as CompletionShell;
  const script = scriptOf(shell);
  output.text({ shell, script }, script);
}

/** Installs completion in the person's home folder, and prints the files and the next step. */
export async function install(
  { output, env, files }: Context,
  _args: readonly string[],
  { installCompletion: named }: { installCompletion: CompletionShell | true },
): Promise<void> {
  const shell = named === true ? usualShell(env.variables) : named;
  const installed = await installCompletion(shell, env, files).catch((error: unknown) => {
    throw error instanceof Failure ? error.with({ fix: 'slices-conn completion --help' }) : error;
  });
  const lines = installed.map(({ path, done }) => `${done} ${escapeText(path)}`);
  const next = 'Open a new shell, then type: slices-conn <Tab>';
  output.text({ shell, files: installed.map(({ path }) => path) }, [...lines, next].join('\n'));
}

/**
 * Installs completion for the user: the script, and for bash and zsh a marked block in the file that such a
 * shell reads when it starts. Files that are up to date are not written.
 *
 * @returns the files, and what was done to each, for people
 * @throws Failure `file_unusable`
 */
export async function installCompletion(
  shell: CompletionShell,
  person: Pick<Environment, 'home' | 'variables'>,
  files: Pick<Files, 'readStartup' | 'writeStartup'>,
): Promise<{ path: string; done: string }[]> {
  const put = async (path: string, done: string, changed: (content: Uint8Array) => Uint8Array) => {
    const before = await files.readStartup(path);
    const after = changed(before ?? Buffer.of());
    if (before !== undefined && Buffer.compare(before, after) === 0) return { path, done: 'Unchanged:' };
    await files.writeStartup(path, after);
    return { path, done };
  };
  const { script, startup, lines } = placesOf(person)[shell];
  const installed = [await put(script, 'Wrote', () => Buffer.from(`${scriptOf(shell)}\n`))];
  if (startup !== undefined) {
    const inHome = (path: string) => shellPath(path, person.home);
    const sourced = lines(inHome(script), inHome(dirname(script)));
    const block = `${BEGIN}\n# Written by: slices-conn --install-completion\n${sourced}\n${END}\n`;
    installed.push(await put(startup, 'Wrote a block in', (content) => withBlock(content, block)));
  }
  return installed;
}

/**
 * The shell that a person uses, by `SHELL`.
 *
 * @throws Failure `usage` for a shell that is not in {@link SHELLS}
 */
function usualShell({ SHELL = '' }: Variables): CompletionShell {
  const found = SHELLS.find((shell) => shell === basename(SHELL));
  if (found) return found;
  throw new Failure('usage', 'The shell is not known.', {
    why: `SHELL is ${SHELL === '' ? 'not set' : JSON.stringify(SHELL)}; the shells are: ${SHELLS.join(', ')}.`,
    fix: 'slices-conn --install-completion bash',
  });
}

/** Where each shell finds its script: by the lines in the file that it reads when it starts; fish finds it by itself. */
interface Places {
  script: string;
  startup?: string;
  lines: (script: string, folder: string) => string;
}

function placesOf({
  home,
  variables,
}: Pick<Environment, 'home' | 'variables'>): Record<CompletionShell, Places> {
  // A relative path in one of these counts as unset, as the XDG specification asks.
  const folder = (name: string, otherwise: string) =>
    (isAbsolute(variables[name] ?? '') ? variables[name] : otherwise) ?? '';
  const data = folder('XDG_DATA_HOME', join(home, '.local', 'share'));
  const completions = folder('BASH_COMPLETION_USER_DIR', join(data, 'bash-completion'));
  const config = folder('XDG_CONFIG_HOME', join(home, '.config'));
  return {
    bash: {
      script: join(completions, 'completions', 'slices-conn'),
      startup: join(home, '.bashrc'),
      lines: (file) => `if [ -r ${file} ]; then\n  . ${file}\nfi`,
    },
    zsh: {
      script: join(data, 'slices-conn', 'zsh', '_slices-conn'),
      startup: join(folder('ZDOTDIR', home), '.zshrc'),
      // The folder is on fpath too, since a later compinit drops earlier definitions.
      lines: (file, on) => `if [[ -r ${file} ]]; then\n  fpath=(${on} $fpath)\n  source ${file}\nfi`,
    },
    fish: { script: join(config, 'fish', 'completions', 'slices-conn.fish'), lines: () => '' },
  };
}

/** A path as a word for a shell: with $HOME where it can, since people share such files between machines. */
function shellPath(path: string, home: string): string {
  const below = relative(home, path);
  return below.startsWith('..') || isAbsolute(below) ? shellWord(path) : `"$HOME"/${shellWord(below)}`;
}

const [BEGIN, END] = ['# >>> slices-conn completion >>>', '# <<< slices-conn completion <<<'];

/**
 * A file with the block in it: in place of an older one, else at the end. Everything else stays as it is,
 * byte by byte, whatever its encoding.
 */
export function withBlock(content: Uint8Array, block: string): Uint8Array {
  const [text, own] = [Buffer.from(content).toString('latin1'), Buffer.from(block).toString('latin1')];
  const older = new RegExp(`^${BEGIN}\n(?:(?!${BEGIN}$|${END}$).*\n)*${END}(?:\n|$(?![^]))`, 'm');
  const gap = text === '' ? '' : text.endsWith('\n') ? '\n' : '\n\n';
  const changed = older.test(text) ? text.replace(older, () => own) : text + gap + own;
  return Buffer.from(changed, 'latin1');
}
