import * as oauth from 'openid-client';
import * as v from 'valibot';
import { isServiceAddress, issuerName, sameIssuer } from '../contract/addresses.ts';
import { Failure, ownCommand, shellWord } from '../contract/failure.ts';
import { isObject, readJson, withoutNulls } from '../contract/json.ts';
import type { Send } from '../contract/sending.ts';
import { replyTo } from './exchange.ts';
import type { Reply } from './reply-failure.ts';

/** Where a provider publishes its metadata, and what it may call itself. */
interface PublishedAt {
  send: Send;
  authUrl: string;
  issuer?: string;
  /** The profile that these values are from. */
  name: string;
}

const text = v.string();
const texts = v.optional(v.array(text));
const lifetime = v.optional(v.pipe(v.number(), v.minValue(0)));

/** The members of each reply that are used here; others may be anything. */
const METADATA = v.looseObject({
  issuer: text,
  token_endpoint: v.optional(text),
  device_authorization_endpoint: v.optional(text),
  revocation_endpoint: v.optional(text),
  scopes_supported: texts,
  grant_types_supported: texts,
  code_challenge_methods_supported: texts,
});
const DEVICE = v.object({
  device_code: text,
  user_code: text,
  verification_uri: text,
  verification_uri_complete: v.optional(text),
  expires_in: v.number(),
  interval: lifetime,
});
const TOKENS = v.object({
  access_token: text,
  token_type: v.pipe(text, v.toLowerCase(), v.literal('bearer')),
  expires_in: lifetime,
  refresh_token: v.optional(text),
  refresh_token_expires_in: v.optional(v.unknown()),
  refresh_expires_in: v.optional(v.unknown()),
});

/** Reads a reply by its schema. @throws Failure `reply_invalid` that names the member at fault and its value */
function readAs<Schema extends v.GenericSchema>(schema: Schema, members: object): v.InferOutput<Schema> {
  const result = v.safeParse(schema, members);
  if (result.success) return result.output;
  const [issue] = result.issues;
  const { received, expected, input } = issue;
  const name = v.getDotPath(issue) ?? '';
  if (received === 'undefined') throw invalid(`It has no ${name}.`);
  // A code or a token is not shown, even where it is part of something else.
  const value = /_(?:code|token)$/.test(name) ? received : JSON.stringify(input).slice(0, 100);
  throw invalid(`Its ${name} is ${value}; it must be ${expected}.`);
}

/** The members of a JSON object, but for those that are null or empty; undefined for any other text. */
function membersIn(body: string): Record<string, unknown> | undefined {
  const reading = readJson(body);
  if (!reading.ok || !isObject(reading.value)) return undefined;
  return Object.fromEntries(Object.entries(withoutNulls(reading.value)).filter(([, value]) => value !== ''));
}

/**
 * Turns what providers write into what the library accepts (THREATS.md 9). An error is one whatever its status below 500 and its media type; what is
 * null or empty is absent; numbers may be texts, an `interval` of 0 is 1, and `verification_url` is an old name. Members that are not used do
 * no harm, such as an ID token.
 *
 * @throws Failure `reply_invalid` that names the member at fault, `unavailable` for 408, 429 and 5xx
 */
export function lenientReply(reply: Reply, form: URLSearchParams, authUrl: string): Response {
  const { status } = reply;
  const given = membersIn(reply.text);
  const { error, error_description, ...members } = given ?? {};
  if (isAway(reply)) throw new ProviderAway(authUrl, reply, error_description);
  if (typeof error === 'string') {
    return Response.json({ error, error_description }, { status: status < 400 ? 400 : status });
  }
  if (status < 200 || status > 299) {
    const why = `Its status is ${status}.`;
    // A challenge (RFC 6750 §3), not an OAuth error.
    if (status !== 401) throw invalid(why);
    throw new Failure('request_rejected', REFUSED, { why, httpStatus: status });
  }
  // A revocation answers nothing (RFC 7009 §2.2).
  if (form.has('token')) return new Response();
  if (!given) throw invalid(kindOf(reply.text));
  for (const name of ['interval', 'expires_in']) {
    const { [name]: value } = members;
    if (typeof value === 'string' && /^\d{1,15}$/.test(value)) members[name] = Number(value);
  }
  members['interval'] = members['interval'] === 0 ? 1 : members['interval'];
  members['verification_uri'] ??= members['verification_url'];
  return Response.json(readAs(form.has('grant_type') ? TOKENS : DEVICE, members));
}

/**
 * The metadata that a provider publishes: by OpenID Connect Discovery, else by RFC 8414, which a provider of OAuth alone has.
 *
 * @throws Failure `reply_invalid` for other metadata than is due (RFC 8414 §3.3, THREATS.md 4), `unavailable`, and what `send` throws
 */
export async function publishedMetadata(options: PublishedAt): Promise<oauth.ServerMetadata> {
  const { send, authUrl, issuer = authUrl, name } = options;
  const base = issuerName(authUrl);
  const { origin, pathname } = new URL(base);
  let failure: Failure | undefined;
  for (const address of [
    `${base}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${pathname === '/' ? '' : pathname}`,
  ]) {
    const request = { method: 'GET', url: address, headers: { accept: 'application/json' } };
    const { reply } = await replyTo(send, request);
    const members = membersIn(reply.text);
    if (reply.status === 200 && members?.['issuer'] !== undefined) {
      const metadata = readAs(METADATA, members);
      if (!sameIssuer(metadata.issuer, issuer)) {
        throw otherIssuer(metadata.issuer, issuer, `slices-conn profile set ${shellWord(name)} `);
      }
      checkEndpoints(metadata, options);
      return metadata as oauth.ServerMetadata;
    }
    const why = reply.status === 200 ? kindOf(reply.text) : `Its status is ${reply.status}.`;
    failure = isAway(reply)
      ? new ProviderAway(authUrl, reply, members?.['error_description'])
      : (failure ??
        invalid(`${address} has no metadata. ${why} Is the address right?`).with({
          fix: ownCommand('profile', 'show', name),
        }));
  }
  throw failure;
}

/** What stands in the place of a JSON object. */
function kindOf(body: string): string {
  return /^\s*<(?:!doctype|html|head|body)\b/i.test(body)
    ? 'It is an HTML page.'
    : 'It is not the JSON object that is due.';
}

/**
 * Refuses endpoints at another origin, which would receive codes and tokens (THREATS.md 4). The key set may be anywhere:
 * a login does not use it.
 */
function checkEndpoints(
  metadata: v.InferOutput<typeof METADATA>,
  { authUrl, issuer = authUrl }: PublishedAt,
): void {
  const origins = new Set([authUrl, issuer].map((address) => new URL(address).origin));
  for (const name of ['device_authorization_endpoint', 'token_endpoint', 'revocation_endpoint'] as const) {
    const address = metadata[name];
    if (address === undefined) {
      if (name !== 'token_endpoint') continue;
      throw noLogin(authUrl, 'token_endpoint (RFC 6749)');
    }
    const url = URL.parse(address);
    if (url && url.username + url.password !== '')
      throw invalid(`Its ${name} has a user or a password in it.`);
    if (url && origins.has(url.origin)) continue;
    throw invalid(
      `Its ${name} is ${JSON.stringify(address)}, which is not at ${[...origins].join(' or ')}: codes and tokens are sent nowhere else.`,
    );
  }
}

/** The failure for an error of the library: of a request, of a reply, or of the provider. @throws a mistake in a program as it is */
export function failureOf(error: unknown): Failure {
  if (error instanceof oauth.ResponseBodyError) return refused(error);
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof Failure) return cause;
  if (!(error instanceof oauth.ClientError)) throw error;
  return invalid(String(error));
}

/** A provider that can't answer now: 408, 429 and 5xx. */
export class ProviderAway extends Failure {
  /** The pause that it asks for, in seconds; 0 where it does not. */
  readonly pause: number;

  /** @param said why, in its own words */
  constructor(authUrl: string, { status, headers }: Reply, said: unknown) {
    super('unavailable', `The identity provider ${authUrl} is not available at the moment.`, {
      httpStatus: status,
      retryable: true,
      why: typeof said === 'string' && said !== '' ? said : undefined,
    });
    const asked = headers.get('retry-after') ?? '';
    this.pause = /^\d{1,3}$/.test(asked) ? Number(asked) : 0;
  }
}

/** Whether the provider can't answer now: 408, 429 or 5xx. */
function isAway({ status }: Reply): boolean {
  return status >= 500 || status === 429 || status === 408;
}

/** The message for a request that the provider refuses. */
const REFUSED = 'The identity provider refused the request.';

/** What providers call it when a person denies the login, and when the code is over: RFC 8628 §3.5, Azure, OpenAM, GitHub. */
const DENIED = ['access_denied', 'authorization_declined'];
const OVER = ['expired_token', 'code_expired', 'bad_verification_code', 'incorrect_device_code'];

/** A refusal of the provider (RFC 6749 §5.2, RFC 8628 §3.5), as a failure. */
export function refused({ error, error_description, status }: oauth.ResponseBodyError): Failure {
  const why = error_description === undefined ? error : `${error}: ${error_description}`;
  if (DENIED.includes(error)) {
    return new Failure('login_denied', 'The login was denied.', {
      httpStatus: status,
      fix: 'slices-conn login',
    });
  }
  if (OVER.includes(error)) return codeExpired();
  if (error === 'invalid_grant') {
    return new Failure('not_logged_in', 'The session is over.', {
      why,
      httpStatus: status,
      fix: 'slices-conn login',
    });
  }
  const isForbidden = error === 'unauthorized_client' || error === 'unsupported_grant_type';
  return new Failure('request_rejected', REFUSED, {
    why: isForbidden ? `${why}. This client may not log in by a device code there. ${OTHER_WAYS}` : why,
    httpStatus: status,
    ...(isForbidden ? { fix: HELP_ON_TOKENS } : {}),
  });
}

/** How to get along without a device login. */
const OTHER_WAYS =
  'Without it, give a user token in SLICES_CONN_USER_TOKEN, or set userTokenCommand in the profile to a command that prints one.';
/** Says how a token is given in the environment. */
const HELP_ON_TOKENS = 'slices-conn help environment';

/** The failure of a login at a provider that offers no device login. @param missing what its metadata lacks */
export function noLogin(authUrl: string, missing: string): Failure {
  return new Failure('not_supported', `The identity provider ${authUrl} offers no device login.`, {
    why: `Its metadata has no ${missing}. ${OTHER_WAYS}`,
    // As for other metadata that is not what it should be.
    exitCode: 9,
    fix: HELP_ON_TOKENS,
  });
}

/**
 * The failure of metadata that names another issuer than the profile. The user may accept it, in the profile only.
 *
 * @param command begins the next step: the command up to the value to set
 */
function otherIssuer(found: string, due: string, command: string): Failure {
  const failure = invalid(
    `It calls itself ${JSON.stringify(found)}; the profile expects ${JSON.stringify(due)}.`,
  );
  if (!isServiceAddress(found)) return failure;
  return failure.with({ fix: command + shellWord(`issuer=${found}`) });
}

/** The failure of a code that expired before a person entered it. */
export function codeExpired(): Failure {
  return new Failure('code_expired', 'The code is not valid any more.', {
    why: 'It expired before it was entered, or it was used already.',
    fix: 'slices-conn login',
  });
}

/** The failure of an answer that can't be used. */
export function invalid(why: string): Failure {
  return new Failure('reply_invalid', "The identity provider's answer is not valid.", {
    why,
  });
}
