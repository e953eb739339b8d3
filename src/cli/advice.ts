import { Failure, type FailureCode, shellWord } from '../contract/failure.ts';
import { isProblemCode, PROBLEMS } from '../contract/problems.ts';

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
  // Made here: it costs 12 ms, and hardly a command needs it.
  const listed = new Intl.ListFormat('en-GB', { type: 'conjunction' }).format(parts);
  return new Failure('usage', `${path} needs ${listed}.`);
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
export function servicesFor(services: ServiceFlags, advice: string): string {
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
