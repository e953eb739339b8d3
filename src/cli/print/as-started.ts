import { shellWord } from '../../contract/failure.ts';
import { withoutTokens } from '../../contract/secret.ts';
import type { Variables } from '../../session/profiles/folders.ts';
import { type AdviceShell, partFor, quoted, shellOf, UNIX_PARTS, type UnixPart } from './shells.ts';

/** This program's name, with which advice is written. */
export const PROGRAM = 'slices-conn';

/** The global flags that choose the services, the project and the experiment. */
export interface ServiceFlags {
  profile?: string;
  experiment?: string;
  project?: string;
  offline?: boolean;
  caFile?: string;
}

/** How a person types this program, and in which shell. */
export interface Started {
  program: string;
  shell: AdviceShell;
  /** The flags that chose the services of this command: advised commands have them too. Default: none. */
  services?: ServiceFlags;
}

/** This program by its name in a shell of Unix: as advice is written. */
export const BY_NAME: Started = { program: PROGRAM, shell: 'posix' };

/**
 * How a person types this program: behind `npx` where that started it, since it is then on no PATH; a single executable that has
 * another file name as it was typed; else by its name. An `npx` that started another program, such as a test runner, does not
 * count.
 */
export function startedAs({
  variables,
  executable = PROGRAM,
}: {
  variables: Variables;
  executable?: string;
}): Started {
  const { npm_command, npm_lifecycle_script = PROGRAM } = variables;
  const shell = shellOf(variables);
  if (!/(?:^|[\\/])slices-conn(?:\.exe)?$/i.test(executable))
    return { program: typedPath(shell, executable), shell };
  const isNpx = npm_command === 'exec' && /^["']?slices-conn\b/.test(npm_lifecycle_script);
  return { program: isNpx ? `npx ${PROGRAM}` : PROGRAM, shell };
}

/** A program's path, as a shell starts it. */
function typedPath(shell: AdviceShell, path: string): string {
  if (shell === 'posix') return shellWord(path);
  const word = quoted(shell, path);
  // A quoted text alone is only printed.
  return shell === 'powershell' && word !== path ? `& ${word}` : word;
}

/** This program's name before a command or a flag; what a shell takes as it is, in which the name is someone's text; and what shells write otherwise. */
const PARTS = new RegExp(
  String.raw`${UNIX_PARTS}|\\.|(?<name>(?<![\w@./-]|\b(?:[Aa]n?(?:other)?|newer|npx|[Tt]he) )slices-conn (?=[-a-z]))`,
  'g',
);

/**
 * Advice as it is typed where the program was started. Every text with a command passes here before it is laid out.
 *
 * @param started see {@link startedAs}
 * @param text a command, or sentences with commands
 * @example asStarted({ program: 'npx slices-conn', shell: 'posix' }, 'To see it: slices-conn list')
 * // 'To see it: npx slices-conn list'
 */
export function asStarted({ program, shell, services = {} }: Started, text: string): string {
  const chosen = replaced(text, (found, { name }, rest) =>
    name === undefined ? found : found + servicesFor(services, rest),
  );
  return replaced(chosen, (found, part) => {
    if (part.name !== undefined) return `${program} `;
    return shell === 'posix' ? found : partFor(shell, found, part);
  });
}

/** @param by gets each of {@link PARTS} with its groups, and the text that follows it */
function replaced(
  text: string,
  by: (found: string, part: UnixPart & { name?: string }, rest: string) => string,
): string {
  return text.replace(PARTS, (found: string, ...more: unknown[]) =>
    by(found, more.at(-1) as UnixPart, text.slice(Number(more.at(-3)) + found.length)),
  );
}

/** Members of printed objects that hold advice. */
const ADVISING: readonly string[] = ['again', 'command', 'fix', 'why'];

/** Turns the texts of a printed object into what is printed: advice {@link asStarted}, and tokens masked. */
export function printedMember(
  started: Started,
  mask: (text: string) => string = withoutTokens,
): (name: string, value: unknown) => unknown {
  return (name, value) => {
    if (typeof value !== 'string') return value;
    return mask(ADVISING.includes(name) ? asStarted(started, value) : value);
  };
}

/** Nouns whose commands use no services. */
const WITHOUT_SERVICES = ['help', 'profile', 'serve', 'token', 'completion'];
/** Commands that act in an experiment and a project. */
const ACTING = [
  ...['reserve', 'run', 'list', 'show', 'update', 'delete', 'watch', 'plan', 'apply', 'vlan', 'probe'],
  ...['experiment show', 'experiment create', 'experiment token', 'experiment ci'],
  ...['project show', 'project create', 'project token'],
];

/**
 * The flags that choose the services, the project and the experiment, for an advised command of this program; without them it
 * would use other services. Each has a blank behind it.
 *
 * @param advice the command's words, and whatever follows them
 * @example servicesFor({ profile: 'lab' }, 'list') // '--profile lab '
 */
function servicesFor(services: ServiceFlags, advice: string): string {
  const words = advice.split(' ');
  const [noun = '', verb = ''] = words.map((word) => word.replace(/[.,;:)]+$/, ''));
  if (noun.startsWith('-') || words.at(-1) === '--help' || WITHOUT_SERVICES.includes(noun)) return '';
  const { offline, profile, caFile, project, experiment } = services;
  const isActing = ACTING.includes(noun) || ACTING.includes(`${noun} ${verb}`);
  // The command that chooses an experiment chooses one of a project.
  const isChoosing = noun === 'experiment' && verb === 'use';
  const values = {
    // `verify` alone takes both: then the reservation is one of the profile's service.
    offline: (offline && profile === undefined) || undefined,
    profile,
    'ca-file': caFile,
    ...(isActing || isChoosing ? { project } : {}),
    ...(isActing ? { experiment } : {}),
  };
  // A command that was typed with other flags has them already.
  const has = (flag: string): boolean => words.some((word) => word === flag || word.startsWith(`${flag}=`));
  return Object.entries(values)
    .filter(([name, value]) => value !== undefined && !has(`--${name}`))
    .map(([name, value]) => `--${name} ${value === true ? '' : `${shellWord(String(value))} `}`)
    .join('');
}
