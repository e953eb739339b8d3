import { bashScript } from './scripts/bash.ts';
import { fishScript } from './scripts/fish.ts';
import { zshScript } from './scripts/zsh.ts';
import type { Shell } from './shells.ts';

const SCRIPTS: Readonly<Record<Shell, string>> = { bash: bashScript, zsh: zshScript, fish: fishScript };

/** The script that teaches a shell to complete words of this program, without a newline at its end. */
export function scriptOf(shell: Shell): string {
  return SCRIPTS[shell].trim();
}
