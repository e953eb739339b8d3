import type { Argument, Command, Option } from 'commander';

/** Values that a file or a service knows; the names are those of the questions in `CompletionSource`. */
export type LiveKind = 'sites' | 'profiles' | 'experiments' | 'projects' | 'reservations';

/** What the value of a flag or an argument is, where choices alone don't say it. */
export type Kind = LiveKind | 'files' | 'topics';

/**
 * What completes each value, by the name that help gives it: a flag's own name, or else the word between its brackets;
 * an argument's name, after that of its group where the group decides. What is missing here is typed freely: a time, a
 * bandwidth, the name of something new.
 *
 * @example `--save <file>` is found as `file`, the argument of `experiment show [id]` as `experiment id`
 */
export const KIND_OF = {
  '--profile': 'profiles',
  '--experiment': 'experiments',
  '--project': 'projects',
  'profile name': 'profiles',
  'experiment id': 'experiments',
  'project id': 'projects',
  id: 'reservations',
  site1: 'sites',
  site2: 'sites',
  site: 'sites',
  file: 'files',
  'file|url': 'files',
  dir: 'files',
  topic: 'topics',
} as const satisfies Readonly<Record<string, Kind>>;

/** Flags that mean more each time they are given. Variadic ones do by themselves. */
const REPEATABLE: ReadonlySet<string | undefined> = new Set(['--claim', '--trust']);

/** What the value of a flag is; undefined for free text. */
export function kindOfOption(option: Option): Kind | undefined {
  return kindNamed(option.long ?? '') ?? kindNamed(valueName(option));
}

/** What an argument of a command is; undefined for free text. */
export function kindOfArgument(command: Command, argument: Argument): Kind | undefined {
  const name = argument.name();
  return kindNamed(`${command.parent?.name()} ${name}`) ?? kindNamed(name);
}

/** Whether a flag can be given again. */
export function isRepeatable({ variadic, long }: Option): boolean {
  return variadic || REPEATABLE.has(long);
}

/** The word between the brackets of a flag that takes a value; empty for others. */
export function valueName({ flags }: Option): string {
  return /[<[]([^<[\]>]+?)(?:\.\.\.)?[[>\]]/.exec(flags)?.[1] ?? '';
}

function kindNamed(name: string): Kind | undefined {
  const kinds: Readonly<Record<string, Kind>> = KIND_OF;
  return Object.hasOwn(kinds, name) ? kinds[name] : undefined;
}
