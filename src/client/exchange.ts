import * as v from 'valibot';
import { bodyOf, readUpTo, TimeLimitError, withinTime } from '../contract/bounded.ts';
import { asFailure, Failure } from '../contract/failure.ts';
import { isMistake, refusedValue } from '../contract/foreign-errors.ts';
import { readJson } from '../contract/json.ts';
import { JWT_TYPE, ROUTES, type RouteName, routePath } from '../contract/routes.ts';
import { inOneText } from '../contract/said.ts';
import { Secret, withoutSecrets, withoutTokens } from '../contract/secret.ts';
import type { Outgoing, Send, Transport } from '../contract/sending.ts';
import { isRefusal, type Reply, replyFailure, saysNothingWasDone } from './reply-failure.ts';

/** The most that is read of a reply, in bytes: 1 MiB (THREATS.md 10). */
export const MAX_REPLY = 1_048_576;

/** How long clients wait for a reply unless told otherwise, in milliseconds (THREATS.md 53). A `send` has a limit of its own. */
export function limitOf({ send }: Transport): number {
  return send ? Number.POSITIVE_INFINITY : 60_000;
}

/** The parameters of a query; those without a value are left out. */
export type Query = Readonly<Record<string, string | undefined>>;

/** The parts of a request beside its method and path, which follow from the route. */
export interface RequestParts {
  /** The values of the path's placeholders. */
  values?: Readonly<Record<string, string>>;
  query?: Query;
  /** Tokens, and what else this request needs. `Accept` is set by `accept`, `Content-Type` by `body`. */
  headers: Readonly<Record<string, string>>;
  /** The media type to ask for. */
  accept: string;
  /** Sent as JSON. */
  body?: object;
}

/** A request to a route of the service at `address`. */
export function requestTo(address: string, name: RouteName, parts: RequestParts): Outgoing {
  const { values = {}, query = {}, headers, accept, body } = parts;
  // With %20 for a space, which every service reads alike; URLSearchParams writes +.
  const said = Object.entries(query).flatMap(([parameter, value]) =>
    value === undefined ? [] : [`${parameter}=${encodeURIComponent(value)}`],
  );
  const url = address + routePath(name, values) + (said.length > 0 ? `?${said.join('&')}` : '');
  const all = { ...headers, accept, ...(body ? { 'content-type': 'application/json' } : {}) };
  return {
    method: ROUTES[name].method,
    url: new URL(url).href,
    headers: Object.fromEntries(Object.entries(all).map(([key, value]) => [key.toLowerCase(), value])),
    ...(body ? { body: JSON.stringify(body) } : {}),
  };
}

/**
 * Sends a request and reads the whole reply.
 *
 * @param secrets tokens that were sent; they are masked in the reply, since a service may repeat them
 * @param timeout how long the reply may take to its end, in milliseconds. Default: what `send` has as its limit
 * @throws Failure for every reply that is not 2xx; `reply_invalid` for a redirect or a reply over {@link MAX_REPLY};
 *   `network` when there was no reply and `timeout` when it did not end in time; unless the method is GET, the request
 *   may still have taken effect; `bug` for a mistake in `send`
 */
export async function exchange(
  send: Send,
  request: Outgoing,
  secrets: readonly Secret[] = [],
  timeout = Number.POSITIVE_INFINITY,
): Promise<Reply> {
  const { reply, whole } = await replyTo(send, request, secrets, timeout);
  const { method, url } = request;
  const { origin } = new URL(url);
  const { status } = reply;
  const unsure = method === 'GET' ? {} : { maybeDone: true };
  if (status >= 300 && status < 400) {
    throw new Failure('reply_invalid', `${origin} answered with a redirect, which is not followed.`, {
      why: 'A redirect would carry tokens to another address.',
      httpStatus: status,
      ...unsure,
    });
  }
  if (status < 200 || status > 299) throw unsuccessful(reply, method);
  // Some services answer a refusal with 200: its body has no reservation.
  if (isRefusal(reply)) throw replyFailure(reply);
  if (whole) return reply;
  throw new Failure('reply_invalid', `The reply is larger than ${MAX_REPLY} bytes.`, {
    httpStatus: status,
    ...unsure,
  });
}

/** Sends a request and reads the reply, whatever its status, up to {@link MAX_REPLY}; see {@link exchange}. */
export async function replyTo(
  send: Send,
  request: Outgoing,
  secrets: readonly Secret[] = [],
  timeout = Number.POSITIVE_INFINITY,
): Promise<{ reply: Reply; whole: boolean }> {
  const { method, url } = request;
  try {
    return await withinTime(timeout, async (signal) => {
      const limited = timeout === Number.POSITIVE_INFINITY ? request : { ...request, signal };
      const { status, headers, body } = await send(limited).catch((error: unknown) => {
        throw isMistake(error) ? mistakeAt(method, error) : error;
      });
      const { bytes, whole } = await readUpTo(bodyOf({ body }), MAX_REPLY);
      const [type = ''] = withoutSecrets(headers.get('content-type') ?? '', secrets).split(';');
      const text = withoutSecrets(new TextDecoder().decode(bytes), secrets);
      return { reply: { status, headers, type: type.trim().toLowerCase(), text }, whole };
    });
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    const late = cause instanceof TimeLimitError;
    const { origin } = new URL(url);
    const message = late
      ? `${origin} did not answer within ${timeout / 1000} s.`
      : `No reply from ${origin}.`;
    throw new Failure(late ? 'timeout' : 'network', message, {
      ...(method === 'GET' ? { retryable: true } : MAYBE_DONE),
      cause,
    });
  }
}

/** The outcome is unknown: it must be looked up before another attempt (THREATS.md 43). */
const MAYBE_DONE = {
  why: 'The request was sent and may have taken effect.',
  maybeDone: true,
  retryable: false,
} as const;

/** A mistake in this program while a request was made, which may have taken effect all the same. */
export function mistakeAt(method: string, cause: unknown): Failure {
  const failure = asFailure(cause);
  if (method === 'GET') return failure;
  return failure.with({ ...MAYBE_DONE, why: inOneText(failure.facts.why, MAYBE_DONE.why) });
}

/**
 * After a 5xx or 408 the request may have taken effect, unless the service itself says that it has not. After a 406 too: many
 * frameworks look at `Accept` when the work is done.
 */
function unsuccessful(reply: Reply, method: string): Failure {
  const failure = replyFailure(reply);
  if (reply.status === 406 && method !== 'GET') {
    return new Failure('outcome_unknown', failure.says, { ...failure.facts, ...MAYBE_DONE });
  }
  const unclear = reply.status >= 500 || reply.status === 408;
  const unsure = unclear && method !== 'GET' && !saysNothingWasDone(reply);
  return unsure ? failure.with(MAYBE_DONE) : failure;
}

/**
 * Reads the JSON of a successful reply by a schema.
 *
 * @param what names it in an error, such as "list of projects"
 * @throws Failure `reply_invalid` for HTML, nothing, or anything else than the schema
 */
export function readAs<Schema extends v.GenericSchema>(
  schema: Schema,
  reply: Reply,
  what: string,
): v.InferOutput<Schema> {
  const reading = readJson(reply.text);
  if (!reading.ok || reply.type === 'text/html') {
    const claimed = reply.type === '' || /\bjson$/.test(reply.type);
    const found = reply.text === '' ? 'is empty' : claimed ? "can't be read as JSON" : `is ${reply.type}`;
    throw new Failure('reply_invalid', `The ${what} should have been JSON, but the reply ${found}.`, {
      httpStatus: reply.status,
      why: reply.type === 'text/html' ? 'It is an HTML page: is the address right?' : undefined,
    });
  }
  const result = v.safeParse(schema, reading.value);
  if (result.success) return result.output;
  const [issue] = result.issues;
  throw new Failure('reply_invalid', `The ${what} does not have the expected form.`, {
    why: `${refusedValue(v.getDotPath(issue) ?? 'It', issue.message)}.`,
    httpStatus: reply.status,
  });
}

/** The form of a compact JWS: three parts of base64url. */
export const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/**
 * The token in a successful reply, not verified: a reply with the media type of a JWT, or with the form of a JWT under
 * any other media type. A JSON string is read, since some frameworks write every reply as JSON. One line end is allowed.
 */
export function tokenIn({ type, text }: Reply): string | undefined {
  const quoted = text.startsWith('"') ? readJson(text) : undefined;
  const found = quoted?.ok ? String(quoted.value) : text.replace(/\r?\n$/, '');
  if (type === JWT_TYPE) return found.trim();
  return COMPACT.test(found) ? found : undefined;
}

/** A token's text: a plain string, or a Secret, which is never printed. */
export type TokenText = string | Secret;

/**
 * A token as the clients take it: its text, or a function that gives it. The function is asked for each request, so
 * that a token can be replaced before it expires. White space around the text is dropped.
 */
export type TokenInput = TokenText | (() => TokenText | Promise<TokenText>);

/** Calls the function where one is given, and drops white space. @throws Failure `usage` for anything else than a {@link TokenInput} */
export async function readTokenInput(input: TokenInput): Promise<Secret> {
  const given: unknown = typeof input === 'function' ? await input() : input;
  if (given instanceof Secret) return given;
  if (typeof given === 'string') return new Secret(given.trim());
  throw new Failure(
    'usage',
    `A token must be a text, or a function that gives one; this is ${typeof given}.`,
  );
}

/**
 * A token's text, checked for a header.
 *
 * @throws Failure `token_invalid` for text that a header can't carry; the failure does not repeat the text
 */
export function headerToken(token: Secret): string {
  const text = token.reveal();
  if (/^[\x21-\x7e]+$/.test(text)) return text;
  throw new Failure('token_invalid', 'This is not a token.', {
    why: 'It contains white space or characters that a token never contains.',
  });
}

/** The value of `Authorization` for a request with a bearer token (RFC 6750 §2.1). @throws Failure `token_invalid` */
export function bearerHeader(token: Secret): string {
  return `Bearer ${headerToken(token)}`;
}

const TEXT = /^[ -~]{0,300}$/;
const NUMBER = /^\d{1,12}$/;

/** Headers of requests that never hold a secret; the values of all others are hidden (THREATS.md 11). */
const SHOWN_SENT: Readonly<Record<string, RegExp>> = {
  accept: TEXT,
  'content-type': TEXT,
  'idempotency-key': TEXT,
};

/** Headers of replies that are shown where their values have the expected form: a reply could hold anything. */
const SHOWN_RECEIVED: Readonly<Record<string, RegExp>> = {
  'content-type': /^(?:application\/(?:json|jwt)|text\/(?:html|plain))(?:; ?charset=utf-8)?$/i,
  'content-length': NUMBER,
  'retry-after': NUMBER,
  'idempotency-replayed': /^true$/,
};

/**
 * Wraps a way to send so that each request and reply is described in lines: method, address, status, time taken, and the
 * headers that hold no secret. Of bodies only the size is shown.
 *
 * @param tell takes one line
 */
export function traced(send: Send, tell: (line: string) => void): Send {
  return async (request) => {
    const began = performance.now();
    const took = (): number => Math.round(performance.now() - began);
    tell(`→ ${request.method} ${withoutTokens(request.url)}`);
    for (const [name, value] of Object.entries(request.headers).toSorted())
      tell(`    ${name}: ${shown(SHOWN_SENT, name, value)}`);
    try {
      const reply = await send(request);
      tell(`← ${reply.status} after ${took()} ms`);
      for (const [name, value] of [...reply.headers].toSorted()) {
        if (name in SHOWN_RECEIVED) tell(`    ${name}: ${shown(SHOWN_RECEIVED, name, value)}`);
      }
      return reply;
    } catch (error) {
      const why = error instanceof Error ? error.message : 'an unknown error';
      tell(`← nothing after ${took()} ms: ${withoutTokens(why)}`);
      throw error;
    }
  };
}

function shown(table: Readonly<Record<string, RegExp>>, name: string, value: string): string {
  return table[name]?.test(value) ? value : String(new Secret(value));
}
