import { createHash } from 'node:crypto';
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { IdentityClient } from '../../client/identity.ts';
import { bodyOf, readUpTo } from '../../contract/bounded-reading.ts';
import { DAY } from '../../contract/durations.ts';
import { Failure } from '../../contract/failure.ts';
import { isObject, readJson } from '../../contract/json.ts';
import { sentence } from '../../contract/said.ts';
import { isTokenText, Secret } from '../../contract/secret.ts';
import type { Send } from '../../contract/sending.ts';
import type { Variables } from '../profiles/folders.ts';
import type { Profile, UnderLock } from '../profiles/profiles.ts';
import { Credentials } from './credentials.ts';
import { isAlmostOver, storedFrom } from './login-tokens.ts';
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

/** Asks GitHub's runner for an ID token (docs.github.com, "OpenID Connect reference"). */
async function askRunner(address: string, secret: string, audience: string, send: Send): Promise<Secret> {
  const url = new URL(address);
  url.searchParams.set('audience', audience);
  const headers = { authorization: `Bearer ${secret}`, accept: 'application/json' };
  const reply = await send({ method: 'GET', url: url.href, headers });
  const { bytes, whole } = await readUpTo(bodyOf(reply), MAX_REPLY);
  const reading = whole && reply.status === 200 ? readJson(bytes) : undefined;
  const value = reading?.ok && isObject(reading.value) ? reading.value['value'] : undefined;
  if (typeof value === 'string' && isTokenText(value)) return new Secret(value);
  throw new Failure('token_missing', `GitHub's runner gave no ID token.`, {
    why: `${url.origin} answered ${reply.status}. Does the job have permissions: id-token: write?`,
    httpStatus: reply.status,
  });
}

/** The largest reply of a runner that is read, in bytes. */
const MAX_REPLY = 65_536;

/** What {@link jobToken} needs. */
export interface JobTokenOptions {
  profile: Profile;
  identity: () => Promise<IdentityClient>;
  /** Where the token of a job with this name is kept. */
  credentialsOf: (name: string) => Credentials;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
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
      const known = kept.known();
      if (known && !isAlmostOver(known, now())) return known.accessToken;
      const next = await kept.change(async (current) => {
        if (current && !isAlmostOver(current, now())) return current;
        if (current && !job.asksAnew) {
          if ((current.expiresAt ?? 0) > now()) return current;
          throw new Failure('token_expired', 'The token of this CI job has expired, as its ID token has.', {
            why: 'It lasts as long as the timeout of the job.',
          });
        }
        const tokens = await (await identity())
          .exchange(job.idToken, { resource, experiment })
          .catch((error: unknown) => {
            throw notLetIn(error, job, profile);
          });
        return tokens && storedFrom(tokens, now());
      });
      return next?.accessToken ?? otherwise.get();
    },
  };
}

/** Tells a job's token from those of others; of one experiment from another's, where a job can have several. */
async function nameOf({ secret, asksAnew }: Job, experiment = ''): Promise<string> {
  const told = [(await secret()).reveal(), ...(asksAnew ? [experiment] : [])];
  return createHash('sha256').update(told.join(' ')).digest('hex').slice(0, 32);
}

function notLetIn(error: unknown, { asksAnew }: Job, { authUrl }: Profile): unknown {
  if (!(error instanceof Failure) || error.code !== 'not_logged_in') return error;
  const { why = '', httpStatus } = error.facts;
  const once = asksAnew ? '' : ' An ID token is taken once; the state folder has what it was exchanged for.';
  return new Failure('not_logged_in', `${authUrl} does not let this CI job in.`, {
    why: sentence`${why}${once} A lead of the experiment says which jobs may act: slices-conn experiment ci add.`,
    httpStatus,
    fix: 'slices-conn experiment ci list',
  });
}

/**
 * Where the token of a job is kept: apart from logins, and from other jobs, of which several may run on one machine. What
 * jobs of before left is removed: no token of theirs lasts longer than a day.
 */
export function jobCredentials(
  folder: string,
  name: string,
  { profile, underLock, now }: { profile: Profile; underLock: UnderLock; now: () => number },
): Credentials {
  const clientId = `${profile.ciClientId} ${name}`;
  const credentials = new Credentials(folder, { ...profile, clientId }, underLock);
  const beside = dirname(credentials.path);
  for (const other of existsSync(beside) ? readdirSync(beside) : []) {
    const path = join(beside, other);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found && now() - found.mtimeMs > 2 * DAY) rmSync(path, { force: true });
  }
  return credentials;
}
