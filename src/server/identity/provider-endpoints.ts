import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Provider } from 'oidc-provider';
import { StoreUnavailableError } from '../../allocator/store.ts';
import { PROBLEMS, problemBody } from '../../contract/problems.ts';
import { jsonReply } from '../json-reply.ts';
import { crossSite, type ProblemError, problemHeaders, refusal } from '../problem-error.ts';
import { isCrossSite } from '../request-form.ts';
import { readForm } from '../request-reading.ts';
import { PAGE_HEADERS } from '../ui/page.ts';
import {
  type CountedAttempt,
  type CountedEndpoint,
  ENDPOINT_LIMITS,
  READ_ENDPOINTS,
} from './attempt-limits.ts';

/** Its endpoints that take forms. */
const FORM_ENDPOINTS = Object.keys(ENDPOINT_LIMITS) as CountedEndpoint[];

/** The parameters that reach the provider; all others are dropped. */
const PASSED_PARAMETERS = [
  'client_id',
  'scope',
  'resource',
  'grant_type',
  'device_code',
  'refresh_token',
  'token',
  'token_type_hint',
  'subject_token',
  'subject_token_type',
  'experiment',
];

/** The largest form for a device code, in bytes: it is stored, and has a client and scopes only. */
const SMALL_FORM = 2048;

/** Answers a request below the issuer. `address` is the client's. @throws ProblemError for an unreadable form */
export type IdentityAnswer = (request: Request, address: string) => Promise<Response>;

/** Answers with these methods; others are refused with 405. */
export function answering(methods: readonly string[], answer: IdentityAnswer): IdentityAnswer {
  const allow = methods.join(', ');
  return async (request, address) =>
    methods.includes(request.method)
      ? answer(request, address)
      : oauthReply(refusal('method_not_allowed', `This address allows ${allow} only.`), {
          ...PAGE_HEADERS,
          allow,
        });
}

/** A refusal in a form that our clients and OAuth's read (RFC 6749 §5.2). */
export function oauthReply({ problems }: ProblemError, headers: Record<string, string> = {}): Response {
  const [problem] = problems;
  const { code, msg } = problem;
  const { status } = PROBLEMS[code];
  const error = status === 503 ? 'temporarily_unavailable' : 'invalid_request';
  return jsonReply(
    { error, error_description: msg, ...problemBody([problem]) },
    { status, headers: { ...headers, ...problemHeaders(code) } },
  );
}

/** Keeps the library's answer in memory and sends nothing. */
export class AnswerInMemory extends ServerResponse {
  /** Whether the request's code or token was right; `provider.ts` says so. */
  isRight = true;
  #content: string | null = null;

  override end(...given: unknown[]): this {
    const [content] = given;
    if (typeof content === 'string' || content instanceof Uint8Array) {
      this.#content = Buffer.from(content).toString() || null;
    }
    return this;
  }

  reply(): Response {
    const headers = new Headers();
    for (const [name, value] of Object.entries(this.getHeaders())) {
      for (const one of [value ?? []].flat()) headers.append(name, String(one));
    }
    return new Response(this.#content, { status: this.statusCode, headers });
  }
}

/**
 * Answers requests to the endpoints of the provider's library, which works on `node:http`. It gets a request that is made in
 * memory, with the few headers that it needs and a form that was checked here: media type, size, no parameter twice
 * (THREATS.md 32).
 *
 * @param issuer `{auth_url}`
 * @param admit counts a request before its form is read
 */
export function createProviderEndpoints(
  provider: Provider,
  issuer: string,
  admit: (path: CountedEndpoint, address: string) => Promise<CountedAttempt>,
): { endpoints: Record<string, IdentityAnswer>; fetch: (request: Request) => Promise<Response> } {
  const handle = provider.callback();
  const { host, origin } = new URL(issuer);

  async function ask(
    method: string,
    path: string,
    form = '',
    headers: Readonly<Record<string, string>> = {},
  ): Promise<AnswerInMemory> {
    const inner = new IncomingMessage(new Socket());
    inner.method = method;
    inner.url = path;
    // Without `accept` the provider would answer errors as HTML.
    inner.headers = { host, accept: 'application/json', ...headers };
    if (form !== '') {
      inner.headers['content-type'] = 'application/x-www-form-urlencoded';
      inner.headers['content-length'] = String(Buffer.byteLength(form));
      inner.push(form);
    }
    inner.push(null);
    inner.complete = true;
    const answer = new AnswerInMemory(inner);
    await handle(inner, answer);
    return answer;
  }

  const formEndpoint = (path: CountedEndpoint): IdentityAnswer =>
    answering(['POST'], async (request, address) => {
      // Refused before it is counted: any page could use up the limit of its visitor's address (THREATS.md 58).
      if (isCrossSite((name) => request.headers.get(name), origin)) throw crossSite();
      const attempt = await admit(path, address);
      if (!attempt.ok) return oauthTooMany(path, attempt.retryAfter);
      const authorization = request.headers.get('authorization') ?? undefined;
      const client = clientNamedBy(authorization);
      const form = await formOf(request, path === '/device/auth' ? SMALL_FORM : undefined, client);
      const answer = await ask('POST', path, form, {
        // The provider reads the client's address from this header.
        'x-forwarded-for': address,
        ...(authorization === undefined || client !== undefined ? {} : { authorization }),
      });
      // The request has its answer; a count that is too high ends with the window.
      if (path !== '/device/auth' && answer.isRight) await attempt.takeBack().catch(ignoreUnavailable);
      return answer.reply();
    });

  return {
    endpoints: Object.fromEntries([
      ...READ_ENDPOINTS.map((path): [string, IdentityAnswer] => [
        path,
        answering(['GET', 'HEAD'], async ({ method }) => (await ask(method, path)).reply()),
      ]),
      ...FORM_ENDPOINTS.map((path): [string, IdentityAnswer] => [path, formEndpoint(path)]),
    ]),
    /** Answers a request of this process without a socket: the base address may be a proxy's, which it may not reach. */
    fetch: async (request) =>
      (await ask(request.method, request.url.slice(issuer.length), await request.text())).reply(),
  };
}

function ignoreUnavailable(error: unknown): void {
  if (!(error instanceof StoreUnavailableError)) throw error;
}

/** Refuses a request with 429 (RFC 6585 §4), in the form that OAuth clients read (RFC 6749 §5.2). */
function oauthTooMany(path: CountedEndpoint, retryAfter: number): Response {
  const from = 'Too many requests came from your address, or from all together';
  return jsonReply(
    { error: ENDPOINT_LIMITS[path].error, error_description: `${from}. Try again in ${retryAfter} s.` },
    { status: 429, headers: { 'cache-control': 'no-store', 'retry-after': String(retryAfter) } },
  );
}

/**
 * The client that a Basic header with an empty secret names (RFC 6749 §2.3.1), as oidc-agent sends it for a client that
 * has none: the same as `client_id` in the form. Undefined for any other header.
 */
function clientNamedBy(authorization = ''): string | undefined {
  const [, encoded = ''] = /^basic +([\w+/]+={0,2})$/i.exec(authorization) ?? [];
  const [, client] = /^([^:]+):$/.exec(Buffer.from(encoded, 'base64').toString()) ?? [];
  // Form-encoded first, and ids of clients here have no character that would need it.
  return client !== undefined && /^[\w.-]+$/.test(client) ? client : undefined;
}

/**
 * The form's known parameters, as a form again.
 *
 * @param most its size, in bytes
 * @param client named in another place
 * @throws ProblemError for a form that names another client
 */
async function formOf(request: Request, most: number | undefined, client?: string): Promise<string> {
  const form = await readForm(request, most);
  if (client !== undefined && (form.get('client_id') ?? client) !== client) {
    throw refusal('request_invalid', 'The Authorization header and the form name two clients.');
  }
  const passed = new URLSearchParams(client === undefined ? {} : { client_id: client });
  for (const name of PASSED_PARAMETERS) {
    const value = form.get(name);
    if (value !== null) passed.set(name, value);
  }
  return passed.toString();
}
