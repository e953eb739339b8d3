import type { Invocation } from '../invocation.ts';
import { escapeText } from '../print/terminal-text.ts';
import { installCompletion, usualShell } from './install.ts';
import { SHELLS, type Shell, scriptOf } from './scripts.ts';

/** The flag as typed. */
export interface InstallFlags {
  /** True without a shell. */
  installCompletion: Shell | true;
}

/** Prints a shell's script. */
export async function printScript({ output }: Invocation, [name]: readonly string[]): Promise<void> {
  const shell = SHELLS.find((known) => known === name);
  if (!shell) throw new TypeError(`commander let ${name} pass`);
  const script = scriptOf(shell);
  output.text({ shell, script }, script);
}

/** Sets completion up in the person's home folder, and says what was written and what to do next. */
export async function install(
  { output, shellHome }: Invocation,
  _args: readonly string[],
  { installCompletion: named }: InstallFlags,
): Promise<void> {
  const shell = named === true ? usualShell(shellHome.env) : named;
  const files = await installCompletion(shell, shellHome);
  const lines = files.map(({ path, change }) => `${DONE[change]} ${escapeText(path)}`);
  const next = 'Open a new shell, then type: slices-conn <Tab>';
  output.text({ shell, files: files.map(({ path }) => path) }, [...lines, next].join('\n'));
}

const DONE = { written: 'Wrote', extended: 'Wrote a block in', none: 'Unchanged:' } as const;
