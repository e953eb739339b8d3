import { Failure, type FailureCode, ownCommand, type Retyping, shellWord } from '../contract/failure.ts';
import { isProblemCode, PROBLEMS } from '../contract/problem-codes.ts';

/** The global flags that choose the services, the project and the experiment. */
export interface ServiceFlags {
  profile?: string;
  experiment?: string;
  project?: string;
  offline?: boolean;
  caFile?: string;
}

/** The command that helps after a failure that has no advice of its own. */
export function nextStep(code: FailureCode): string | undefined {
  const command = isProblemCode(code) ? PROBLEMS[code].command : undefined;
  return command === undefined ? undefined : `slices-conn ${command}`;
}

/** The failure that names all that was not typed. @param path of the command @param parts at least one, as in its usage */
export function missingFailure(path: string, parts: readonly string[]): Failure {
  const help = `${path} --help`;
  // Made here: it costs 12 ms, and hardly a command needs it.
  const listed = new Intl.ListFormat('en-GB', { type: 'conjunction' }).format(parts);
  return new Failure('usage', `${path} needs ${listed}.`, { fix: help });
}

/** Commands that use services. */
const USES_SERVICES = /^slices-conn (?!-|(?:help|profile|serve|token|completion)\b|.* --help$)/;
/** Commands that act in an experiment and a project. */
const ACTS_IN =
  /^slices-conn (?:reserve|run|list|show|update|delete|watch|plan|apply|vlan|probe|(?:experiment|project) (?:show|create|token)|experiment ci)\b/;
/** The command that chooses an experiment, of a project. */
const CHOOSES = /^slices-conn experiment use\b/;

/**
 * Adds to an advised command of this program the flags that choose the services, the project and the
 * experiment; without them it would use other services.
 *
 * @example withServices({ profile: 'lab' }, 'slices-conn list') // 'slices-conn --profile lab list'
 */
export function withServices(services: ServiceFlags, advice: string): string {
  const [unset = ''] = /^unset \w+ && /.exec(advice) ?? [];
  if (unset !== '') return unset + withServices(services, advice.slice(unset.length));
  if (!USES_SERVICES.test(advice)) return advice;
  const { offline, profile, caFile, project, experiment } = services;
  const where = ACTS_IN.test(advice) ? { project, experiment } : CHOOSES.test(advice) ? { project } : {};
  // `verify` alone takes both: then the reservation is one of the profile's service.
  const isOffline = (offline && profile === undefined) || undefined;
  const values = Object.entries({ offline: isOffline, profile, 'ca-file': caFile, ...where });
  const flags = values
    // A command that was typed with other flags has them already.
    .filter(([name, value]) => value !== undefined && !new RegExp(` --${name}(?![\\w-])`).test(advice))
    .map(([name, value]) => `--${name} ${value === true ? '' : `${shellWord(String(value))} `}`)
    .join('');
  return `slices-conn ${flags}${advice.slice('slices-conn '.length)}`;
}

/** Flags that a {@link Retyping} replaces, and that have no value. */
const WITHOUT_VALUE: readonly string[] = [
  ...['--start-now', '--earliest', '--apply', '--direct'],
  ...['--memory', '--behind-proxy', '--insecure-built-in-users'],
];

/**
 * The typed command with other flags: each stands where the flag stood that it replaces, else at the end.
 *
 * @param typed the arguments of the program, as given
 * @example retyped(['reserve', 'a', 'b', '--for=2h'], [{ flags: ['--for', '--end'], words: ['--for', '1h'] }])
 * // 'slices-conn reserve a b --for 1h'
 */
export function retyped(typed: readonly string[], changes: readonly Retyping[]): string {
  return ownCommand(...changes.reduce<readonly string[]>(replaced, typed));
}

function replaced(typed: readonly string[], { flags, words: by }: Retyping): string[] {
  const words = [...typed];
  const isOne = (word: string): boolean => flags.includes(word.split('=', 1)[0] ?? '');
  const end = () => (words.includes('--') ? words.indexOf('--') : words.length);
  let place: number | undefined;
  for (let at = words.findIndex(isOne); at !== -1 && at < end(); at = words.findIndex(isOne)) {
    const [word = ''] = words.splice(at, 1);
    place ??= at;
    if (!word.includes('=') && !WITHOUT_VALUE.includes(word)) words.splice(at, 1);
  }
  words.splice(place ?? end(), 0, ...by);
  return words;
}

/**
 * The next step as a whole command. Advice that begins with a flag is about the typed command: where the
 * command has that flag, its value is replaced; else the flag is added.
 *
 * @param typed the arguments of the program, as given
 * @param advice a command, or flags such as `--for 2h`
 * @example completed(['reserve', 'a', 'b', '--for', 'x'], {}, '--for 2h') // 'slices-conn reserve a b --for 2h'
 */
export function completed(typed: readonly string[], services: ServiceFlags, advice: string): string {
  if (!advice.startsWith('--')) return withServices(services, advice);
  const words = [...typed];
  const [flag = '', ...values] = advice.split(' ');
  const end = words.includes('--') ? words.indexOf('--') : words.length;
  const at = words.slice(0, end).findIndex((word) => word === flag || word.startsWith(`${flag}=`));
  const place = at === -1 ? end : at;
  const after = words.slice(place + 1, place + 1 + values.length);
  const other = after.findIndex((word) => word.startsWith('-'));
  const given = at === -1 ? 0 : words[at] === flag ? 1 + (other === -1 ? after.length : other) : 1;
  words.splice(place, given, flag, ...values);
  return ownCommand(...words);
}
