import { createHash } from 'node:crypto';
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import { exchange, readAs } from '../../client/exchange.ts';
import { isLoopback, issuerName } from '../../contract/addresses.ts';
import {
  CI_CLIENT_ID,
  CI_NAMES,
  CI_SYSTEMS,
  type CiName,
  type CiSystem,
  NOT_ACCEPTED,
} from '../../contract/ci-rules.ts';
import { DAY } from '../../contract/durations.ts';
import { Failure, type FailureFacts, ownCommand } from '../../contract/failure.ts';
import { isTokenText, Secret } from '../../contract/secret.ts';
import type { Send } from '../../contract/sending.ts';
import { claimedClaims } from '../../tokens/claimed.ts';
import type { Variables } from '../profiles/folders.ts';
import { ADDRESSES } from '../profiles/profile.ts';
import { PROFILE_KEYS } from '../profiles/profile-keys.ts';
import type { Profile, UnderLock } from '../profiles/profiles.ts';
import { Credentials } from './credentials.ts';
import { type ProviderOptions, storedFrom } from './login-tokens.ts';
import { givenToken, ID_TOKEN_REQUEST, type TokenSource } from './token-source.ts';

/** How a job of a CI proves which job it is: by ID tokens of its CI. */
export interface Job {
  /** The variable that says so, for people. */
  variable: string;
  /** Told apart from other jobs on this machine by it. */
  secret: () => Promise<Secret>;
  /** Whether each ID token is another one: each is taken once only. */
  asksAnew: boolean;
  idToken: (audience: string) => Promise<Secret>;
}

/**
 * The job that this program runs in, by its environment; undefined where that gives no ID tokens.
 *
 * @param send sends to that address alone
 */
export function jobIn(env: Variables, send: (address: string) => Send): Job | undefined {
  const given = givenToken(env, 'SLICES_CONN_ID_TOKEN');
  if (given) {
    const { variable = given.where } = given;
    return { variable, secret: given.get, asksAnew: false, idToken: given.get };
  }
  const [address, secret] = ID_TOKEN_REQUEST.map((name) => env[name]);
  if (!address || !URL.canParse(address) || !secret || !isTokenText(secret)) return undefined;
  return {
    variable: ID_TOKEN_REQUEST[0],
    secret: async () => new Secret(secret),
    asksAnew: true,
    idToken: (audience) => askRunner(address, secret, audience, send(address)),
  };
}

/**
 * The words after `experiment ci add` that let in the job of an ID token, by its claims; undefined where they do not say, and for
 * jobs that no rule lets in.
 */
function ruleFor(idToken: Secret): string[] | undefined {
  const claims = claimedClaims(idToken.reveal());
  const ci = CI_NAMES.find((name) => typeof claims[CI_SYSTEMS[name].repository] === 'string');
  if (ci === undefined) return undefined;
  const system: CiSystem = CI_SYSTEMS[ci];
  const { ref, ref_type: type, [system.repository]: repository, [system.event]: event } = claims;
  if (typeof ref !== 'string' || !system.events.includes(String(event))) return undefined;
  // No branch or tag, but a pull request, has such a name.
  if (ci === 'github' && !/^refs\/(?:heads|tags)\//.test(ref)) return undefined;
  const ofTag = ci === 'gitlab' && type === 'tag' ? ['--ref-type', 'tag'] : [];
  return [`--${ci}`, String(repository), '--ref', ref, ...ofTag];
}

/** The CI whose job this is, as it says itself; undefined elsewhere. */
function ciOf(env: Variables): CiName | undefined {
  if (env['GITHUB_ACTIONS'] === 'true') return 'github';
  return env['GITLAB_CI'] === 'true' ? 'gitlab' : undefined;
}

/** The setting that a job without ID tokens needs, in the words of its CI. */
const NEEDED: Readonly<Record<CiName, (audience: string) => string>> = {
  github: () =>
    'This job of GitHub may not ask for ID tokens. Its workflow needs permissions: { id-token: write, contents: read }, which GitHub never gives to a pull request of a fork.',
  gitlab: (audience) =>
    `This job of GitLab has no ID token. It needs id_tokens: { SLICES_CONN_ID_TOKEN: { aud: ${audience} } }.`,
};

/** The variables that name the services, since a job has no profile. */
const SERVICES = ADDRESSES.map((key) => PROFILE_KEYS[key].variables[0]);

/**
 * Why nothing answers a job at an address of this machine: it has not been told where the services are. Undefined elsewhere, and for
 * a job that has been.
 */
export function unsetInJob(env: Variables, url: URL): FailureFacts | undefined {
  const unset = SERVICES.filter((name) => !env[name]);
  if (!ciOf(env) || !isLoopback(url) || unset.length === 0) return undefined;
  return {
    why: `This job has no ${unset.join(', ')}: slices-conn experiment ci add prints their values.`,
    fix: 'slices-conn help environment',
  };
}

/** The token of a login, where a job has none of its own: says what the job needs. */
export function loginInJob(env: Variables, login: TokenSource, { authUrl, issuer }: Profile): TokenSource {
  const ci = ciOf(env);
  if (!ci || authUrl === undefined) return login;
  return explained(login, NEEDED[ci](issuerName(issuer ?? authUrl)));
}

/** The same source. Where no user is logged in, its failure says why the job is not. */
function explained(login: TokenSource, why: string): TokenSource {
  return {
    ...login,
    get: () =>
      login.get().catch((error: unknown) => {
        if (!(error instanceof Failure) || error.code !== 'not_logged_in') throw error;
        throw error.with({ why, fix: 'slices-conn help environment' });
      }),
  };
}

/** Asks GitHub's runner for an ID token (docs.github.com, "OpenID Connect reference"). */
async function askRunner(address: string, secret: string, audience: string, send: Send): Promise<Secret> {
  const url = new URL(address);
  url.searchParams.set('audience', audience);
  const headers = { authorization: `Bearer ${secret}`, accept: 'application/json' };
  try {
    const reply = await exchange(send, { method: 'GET', url: url.href, headers });
    return new Secret(readAs(RunnerReply, reply, 'answer').value);
  } catch (error) {
    const { httpStatus } = error instanceof Failure ? error.facts : {};
    if (httpStatus === undefined) throw error;
    const says = "GitHub's runner gave no ID token.";
    const answered = `${url.origin} answered ${httpStatus}`;
    if (httpStatus === 429 || httpStatus >= 500) {
      throw new Failure('unavailable', says, { why: `${answered}.`, httpStatus, retryable: true });
    }
    if (httpStatus < 400) {
      throw new Failure('reply_invalid', says, { why: `${answered}, without a token.`, httpStatus });
    }
    throw new Failure('token_missing', says, {
      why: `${answered}. The workflow needs permissions: { id-token: write, contents: read }.`,
      fix: 'slices-conn help environment',
      httpStatus,
    });
  }
}

const RunnerReply = v.object({ value: v.pipe(v.string(), v.check(isTokenText)) });

/** The needs of {@link jobToken}. */
interface JobTokenOptions extends ProviderOptions<'exchange'> {
  /** Where the token of a job with this name is kept. */
  credentialsOf: (name: string) => Credentials;
}

/**
 * The user token of a CI job: its ID token is exchanged for it when one is needed, and another one when that is almost
 * over. Kept for the job's further commands, since a CI may give it one ID token only.
 *
 * @param otherwise gives the token where the identity provider takes no ID tokens
 */
export function jobToken(job: Job, otherwise: TokenSource, options: JobTokenOptions): TokenSource {
  const { profile, identity, credentialsOf, now } = options;
  const { baseUrl: resource, experiment } = profile;
  let kept: Credentials | undefined;
  return {
    origin: 'environment',
    where: job.variable,
    variable: job.variable,
    isFixed: !job.asksAnew,
    async get() {
      kept ??= credentialsOf(await nameOf(job, experiment));
      const next = await kept.renewed(now, async (current) => {
        if (current && !job.asksAnew) {
          if ((current.expiresAt ?? 0) > now()) return current;
          throw new Failure('token_expired', 'The token of this CI job has expired, as its ID token has.', {
            why: 'It lasts as long as the timeout of the job.',
          });
        }
        let idToken: Secret | undefined;
        const tokens = await (await identity())
          .exchange(
            async (audience) => {
              idToken = forAudience(await job.idToken(audience), audience, job);
              return idToken;
            },
            { resource, experiment },
          )
          .catch((error: unknown) => {
            throw notLetIn(error, { asksAnew: job.asksAnew, rule: idToken && ruleFor(idToken) }, profile);
          });
        return tokens && storedFrom(tokens, now());
      });
      if (next) return next.accessToken;
      const why = `${profile.authUrl} takes no ID tokens of CI jobs: its operator turns that on. Without it a job needs the token of slices-conn login --ci.`;
      return explained(otherwise, why).get();
    },
  };
}

/** An ID token, where it is for its audience: another service's is not sent. @throws Failure `token_invalid` */
function forAudience(token: Secret, audience: string, { variable }: Job): Secret {
  const { aud } = claimedClaims(token.reveal());
  if (aud === undefined || [aud].flat().includes(audience)) return token;
  throw new Failure('token_invalid', `The ID token in ${variable} is for another service.`, {
    why: `Its aud is ${JSON.stringify(aud)}, and must be ${audience}. Nothing was sent.`,
    fix: 'slices-conn help environment',
  });
}

/** Tells a job's token from those of others; of one experiment from another's, where a job can have several. */
async function nameOf({ secret, asksAnew }: Job, experiment = ''): Promise<string> {
  const told = [(await secret()).reveal(), ...(asksAnew ? [experiment] : [])];
  return createHash('sha256').update(told.join(' ')).digest('hex').slice(0, 32);
}

/** Why a job gets no token. @param rule lets it in; see {@link ruleFor} */
function notLetIn(
  error: unknown,
  { asksAnew, rule }: Pick<Job, 'asksAnew'> & { rule: readonly string[] | undefined },
  { authUrl }: Profile,
): unknown {
  if (!(error instanceof Failure) || error.code !== 'not_logged_in') return error;
  const { why = '', httpStatus } = error.facts;
  const reason = String(why).replace(/^invalid_grant: /, '');
  // The provider tells nothing of an ID token that was used before, nor to a repository without a rule.
  const once = asksAnew || reason !== NOT_ACCEPTED ? '' : ` ${USED_BEFORE}`;
  const lead = `A lead of the experiment ${rule ? 'lets it in by this command.' : 'says which jobs may act.'}`;
  return new Failure('not_logged_in', `${authUrl} does not let this CI job in.`, {
    why: `${reason}${once} ${lead}`,
    httpStatus,
    fix: rule && ownCommand('experiment', 'ci', 'add', ...rule),
  });
}

const USED_BEFORE =
  'Where it was used before, in this job or elsewhere: it is taken once, and the state folder has what it was exchanged for.';

/**
 * Where the token of a job, or of a program, is kept: apart from logins, and from others, of which there may be several on one
 * machine. What was left before is removed: no token of theirs lasts longer than a day.
 */
export function shortCredentials(
  folder: string,
  name: string,
  { profile, underLock, now }: { profile: Profile; underLock: UnderLock; now: () => number },
): Credentials {
  const clientId = `${CI_CLIENT_ID} ${name}`;
  const credentials = new Credentials(folder, { ...profile, clientId }, underLock);
  const beside = dirname(credentials.path);
  for (const other of existsSync(beside) ? readdirSync(beside) : []) {
    const path = join(beside, other);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found && now() - found.mtimeMs > 2 * DAY) rmSync(path, { force: true });
  }
  return credentials;
}
