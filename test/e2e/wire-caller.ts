import * as v from 'valibot';
import { EXPERIMENT_TOKEN_HEADER } from '../../src/contract/routes.ts';
import { poll, send, startLogin, tokensIn, type WireReply } from '../fixtures/identity.ts';
import { addressOf, booking, CONNECTIVITY, EXPERIMENTS, SIGNED } from '../fixtures/service.ts';
import type { Listening } from '../fixtures/wire.ts';

/** Logs in as the user of the server's --auto-approve. @returns the headers of a caller in the experiment `demo` */
export async function logIn(target: Listening): Promise<Record<string, string>> {
  return headersWith(target, tokensIn(await poll(target, await startLogin(target))).access_token);
}

/** What a request about reservations of the experiment `demo` carries. */
export async function headersWith(target: Listening, userToken: string): Promise<Record<string, string>> {
  const authorization = `Bearer ${userToken}`;
  const listed = await send(target, 'GET', EXPERIMENTS, { headers: { authorization } });
  const { experiments } = v.parse(
    v.object({ experiments: v.array(v.object({ id: v.string(), name: v.string() })) }),
    JSON.parse(listed.text),
  );
  const id = experiments.find(({ name }) => name === 'demo')?.id;
  const headers = { authorization, ...SIGNED };
  const token = await send(target, 'GET', addressOf('experimentToken', id), { headers });
  if (token.status !== 200) throw new Error(`no experiment token: ${token.status} ${token.text}`);
  return { authorization, [EXPERIMENT_TOKEN_HEADER]: token.text };
}

/** Books 100 Mbps, or what `changes` say, for an hour from an hour from now. */
export function book(
  target: Listening,
  headers: Readonly<Record<string, string>>,
  changes: Readonly<Record<string, unknown>> = {},
): Promise<WireReply> {
  const start = Date.now() + 3_600_000;
  return send(target, 'POST', CONNECTIVITY, {
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(
      booking({
        start_date: new Date(start).toISOString(),
        end_date: new Date(start + 3_600_000).toISOString(),
        ...changes,
      }),
    ),
  });
}

/** The id of the reservation in a reply. */
export const idIn = (reply: WireReply): string =>
  v.parse(v.object({ id: v.string() }), JSON.parse(reply.text)).id;
