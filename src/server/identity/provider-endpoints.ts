import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Provider } from 'oidc-provider';
import { PROBLEMS } from '../../contract/problem-codes.ts';
import { crossSite, type ProblemError, refusal } from '../problem-error.ts';
import { isCrossSite } from '../request-form.ts';
import { readForm } from '../request-reading.ts';
import { answerTooMany, type EndpointGuard } from './attempt-limits.ts';

/** The path of the metadata of OAuth (RFC 8414). */
export const OAUTH_METADATA_PATH = '/.well-known/oauth-authorization-server';

/** The provider's endpoints that are served, by path. Its own router accepts other spellings of them; this server does not. */
const SERVED_ENDPOINTS: Readonly<Record<string, readonly string[]>> = {
  '/token': ['POST'],
  '/device/auth': ['POST'],
  '/token/revocation': ['POST'],
  '/.well-known/openid-configuration': ['GET', 'HEAD'],
  [OAUTH_METADATA_PATH]: ['GET', 'HEAD'],
};

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

/** Lower limits for forms that are stored, in bytes: a device authorization request has a client and scopes only. */
const SMALL_FORMS: Readonly<Record<string, number>> = { '/device/auth': 2048 };

/** Whether the provider answers a path below the issuer. */
export function isProviderPath(path: string): boolean {
  return Object.hasOwn(SERVED_ENDPOINTS, path);
}

/** Whether a path below the issuer is that of a page on which people log in; without the page, of one only. */
export function isLoginPage(path: string): boolean {
  return path === '/device' || path === AUTHORIZATION_PATH;
}

/** The path of the page on which a person logs in to this server's own page, below the issuer; see `authorization-page.ts`. */
export const AUTHORIZATION_PATH = '/authorize';

/** Answers a request to one of the provider's endpoints over its socket. `address` is the client's. */
export type ProviderEndpoints = (
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  address: string,
) => Promise<void>;

/**
 * Passes requests on to the provider's library, which works on `node:http`. The library gets a new request with the few
 * headers that it needs and a form that was checked here: media type, size, no parameter twice (THREATS.md 32).
 *
 * @param issuer `{auth_url}`
 * @param guard counts each POST before its form is read
 * @throws ProblemError for what is refused before the provider sees it
 */
export function createProviderEndpoints(
  provider: Provider,
  issuer: string,
  guard: Pick<EndpointGuard, 'admit'>,
): ProviderEndpoints {
  const handle = provider.callback();
  const { host, origin } = new URL(issuer);
  return async (request, response, path, address) => {
    const { method = 'GET', headers } = request;
    const allowed = SERVED_ENDPOINTS[path] ?? [];
    if (!allowed.includes(method)) {
      response.setHeader('allow', allowed.join(', '));
      throw refusal('method_not_allowed', `This address allows ${allowed.join(', ')} only.`);
    }
    // Refused before it is counted: any page could use up the limit of its visitor's address (THREATS.md 58).
    const header = (name: string): string | undefined => request.headersDistinct[name]?.join();
    if (method === 'POST' && isCrossSite(header, origin)) {
      throw crossSite();
    }
    const inner = new IncomingMessage(request.socket);
    const tooMany = method === 'POST' ? await guard.admit(inner, path, address) : undefined;
    if (tooMany) return answerTooMany(request, response, tooMany);
    const named = method === 'POST' ? clientNamedBy(headers.authorization) : undefined;
    const body = method === 'POST' ? await formOf(request, SMALL_FORMS[path], named) : undefined;
    inner.method = method;
    inner.url = path;
    inner.httpVersion = request.httpVersion;
    inner.httpVersionMajor = request.httpVersionMajor;
    inner.httpVersionMinor = request.httpVersionMinor;
    inner.headers = {
      host,
      // Without it the provider would answer errors as HTML.
      accept: 'application/json',
      'user-agent': headers['user-agent'] ?? '',
      // The provider reads the client's address from this header.
      'x-forwarded-for': address,
      ...(headers.authorization === undefined || named !== undefined
        ? {}
        : { authorization: headers.authorization }),
      ...(body === undefined
        ? {}
        : {
            'content-type': 'application/x-www-form-urlencoded',
            'content-length': String(Buffer.byteLength(body)),
          }),
    };
    if (body) inner.push(body);
    inner.push(null);
    inner.complete = true;
    await handle(inner, response);
  };
}

/**
 * Answers requests of this very process to the provider's library, which works on `node:http`: made in memory, since the
 * base address may be a proxy's, and a server need not be able to reach itself.
 *
 * @param issuer `{auth_url}`; requests are for addresses below it
 */
export function providerInProcess(
  provider: Provider,
  issuer: string,
): (request: Request) => Promise<Response> {
  const handle = provider.callback();
  const { host } = new URL(issuer);
  return async (request) => {
    const body = await request.text();
    const inner = new IncomingMessage(new Socket());
    inner.method = request.method;
    inner.url = request.url.slice(issuer.length);
    inner.headers = {
      ...Object.fromEntries(request.headers),
      host,
      accept: 'application/json',
      ...(body === '' ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
    };
    if (body !== '') inner.push(body);
    inner.push(null);
    inner.complete = true;
    const answer = new AnswerInMemory(inner);
    await handle(inner, answer);
    const headers = new Headers();
    for (const [name, value] of Object.entries(answer.getHeaders())) {
      for (const one of [value ?? []].flat()) headers.append(name, String(one));
    }
    return new Response(answer.content === '' ? null : answer.content, {
      status: answer.statusCode,
      headers,
    });
  };
}

/** An answer that goes nowhere: what the library would have sent. */
class AnswerInMemory extends ServerResponse {
  content = '';
  override end(...given: unknown[]): this {
    const [content] = given;
    if (typeof content === 'string') this.content = content;
    if (content instanceof Uint8Array) this.content = Buffer.from(content).toString();
    return this;
  }
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
async function formOf(request: IncomingMessage, most: number | undefined, client?: string): Promise<string> {
  const stream = new ReadableStream<Uint8Array>({
    async start(controller) {
      try {
        for await (const chunk of request.iterator({ destroyOnReturn: false })) controller.enqueue(chunk);
        controller.close();
      } catch (error) {
        controller.error(error);
      }
    },
  });
  const form = await readForm(
    new Request('http://form.invalid', {
      method: 'POST',
      headers: { 'content-type': request.headers['content-type'] ?? '' },
      body: stream,
      duplex: 'half',
    }),
    most,
  );
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

/** A refusal in the form that OAuth clients read (RFC 6749 §5.2). */
export function oauthError(error: ProblemError): { error: string; error_description: string } {
  const [{ code, msg }] = error.problems;
  return {
    error: PROBLEMS[code].status === 503 ? 'temporarily_unavailable' : 'invalid_request',
    error_description: msg,
  };
}
