import type { UserClaims } from '../contract/claims.ts';
import { parseInstant } from '../contract/instants.ts';
import { type Action, may, WHO_MAY } from '../contract/roles.ts';
import { EXPERIMENT_TOKEN_HEADER } from '../contract/routes.ts';
import { readCompact } from '../tokens/compact.ts';
import { TokenError } from '../tokens/token-error.ts';
import { readBearer, tokenProblem } from '../tokens/verifier.ts';
import {
  claimedKind,
  type Trust,
  verifyExperimentToken,
  verifyProjectToken,
  verifyUserToken,
} from '../tokens/verify.ts';
import { refusal } from './problem-error.ts';

/** Whom the services believe: the identity provider for user tokens, the portal for the other two. */
export interface ServiceTrust {
  identity: Trust;
  portal: Trust;
}

/** The experiment that a request acts in, as its token says. */
export interface CallerExperiment {
  id: string;
  /** The caller's role in it: `act.role`. */
  role: string;
  /** When it expires: `exp_exp`, in milliseconds. */
  expiry: number;
}

/** Who sends a request. */
export interface Caller {
  /** `user_<host>_<opaque_id>`. */
  user: string;
  experiment?: CallerExperiment;
}

/** The bearer token of a request. @throws ProblemError 403 that says what is wrong (SPEC.md, "Errors" 4) */
export function bearer(request: Request): string {
  const credential = readBearer(request.headers.get('authorization'));
  if (!credential.ok) throw refusal(credential.code, credential.msg);
  return credential.token;
}

/** The user whose token a request carries in `Authorization`. @throws ProblemError 403 */
export async function authenticateUser(request: Request, trust: ServiceTrust): Promise<UserClaims> {
  const token = bearer(request);
  return verified(() => verifyUserToken(token, trust.identity));
}

/**
 * Who sends a request to the connectivity service, by every token it carries: in `Authorization`, in
 * `Slices-Experiment-Token`, in the body's `tokens`. Tokens are told apart by issuer and subject, never by place, and
 * each must verify (DESIGN.md, "Experiment token's header").
 *
 * A request with a body must carry a user token. One without (GET, DELETE) can't where the experiment token takes the
 * place in `Authorization`, as with the sister services; there the experiment token's `act` names the user.
 *
 * @param tokens the body's `tokens`; undefined for a request without a body
 * @throws ProblemError 403; 400 for experiment tokens that differ
 */
export async function authenticateCaller(
  request: Request,
  trust: ServiceTrust,
  tokens: readonly string[] | undefined,
): Promise<Caller> {
  const header = request.headers.get(EXPERIMENT_TOKEN_HEADER);
  const presented = new Set([bearer(request), ...(header ? [header] : []), ...(tokens ?? [])]);
  const users = new Set<string>();
  const experiments = new Map<string, CallerExperiment & { actor: string }>();
  for (const token of presented) {
    const kind = await verified(async () => claimedKind(readCompact(token).claims));
    if (kind === 'user') {
      users.add((await verified(() => verifyUserToken(token, trust.identity))).sub);
    } else if (kind === 'experiment') {
      const { sub, exp_exp, act } = await verified(() => verifyExperimentToken(token, trust.portal));
      const expiry = parseInstant(exp_exp, 'utc-if-absent');
      if (expiry === undefined) throw refusal('token_invalid', "The experiment token's exp_exp is no time.");
      experiments.set(`${sub} ${act.sub} ${act.role}`, { id: sub, role: act.role, expiry, actor: act.sub });
    } else if (kind === 'project') {
      await verified(() => verifyProjectToken(token, trust.portal));
    } else {
      throw refusal(
        'token_invalid',
        'A token in the request is neither a user, project nor experiment token.',
      );
    }
  }
  const [experiment, another] = experiments.values();
  if (another) {
    throw refusal('experiment_tokens_differ', 'The request carries two different experiment tokens.');
  }
  if (tokens === undefined && experiment && users.size === 0) users.add(experiment.actor);
  const [user, otherUser] = users;
  if (user === undefined) throw refusal('token_missing', 'The request carries no user token.');
  if (otherUser !== undefined || (experiment && experiment.actor !== user)) {
    throw refusal('token_invalid', 'The tokens in the request belong to different users.');
  }
  if (!experiment) return { user };
  return { user, experiment: { id: experiment.id, role: experiment.role, expiry: experiment.expiry } };
}

/** The caller's experiment, when its role allows the action. @throws ProblemError 403 */
export function authorise(caller: Caller, action: Action): CallerExperiment {
  const { experiment } = caller;
  if (!experiment) {
    throw refusal(
      'token_missing',
      `The request carries no experiment token, in ${EXPERIMENT_TOKEN_HEADER} or in tokens.`,
    );
  }
  requireRole(experiment.role, action, `experiment ${experiment.id}`);
  return experiment;
}

/** Checks a role against {@link WHO_MAY}. @throws ProblemError 403 that names the roles that would do */
export function requireRole(role: string, action: Action, scope: string): void {
  if (may(role, action)) return;
  throw refusal(
    'role_not_allowed',
    `Your role in ${scope} is ${role}; this needs ${WHO_MAY[action].join(' or ')}.`,
  );
}

async function verified<Claims>(verify: () => Promise<Claims>): Promise<Claims> {
  try {
    return await verify();
  } catch (error) {
    if (error instanceof TokenError) throw refusal(tokenProblem(error), error.message);
    throw error;
  }
}
