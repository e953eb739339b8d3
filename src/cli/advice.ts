import { type FailureCode, shellWord } from '../contract/failure.ts';
import type { ServiceFlags } from './global-options.ts';

/** The next step after a failure that has no advice of its own. */
export const NEXT_STEP: Partial<Record<FailureCode, string>> = {
  date_invalid: 'slices-conn help times',
  date_past: 'slices-conn help times',
  period_empty: 'slices-conn help times',
  reservation_ended: 'slices-conn list',
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
