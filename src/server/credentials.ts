import { issuerName, readAdministrator } from '../contract/addresses.ts';
import type { ExperimentClaims, ProjectClaims, UserClaims } from '../contract/claims.ts';
import { parseInstant } from '../contract/instants.ts';
import type { Problem } from '../contract/problems.ts';
import { type Action, may, type Scope, WHO_MAY } from '../contract/roles.ts';
import { EXPERIMENT_TOKEN_HEADER } from '../contract/routes.ts';
import { readCompact } from '../tokens/compact.ts';
import { TokenError } from '../tokens/token-error.ts';
import { readBearer, tokenProblem } from '../tokens/verifier.ts';
import { claimedKind, KIND_RULES, kindText, type TokenKind, type Trust, verifyAs } from '../tokens/verify.ts';
import { leadsText, MOST_LEADS, problem } from '../words/problems.ts';
import type { SessionCheck } from './identity/sessions.ts';
import type { OwnedKind, Ownership } from './ownership.ts';
import type { LeadsOf } from './portal/directory.ts';
import { refusal, refusalOf } from './problem-error.ts';

/** The trust of the services, for each kind of token that a request may carry. */
export interface ServiceTrust {
  user: Trust;
  project: Trust;
  experiment: Trust;
  /** Whether a user token must name its scope: our own all do, others may not know scopes (THREATS.md 50). */
  scopeRequired: boolean;
  /** Whether the login that a token names (`sid`) is live; absent with external issuers (THREATS.md 57). */
  isLive?: SessionCheck;
  /** Who leads a project or an experiment; absent where this server does not know their members. */
  leadsOf?: LeadsOf;
  /** Checks which issuer may act for a project or an experiment; absent where only this server makes their ids. */
  ownership?: Ownership;
}

/** The experiment that a request acts in, as its token says. */
export interface CallerExperiment {
  id: string;
  /** Its name, else its id. */
  name: string;
  /** Whose share its reservations count in: the project that its token names (`proj`), else its id. */
  tenant: string;
  /** The caller's role in it: `act.role`. */
  role: string;
  /** When it expires: `exp_exp`, in milliseconds. */
  expiry: number;
  /** The project whose token came with the request, and when it expires; of several, the first to expire. */
  project?: { name: string; expiry: number };
}

/** The sender of a request, as its tokens say. */
export interface Caller {
  /** `user_<host>_<opaque_id>`. */
  user: string;
  /** The user's name, for people who read the log; the id where no user token names the user. */
  name: string;
  /** The user token's issuer; absent without a user token, or with user tokens of different issuers. */
  userIssuer?: string;
  experiment?: CallerExperiment;
  /** Whether the user token opens one experiment only: a CI job's. */
  isLimited: boolean;
  /** When the first of the tokens expires, in milliseconds. */
  expiry: number;
}

/** The bearer token of a request. @throws ProblemError 403 that says what is wrong (contract/README.md, "Errors" 4) */
export function bearer(request: Request): string {
  const credential = readBearer(request.headers.get('authorization'));
  if (!credential.ok) throw refusal(credential.code, credential.msg);
  return credential.token;
}

/**
 * The user whose token a request carries in `Authorization`; never a token that is limited to one experiment.
 *
 * @param needs see {@link authenticateAnyUser}
 * @throws ProblemError 403
 */
export async function authenticateUser(
  request: Request,
  trust: ServiceTrust,
  ...needs: readonly Scope[]
): Promise<UserClaims> {
  const claims = await authenticateAnyUser(request, trust);
  // First of all: another login of that kind would have no more scopes.
  if (claims.limited_to !== undefined) {
    throw refusal(
      'scope_missing',
      `Your token is for experiment ${claims.limited_to} alone, and this is not in it.`,
    );
  }
  for (const scope of needs) requireScope(claims, trust, scope);
  return claims;
}

/**
 * The user whose token a request carries in `Authorization`, also one that is limited to an experiment (`limited_to`), which
 * is for the caller to hold. A token in `Slices-Experiment-Token` is not needed, but where it is given it must verify.
 *
 * @param needs the scopes that it must have: those of the route
 * @throws ProblemError 403
 */
export async function authenticateAnyUser(
  request: Request,
  trust: ServiceTrust,
  ...needs: readonly Scope[]
): Promise<UserClaims> {
  const { kind, claims } = await verifiedToken(bearer(request), trust);
  if (kind !== 'user') {
    throw refusal('token_invalid', `This is ${kindText(kind)}; this request needs a user token.`);
  }
  for (const scope of needs) requireScope(claims, trust, scope);
  const header = request.headers.get(EXPERIMENT_TOKEN_HEADER);
  if (header) await verifiedToken(header, trust);
  return claims;
}

/** A token of a caller, told apart by its kind. */
type CallerToken =
  | { kind: 'user'; claims: UserClaims }
  | { kind: 'project'; claims: ProjectClaims }
  | { kind: 'experiment'; claims: ExperimentClaims };

/** Verifies a token as what it claims to be. @throws ProblemError 403, for a token of a login that was ended too */
async function verifiedToken(token: string, trust: ServiceTrust): Promise<CallerToken> {
  let kind: TokenKind | undefined;
  let found: CallerToken | undefined;
  try {
    const read = trust.user.verified?.find(token) ?? readCompact(token);
    kind = claimedKind(read.claims);
    if (kind === 'user') found = { kind, claims: await verifyAs(KIND_RULES.user, token, trust.user, read) };
    if (kind === 'project')
      found = { kind, claims: await verifyAs(KIND_RULES.project, token, trust.project, read) };
    if (kind === 'experiment')
      found = { kind, claims: await verifyAs(KIND_RULES.experiment, token, trust.experiment, read) };
  } catch (error) {
    throw error instanceof TokenError ? refusalOf([rejected(error, kind)]) : error;
  }
  if (!found) {
    throw refusal('token_invalid', 'A token in the request is neither a user, project nor experiment token.');
  }
  const sid = found.claims['sid'];
  if (trust.isLive && typeof sid === 'string' && !(await trust.isLive(sid))) {
    throw refusal('token_invalid', 'The login that the token belongs to was ended. Log in again.');
  }
  return found;
}

/**
 * Who sends a request to the connectivity service, by every token it carries: in `Authorization`, in
 * `Slices-Experiment-Token`, in the body's `tokens`. Tokens are told apart by issuer and subject, never by place, and
 * each must verify (contract/README.md, "Experiment token's header"). Those in the headers are verified before the body is read
 * (THREATS.md 47).
 *
 * A request must carry a user token (contract/README.md, "Authentication" 1). One without a body (GET, DELETE) may carry the
 * experiment token in `Authorization` in its place, as with the sister services; then the experiment token's `act` names
 * the user. A project token never stands in for a user token.
 *
 * @param readTokens reads the body's `tokens`; undefined for a request without a body
 * @throws ProblemError 403; 400 for experiment tokens that differ; what reading throws
 */
export async function authenticateCaller(
  request: Request,
  trust: ServiceTrust,
  readTokens?: () => Promise<readonly string[]>,
): Promise<Caller> {
  const presented = new Map<string, CallerToken>();
  const experiments: CallerExperiment[] = [];
  const projects: { name: string; expiry: number }[] = [];
  const take = async (token: string): Promise<void> => {
    if (presented.has(token)) return;
    const found = await verifiedToken(token, trust);
    presented.set(token, found);
    if (found.kind === 'user') requireScope(found.claims, trust, 'projects');
    else if (found.kind === 'project') projects.push(projectOf(found.claims));
    else experiments.push(experimentOf(found.claims));
  };
  await take(bearer(request));
  const header = request.headers.get(EXPERIMENT_TOKEN_HEADER);
  if (header) await take(header);
  for (const token of (await readTokens?.()) ?? []) await take(token);
  const tokens = [...presented.values()];
  const logins = tokens.flatMap(({ kind, claims }) => (kind === 'user' ? claims : []));
  const owned = tokens.filter((token) => token.kind !== 'user');
  const acting = owned.flatMap(({ kind, claims: { sub, act, iss } }) =>
    kind === 'experiment' ? `${sub} ${act.sub} ${act.role} ${issuerName(iss)}` : [],
  );
  if (new Set(acting).size > 1) {
    throw refusal('experiment_tokens_differ', 'The request carries two different experiment tokens.');
  }
  const users = tokens.map(({ kind, claims }) => (kind === 'user' ? claims.sub : claims.act.sub));
  const [user] = users;
  if (user === undefined || (logins.length === 0 && (readTokens || tokens[0]?.kind !== 'experiment'))) {
    throw refusal(
      'token_missing',
      'The request carries no user token: send it in Authorization, or in the tokens of a body.',
    );
  }
  if (users.some((other) => other !== user)) {
    throw refusal('token_invalid', 'The tokens in the request belong to different users.');
  }
  const experiment = experiments.at(-1);
  const limits = tokens.flatMap(({ kind, claims }) => (kind === 'project' ? [] : (claims.limited_to ?? [])));
  const beyond = limits.find((id) => experiment && id !== experiment.id);
  if (beyond !== undefined)
    throw refusal('wrong_experiment', `Your token is for experiment ${beyond} alone.`);
  for (const { kind, claims } of owned) await trust.ownership?.(kind, claims.sub, claims.iss);
  const [userIssuer, ...otherIssuers] = new Set(logins.map(({ iss }) => issuerName(iss)));
  const [project] = projects.toSorted((one, other) => one.expiry - other.expiry);
  return {
    user,
    name: logins.flatMap(({ preferred_username }) => preferred_username ?? [])[0] ?? user,
    isLimited: limits.length > 0,
    expiry: Math.min(...tokens.map(({ claims }) => claims.exp * 1000)),
    ...(userIssuer !== undefined && otherIssuers.length === 0 ? { userIssuer } : {}),
    ...(experiment ? { experiment: { ...experiment, project } } : {}),
  };
}

/** @throws ProblemError 403 for a login that was not granted a scope, also one from before the scope was there */
export function requireScope(
  { scope: granted }: UserClaims,
  { scopeRequired }: ServiceTrust,
  needed: Scope,
): void {
  if (granted === undefined && !scopeRequired) return;
  if (granted?.split(' ').includes(needed)) return;
  throw refusal('scope_missing', `Your login does not have the scope ${needed}. Log in again.`);
}

function experimentOf({ sub, name, exp_exp, proj, act }: ExperimentClaims): CallerExperiment {
  const expiry = instantOf(exp_exp, 'experiment', 'exp_exp');
  return { id: sub, name: name ?? sub, tenant: proj ?? sub, role: act.role, expiry };
}

function projectOf({ sub, name, proj_exp }: ProjectClaims): { name: string; expiry: number } {
  return { name: name ?? sub, expiry: instantOf(proj_exp, 'project', 'proj_exp') };
}

function instantOf(text: string, kind: OwnedKind, claim: string): number {
  const instant = parseInstant(text, 'utc-if-absent');
  if (instant === undefined) throw refusal('token_invalid', `The ${kind} token's ${claim} is not a time.`);
  return instant;
}

/** The caller's experiment, when its role allows the action. @throws ProblemError 403; see {@link requireRole} */
export async function authorise(
  caller: Caller,
  action: Action,
  trust: Pick<ServiceTrust, 'leadsOf'>,
): Promise<CallerExperiment> {
  const { experiment } = caller;
  if (!experiment) {
    throw refusal(
      'token_missing',
      `The request carries no experiment token: send it in ${EXPERIMENT_TOKEN_HEADER}, or in the tokens of a body.`,
    );
  }
  const { id, name, role } = experiment;
  // What a CI job prints may be read by everyone.
  const leadsOf = caller.isLimited ? undefined : trust.leadsOf;
  await requireRole({ person: caller.user, role, kind: 'experiment', id, name }, action, leadsOf);
  return experiment;
}

/** A person's role in a project or an experiment. */
export interface HeldRole {
  /** The person's id. */
  person: string;
  /** As a token or a record has it. */
  role: string;
  kind: OwnedKind;
  id: string;
  /** Of the project or experiment. */
  name: string;
}

/**
 * Checks a role against {@link WHO_MAY}.
 *
 * @param leadsOf the users to ask for help; undefined where a message names none
 * @throws ProblemError 403 that names the roles that would do, and the leads (THREATS.md 171)
 */
export async function requireRole(
  { person, role, kind, id, name }: HeldRole,
  action: Action,
  leadsOf: LeadsOf | undefined,
): Promise<void> {
  if (may(role, action)) return;
  const needed = `Your role in ${kind} ${name} is ${role}; this needs ${WHO_MAY[action].join(', ').replace(/, (?=[^,]*$)/, ' or ')}.`;
  const leads = leadsText((await leadsOf?.(id, person, MOST_LEADS + 1)) ?? []);
  throw refusal('role_not_allowed', leads === '' ? needed : `${needed} ${leads}`);
}

/** The reply to a token's rejection, which says which of several tokens it was. @param token its kind, where it could be read */
function rejected(error: TokenError, token: TokenKind | undefined): Problem {
  const { code: fault, message: reason, expiresAt } = error;
  const code = tokenProblem(error);
  if (token === undefined || code === 'unavailable') return { code, msg: reason };
  if (expiresAt !== undefined) return problem('token_expired', { token, expires_at: expiresAt });
  const isOfOtherKeys = fault === 'key_unknown' || fault === 'signature';
  return problem('token_invalid', { token, reason }, isOfOtherKeys ? 'Log in again.' : undefined);
}

/** Whether a caller acts as one of a server's administrators. */
export type IsAdministrator = (caller: Caller) => boolean;

/**
 * The check whether a caller is one of the administrators that the operator named. Its user token must be of that user
 * and that issuer. A caller with an experiment token, or a token that is limited to one, is not: it acts in that experiment,
 * by its role there.
 *
 * @param named see {@link readAdministrator}
 * @param issuer the issuer of users who are named without one; undefined where several are trusted
 * @throws RangeError for a text in neither form, or without an issuer where several are trusted
 */
export function administratorsNamed(named: readonly string[], issuer: string | undefined): IsAdministrator {
  const known = new Set(
    named.map((text) => {
      const read = readAdministrator(text);
      if (!read)
        throw new RangeError(
          `${JSON.stringify(text)} is not an administrator: give user_<host>_<opaque_id>, or that with @ISSUER_URL`,
        );
      const from = read.issuer ?? issuer;
      if (from === undefined) throw new RangeError(`${text} may be a user of several issuers`);
      return keyOf(read.user, from);
    }),
  );
  return ({ user, userIssuer, experiment, isLimited }) =>
    !isLimited && experiment === undefined && userIssuer !== undefined && known.has(keyOf(user, userIssuer));
}

/** The key of a user and its issuer: the space between can't be part of an id. */
function keyOf(user: string, issuer: string): string {
  return `${user} ${issuerName(issuer)}`;
}
