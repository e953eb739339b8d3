import { getResponse, http, type RequestHandler } from 'msw';
import { createConnectivityClient } from '../../src/client/connectivity.ts';
import type { ConnectivityClientOptions } from '../../src/client/service-requests.ts';
import openapi from '../../src/contract/openapi.json' with { type: 'json' };
import { type Fetch, type Send, sendFrom } from '../../src/contract/sending.ts';
import { claimsOf, makeKey, makeToken, RESERVATION, trustIn } from '../fixtures/tokens.ts';
import { json } from './replies.ts';

/** A sent request with its body. */
export interface SentRequest {
  method: string;
  url: string;
  headers: Headers;
  redirect: Request['redirect'];
  body: string;
}

/** A way of answering a request. An error that it throws is the connection's. */
export type Answer = () => Response | Promise<Response>;

/** A `fetch` that msw's handlers answer, the same for our own clients, and the requests that it got. */
export interface AnsweredFetch {
  fetch: Fetch;
  send: Send;
  readonly sent: readonly SentRequest[];
}

/** See {@link AnsweredFetch}. A request that no handler answers is a defect of the client. */
export function answeredBy(...handlers: RequestHandler[]): AnsweredFetch {
  const sent: SentRequest[] = [];
  const fetch: Fetch = async (request) => {
    const { method, url, headers, redirect } = request;
    sent.push({ method, url, headers, redirect, body: await request.clone().text() });
    const reply = await getResponse(handlers, request);
    if (reply) return reply;
    throw new RangeError(`no handler answers ${method} ${url}`);
  };
  return { sent, fetch, send: sendFrom({ fetch }) };
}

/** Handlers that answer any requests, one after the other. */
export function inTurn(...answers: readonly (Response | Answer)[]): RequestHandler[] {
  return answers.map((answer) =>
    http.all('*', () => (typeof answer === 'function' ? answer() : answer), { once: true }),
  );
}

/** The service whose clients are tested, where its reservations are, and the key that signs. */
export const BASE = 'https://conn.example.org';
export const PATH = `${BASE}/apis/v1alpha1/connectivity`;
export const key = makeKey();

/** The description of a service with every extension. */
export const described: Answer = () => json(openapi);

/** A signed reservation: the usual one, with changes. */
export function signed(
  changes: object = {},
  claims: Readonly<Record<string, unknown>> = {},
  signer = key,
): string {
  const connectivity = { ...RESERVATION, ...changes };
  return makeToken(signer, claimsOf('connectivity', { sub: connectivity.id, connectivity, ...claims }));
}

/** A client of a service that these handlers answer for, and what was sent to it. */
export function clientOf(
  handlers: readonly RequestHandler[],
  options: Partial<ConnectivityClientOptions> = {},
) {
  const { fetch, sent } = answeredBy(...handlers);
  const client = createConnectivityClient({
    fetch,
    baseUrl: BASE,
    userToken: makeToken(key, claimsOf('user')),
    experimentToken: makeToken(key, claimsOf('experiment')),
    trust: trustIn(key),
    ...options,
  });
  return { client, sent };
}
