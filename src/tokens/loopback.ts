import type { LookupFunction } from 'node:net';
import { isLoopback } from '../contract/addresses.ts';

/**
 * Resolves any name to this machine's loopback addresses, in place of DNS: for connections to `localhost` and the names
 * below it (RFC 6761 §6.3; THREATS.md 46).
 */
export const lookupLoopback: LookupFunction = (_name, { all, family }, callback) => {
  const addresses = [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ];
  if (all) return callback(null, addresses);
  const [first] = addresses.filter((each) => each.family === (family === 6 || family === 'IPv6' ? 6 : 4));
  callback(null, first?.address ?? '', first?.family);
};

/**
 * A body without its content coding (RFC 9110 §8.4.1): some servers compress whatever they were asked. What comes out has no
 * limit but the reader's.
 */
export function decoded(body: AsyncIterable<Uint8Array>, coding: string | null): AsyncIterable<Uint8Array> {
  const [, format] = /^(?:x-)?(gzip|deflate)$/i.exec(coding ?? '') ?? [];
  if (format === undefined) return body;
  const plain = new DecompressionStream(format.toLowerCase() as 'gzip' | 'deflate');
  return ReadableStream.from(body).pipeThrough(plain as ReadableWritablePair<Uint8Array, Uint8Array>);
}

/**
 * Sends a request without a body. To this machine's own addresses it goes straight, past the proxies that Node may be
 * told to use (`NODE_USE_ENV_PROXY`) and past DNS (THREATS.md 46); elsewhere it is the platform's `fetch`. Redirects are
 * as the request says, and never followed on this machine. A browser or a worker has its `fetch` only.
 */
export async function fetchDirectly(request: Request): Promise<Response> {
  const url = new URL(request.url);
  const modules = isLoopback(url) ? nodeModules(url) : undefined;
  if (!modules) return fetch(request);
  const { Agent, request: send } = modules;
  const { method, signal, headers } = request;
  return new Promise((resolve, reject) => {
    send(url, {
      method,
      signal,
      headers: { 'accept-encoding': 'identity', ...Object.fromEntries(headers) },
      lookup: lookupLoopback,
      // An agent of its own: the shared one may be for a proxy.
      agent: new Agent(),
    })
      .once('error', reject)
      .once('response', (reply) => {
        const status = reply.statusCode ?? 0;
        const fields = Object.entries(reply.headersDistinct).flatMap(([name, values = []]) =>
          values.map((value): [string, string] => [name, value]),
        );
        const coding = reply.headers['content-encoding'] ?? null;
        const body = [204, 205, 304].includes(status) ? null : ReadableStream.from(decoded(reply, coding));
        resolve(new Response(body, { status, headers: fields }));
      })
      .end();
  });
}

/** Node's own client, without an import, which browsers and workers could not resolve. */
function nodeModules({
  protocol,
}: URL): typeof import('node:http') | typeof import('node:https') | undefined {
  const { process }: { process?: Partial<NodeJS.Process> } = globalThis;
  return process?.getBuiltinModule?.(protocol === 'https:' ? 'node:https' : 'node:http');
}
