import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { expect, test } from 'vitest';
import type { ProblemCode } from '../../src/contract/problems.ts';
import { createListener } from '../../src/server/listener.ts';
import { noLog } from '../../src/server/log.ts';
import { problemReply, refusal } from '../../src/server/problem-error.ts';
import { atEndOfFile } from '../fixtures/end-of-file.ts';
import { listenOnLoopback } from '../fixtures/loopback.ts';

/** A server whose services answer by a function. @returns its address */
async function serving(fetch: (request: Request) => Promise<Response>): Promise<string> {
  const server = createServer();
  atEndOfFile(() => void server.close().closeAllConnections());
  const baseUrl = `http://127.0.0.1:${await listenOnLoopback(server)}`;
  server.on('request', createListener({ site: { name: undefined, baseUrl }, fetch, log: noLog }));
  return baseUrl;
}

/** How long a server takes for so many requests of one address, one after the other, that it all refuses. Milliseconds. */
async function timeFor(count: number, code: ProblemCode): Promise<number> {
  const baseUrl = await serving(async () => problemReply(refusal(code, 'No.')));
  const began = performance.now();
  for (let asked = 0; asked < count; asked += 1) {
    const [reply] = await once(request(`${baseUrl}/apis/x`).end(), 'response');
    expect(reply.statusCode).toBe(403);
    await once(reply.resume(), 'end');
  }
  return performance.now() - began;
}

// 20 a second are not delayed, and 4 a second are answered after a delay.
test('an address is slowed down for tokens that do not verify (THREATS.md 82)', async () => {
  expect(await timeFor(50, 'token_invalid')).toBeGreaterThan(1000);
});

test('an address is not slowed down for what its users may not do (THREATS.md 82)', async () => {
  for (const code of ['role_not_allowed', 'token_missing', 'wrong_experiment'] as const) {
    expect(await timeFor(100, code)).toBeLessThan(3000);
  }
});

test('the request of a client that closes its connection is aborted (THREATS.md 117)', async () => {
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<Request>();
  const { promise: answered, resolve: answer } = Promise.withResolvers<Response>();
  const baseUrl = await serving(async (asked) => {
    arrive(asked);
    return answered;
  });
  const sent = request(`${baseUrl}/apis/x`, { method: 'POST' }).end('{}');
  sent.on('error', () => undefined);
  // Its signal is first looked at when the connection is closed.
  const asked = await arrived;
  sent.destroy();
  await expect.poll(() => asked.signal.aborted).toBe(true);
  answer(new Response());
});
