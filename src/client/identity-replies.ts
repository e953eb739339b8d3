import type { ServerMetadata } from 'openid-client';
import * as v from 'valibot';
import { issuerName, sameIssuer } from '../contract/addresses.ts';
import { Failure, ownCommand, shellWord } from '../contract/failure.ts';
import { isObject, readJson, withoutNulls } from '../contract/json.ts';
import type { Send } from '../contract/sending.ts';
import { replyTo } from './exchange.ts';
import { invalid, isAway, noLogin, otherIssuer, ProviderAway, REFUSED } from './identity-failure.ts';
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
export async function publishedMetadata(options: PublishedAt): Promise<ServerMetadata> {
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
      return metadata as ServerMetadata;
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
