import { CI_SYSTEMS, type CiName } from '../../contract/ci-rules.ts';
import { hash } from './records.ts';

/** The claims that a rule asks of its jobs: exact values. Null where any value will do. */
export interface CiJobs {
  ci: CiName;
  /** The `iss` of their ID tokens. */
  issuer: string;
  repository: string;
  ref: string | null;
  refType: string | null;
  environment: string | null;
}

/** A rule: jobs that act for a person in an experiment without a secret. Times in milliseconds. */
export interface CiRule extends CiJobs {
  /** Names it to people, and in the `sid` of its tokens. */
  id: string;
  experiment: string;
  /** The id of the person. */
  person: string;
  /** The repository's id, of its first job; null before. */
  repositoryId: string | null;
  createdAt: number;
  expiresAt: number;
}

/** A row of the audit: a job got a token, or was refused one. */
export interface CiAuditEntry {
  /** Milliseconds. */
  at: number;
  accepted: boolean;
  /** The person whom the job acts for; of a refused one the issuer of its ID token. */
  by: string;
  /** The experiment's id; empty for a refused one. */
  experiment: string;
  /** The rule, or the reason. It holds no text that whoever asks can choose: each text has a row of its own. */
  why: string;
}

/** The most rules of one experiment. */
export const MAX_CI_RULES = 100;

/** Where the rules are. Each method is one atomic step, so that replicas on one database agree. */
export interface CiRules {
  /**
   * Adds a rule; one of the same id is made to last as long as this one, and keeps the repository's id.
   *
   * @returns the rule as it stands now; undefined where the experiment has as many as it may have
   */
  add(rule: CiRule, most: number): Promise<CiRule | undefined>;
  /** An experiment's rules that have not expired, the oldest first. */
  ofExperiment(experiment: string, now: number): Promise<CiRule[]>;
  /** The rules for a repository, also those that have expired: by its id, or where that is not known yet by its name. */
  ofRepository(issuer: string, repository: { id: string; name: string }): Promise<CiRule[]>;
  /** Notes the repository's id. @returns false for a rule that is gone, or has another id */
  hold(id: string, repositoryId: string): Promise<boolean>;
  /** @returns false where the experiment has no such rule */
  remove(experiment: string, id: string): Promise<boolean>;
  /** Whether a rule of this id has not expired. */
  isLive(id: string, now: number): Promise<boolean>;
  /** Adds to the audit. Of what is the same within one minute one row counts all, so that strangers can't fill the disk. */
  audit(entry: CiAuditEntry): Promise<void>;
}

/** The id of a rule: the same for the same jobs, experiment and person, so that who adds it again renews it. */
export function ruleId({
  experiment,
  person,
  ...jobs
}: CiJobs & Pick<CiRule, 'experiment' | 'person'>): string {
  const { issuer, repository, ref, refType, environment } = jobs;
  const named = JSON.stringify([experiment, person, issuer, repository, ref, refType, environment]);
  return Buffer.from(hash(named), 'base64url').toString('hex').slice(0, 16);
}

/**
 * The first claim in which a job differs from a rule, and in how many claims before it they are alike; undefined where it is
 * one of the rule's jobs.
 */
export function differenceTo(
  { ci, repository, ref, refType, environment }: CiJobs,
  claims: Readonly<Record<string, unknown>>,
) {
  const due = { [CI_SYSTEMS[ci].repository]: repository, ref, ref_type: refType, environment };
  let alike = 0;
  for (const [claim, rule] of Object.entries(due)) {
    const job = claims[claim];
    if (rule === null) continue;
    if (job !== rule) return { claim, rule, job: typeof job === 'string' ? job : undefined, alike };
    alike += 1;
  }
  return undefined;
}
