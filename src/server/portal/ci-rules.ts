import type { Hono } from 'hono';
import {
  CI_RULE_LIFETIME,
  type CiIssuers,
  type CiRule as CiRuleBody,
  CiRuleRequest,
} from '../../contract/ci-rules.ts';
import type { UserClaims } from '../../contract/claims.ts';
import { formatInstant } from '../../contract/instants.ts';
import type { RouteName } from '../../contract/routes.ts';
import { problem } from '../../words/problems.ts';
import { authenticateUser, requireRole, type ServiceTrust } from '../credentials.ts';
import { type CiRule, type CiRules, MAX_CI_RULES, ruleId } from '../identity/ci-rules.ts';
import { jsonReply } from '../json-reply.ts';
import { readBy, refusal, refusalOf } from '../problem-error.ts';
import { addressOf, readObject } from '../request-reading.ts';
import type { RouteMounter } from '../routing.ts';
import { type Directory, type ExperimentRecord, requireMembership } from './directory.ts';

/** Options of the rules' handlers. */
export interface CiRulesOptions {
  directory: Directory;
  rules: CiRules;
  /** Whose ID tokens are taken. */
  ciIssuers: CiIssuers;
  /** Told of a rule that was removed: its tokens end in this process at once. */
  ruleRemoved: (id: string) => void;
  trust: ServiceTrust;
  mount: RouteMounter;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/** Mounts the rules by which jobs of a CI act in an experiment without a secret, for its leads. */
export function mountCiRules(app: Hono, options: CiRulesOptions): void {
  const { directory, rules, trust, now, ruleRemoved } = options;
  const on = (name: RouteName, handle: (asked: Asked, rule: string) => Promise<Response>): void =>
    options.mount(app, name, async (request, id = '', rule = '') => {
      const user = await authenticateUser(request, trust, 'projects', 'sessions');
      const experiment = await directory.experiment(id);
      if (!experiment) throw refusal('not_found', `There is no experiment ${id}.`);
      const role = await requireMembership(directory, user, id, 'wrong_experiment');
      const held = { person: user.sub, role, kind: 'experiment', id, name: experiment.name } as const;
      await requireRole(held, 'ci-rules', trust.leadsOf);
      return handle({ request, user, experiment }, rule);
    });
  const shown = async (rule: CiRule): Promise<CiRuleBody> => {
    const { id, ci, issuer, repository, repositoryId, ref, refType, environment, person } = rule;
    return {
      id,
      ci,
      issuer,
      repository,
      repository_id: repositoryId,
      ref,
      ref_type: refType,
      environment,
      user: person,
      user_name: (await directory.person(person))?.name ?? person,
      created_at: formatInstant(rule.createdAt),
      expires_at: formatInstant(rule.expiresAt),
    };
  };

  on('listCiRules', async ({ experiment }) => {
    const items = await rules.ofExperiment(experiment.id, now());
    return jsonReply({ items: await Promise.all(items.map(shown)), nextCursor: null });
  });

  on('addCiRule', async (asked) => {
    const rule = await rules.add(await readRule(asked, options), MAX_CI_RULES);
    if (!rule) {
      throw refusal(
        'ci_rule_invalid',
        `Experiment ${asked.experiment.name} has ${MAX_CI_RULES} rules for CI jobs. Remove one first.`,
      );
    }
    const location = `${addressOf(asked.request).pathname.replace(/\/$/, '')}/${rule.id}`;
    return jsonReply(await shown(rule), { status: 201, headers: { location } });
  });

  on('removeCiRule', async ({ experiment }, id) => {
    if (!(await rules.remove(experiment.id, id))) {
      throw refusal('not_found', `Experiment ${experiment.name} has no rule ${id} for CI jobs.`);
    }
    ruleRemoved(id);
    return new Response(null, { status: 204 });
  });
}

interface Asked {
  request: Request;
  user: UserClaims;
  experiment: ExperimentRecord;
}

/** The rule that is asked for: for the caller, and as long as the experiment lasts, 90 days at most. */
async function readRule(
  { request, user, experiment }: Asked,
  { ciIssuers, now }: CiRulesOptions,
): Promise<CiRule> {
  const members = ['', ...Object.keys(CiRuleRequest.pipe[0].entries)];
  const codes = Object.fromEntries(members.map((name) => [name, 'ci_rule_invalid' as const]));
  const body = readBy(CiRuleRequest, await readObject(request), { ...codes, expires_at: 'date_invalid' });
  const { ci, repository, ref = null, ref_type: refType = null, environment = null } = body;
  const issuer = ciIssuers[ci];
  if (issuer === undefined) {
    throw refusal(
      'not_supported',
      `This server takes no ID tokens of ${ci}: it was started without --ci-issuer ${ci}.`,
    );
  }
  const createdAt = now();
  const longest = createdAt + CI_RULE_LIFETIME;
  const { expires_at: expiresAt = Math.min(longest, experiment.expiresAt) } = body;
  if (expiresAt <= createdAt) {
    throw refusalOf([problem('date_past', { member: 'expires_at', at: expiresAt })]);
  }
  if (expiresAt > longest) throw refusal('ci_rule_invalid', 'A rule for CI jobs lasts 90 days at most.');
  const rule = {
    experiment: experiment.id,
    person: user.sub,
    ci,
    issuer,
    repository,
    ref,
    refType,
    environment,
  };
  return { ...rule, id: ruleId(rule), repositoryId: null, createdAt, expiresAt };
}
