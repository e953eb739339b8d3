import { type FailureCode, ownCommand, shellWord } from '../contract/failure.ts';
import type { ServiceFlags } from './global-options.ts';

/** The next step after a failure that has no advice of its own. */
export const NEXT_STEP: Partial<Record<FailureCode, string>> = {
  date_invalid: 'slices-conn help times',
  date_past: 'slices-conn help times',
  period_empty: 'slices-conn help times',
  reservation_ended: 'slices-conn list',
  bandwidth_unavailable: 'slices-conn sites',
  vlans_unavailable: 'slices-conn list',
  experiment_ends_first: 'slices-conn experiment show',
  experiment_expired: 'slices-conn experiment list',
  project_ends_first: 'slices-conn project show',
  name_taken: 'slices-conn experiment list',
};

/** Commands that use services. */
const USES_SERVICES = /^slices-conn (?!-|(?:help|profile|serve|token|completion)\b|.* --help$)/;
/** Commands that act in an experiment and a project. */
const ACTS_IN =
  /^slices-conn (?:reserve|list|show|update|delete|(?:experiment|project) (?:show|create|token))\b/;

/**
 * Adds to an advised command of this program the flags that choose the services, the project and the experiment;
 * without them it would use other services.
 *
 * @example withServices({ profile: 'lab' }, 'slices-conn list') // 'slices-conn --profile lab list'
 */
export function withServices(services: ServiceFlags, advice: string): string {
  if (!USES_SERVICES.test(advice)) return advice;
  const { offline, profile, caFile, project, experiment } = services;
  const where = ACTS_IN.test(advice) ? { project, experiment } : {};
  const values = Object.entries({ profile, 'ca-file': caFile, ...where });
  const words = values.flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]));
  const flags = [...(offline ? ['--offline'] : []), ...words].map((word) => `${shellWord(word)} `).join('');
  return `slices-conn ${flags}${advice.slice('slices-conn '.length)}`;
}

/**
 * The next step as a whole command. Advice that begins with a flag is about the typed command: where the command has that
 * flag, its value is replaced; else the flag is added.
 *
 * @param typed the arguments of the program, as given
 * @param advice a command, or flags such as `--for 2h`
 * @example completed(['reserve', 'a', 'b', '--for', 'x'], {}, '--for 2h') // 'slices-conn reserve a b --for 2h'
 */
export function completed(typed: readonly string[], services: ServiceFlags, advice: string): string {
  if (!advice.startsWith('--')) return withServices(services, advice);
  const words = [...typed];
  const [flag = '', ...values] = advice.split(' ');
  const at = words.findIndex((word) => word === flag || word.startsWith(`${flag}=`));
  const end = words.indexOf('--');
  const place = at === -1 ? (end === -1 ? words.length : end) : at;
  const after = words.slice(place + 1, place + 1 + values.length);
  const other = after.findIndex((word) => word.startsWith('-'));
  const given = at === -1 ? 0 : words[at] === flag ? 1 + (other === -1 ? after.length : other) : 1;
  words.splice(place, given, flag, ...values);
  return ownCommand(...words);
}
