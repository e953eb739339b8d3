import { getResponse, http, type RequestHandler } from 'msw';
import { type Fetch, type Send, sendFrom } from '../../src/contract/sending.ts';

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
