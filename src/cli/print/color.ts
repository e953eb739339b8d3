import type { Environment } from '../../session/profiles/folders.ts';

/** The values of `--color`. */
export const COLOR_CHOICES = ['auto', 'always', 'never'] as const;
/** One of {@link COLOR_CHOICES}. */
export type ColorChoice = (typeof COLOR_CHOICES)[number];

/**
 * Whether to colour a stream: the flag, else `NO_COLOR`, else `FORCE_COLOR` and `CLICOLOR_FORCE`, else a terminal
 * that is not dumb (CLI.md, "Environment"). Asked for each stream by itself.
 */
export function wantsColor(choice: ColorChoice, env: Environment, isTerminal: boolean): boolean {
  if (choice !== 'auto') return choice === 'always';
  if (env['NO_COLOR']) return false;
  const { FORCE_COLOR: force, CLICOLOR_FORCE: cliForce, TERM: term } = env;
  if (force !== undefined) return force !== '0' && force !== 'false';
  if (cliForce !== undefined && cliForce !== '0') return true;
  return isTerminal && term !== 'dumb';
}
