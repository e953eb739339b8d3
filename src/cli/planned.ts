import type { CommandLine } from './completion/command-line.ts';

/** Commands of CLI.md, "Commands", that are not built yet. */
const COMMANDS = ['vlan', 'probe'];

/** Flags of CLI.md that are not built yet, by the name of their command. */
const FLAGS: Readonly<Record<string, readonly string[]>> = {
  reserve: ['--name'],
};

/**
 * The planned command or flag that a command line uses, which is not built yet (CLI.md, "Commands").
 *
 * @example a line that begins with `run` // 'run'
 */
export function plannedIn({
  command,
  operands,
  unknown,
}: Pick<CommandLine, 'command' | 'operands' | 'unknown'>): string | undefined {
  const [first = ''] = operands;
  if (!command.parent && COMMANDS.includes(first)) return first;
  const flag = unknown.find((name) => FLAGS[command.name()]?.includes(name));
  return flag && `${command.name()} ${flag}`;
}

/** All planned commands and flags, as they are typed. */
export const PLANNED: readonly string[] = [
  ...COMMANDS,
  ...Object.entries(FLAGS).flatMap(([command, flags]) => flags.map((flag) => `${command} ${flag}`)),
];
