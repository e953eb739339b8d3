import type { CommandLine } from './completion/command-line.ts';

/** Commands of CLI.md, "Commands", that are not built yet. */
export const PLANNED: readonly string[] = ['probe'];

/**
 * The planned command that a command line uses, which is not built yet (CLI.md, "Commands").
 *
 * @example a line that begins with `probe` // 'probe'
 */
export function plannedIn({
  command,
  operands,
}: Pick<CommandLine, 'command' | 'operands'>): string | undefined {
  const [first = ''] = operands;
  return !command.parent && PLANNED.includes(first) ? first : undefined;
}
