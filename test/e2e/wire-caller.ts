import * as v from 'valibot';
import { EXPERIMENT_TOKEN_HEADER } from '../../src/contract/routes.ts';
import { type Provider, poll, send, startLogin, tokensIn, type WireReply } from '../fixtures/identity.ts';
import { addressOf, booking, CONNECTIVITY, EXPERIMENTS, SIGNED } from '../fixtures/service.ts';

/** Logs in as the user of the server's --auto-approve. @returns the headers of a caller in the first experiment */
export async function logIn(target: Provider): Promise<Record<string, string>> {
  const authorization = `Bearer ${tokensIn(await poll(target, await startLogin(target))).access_token}`;
  const listed = await send(target, 'GET', EXPERIMENTS, { headers: { authorization } });
  const { experiments } = v.parse(
    v.object({ experiments: v.array(v.object({ id: v.string() })) }),
    JSON.parse(listed.text),
  );
  const token = await send(target, 'GET', addressOf('experimentToken', experiments[0]?.id), {
    headers: { authorization, ...SIGNED },
  });
  return { authorization, [EXPERIMENT_TOKEN_HEADER]: token.text };
}

/** Books 100 Mbps, or what `changes` say, for an hour from an hour from now. */
export function book(
  target: Provider,
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
