import { headersBy, idIn as idInText } from '../fixtures/asked-server.ts';
import { poll, send, startLogin, tokensIn, type WireReply } from '../fixtures/identity.ts';
import { booking, CONNECTIVITY } from '../fixtures/service.ts';
import type { Listening } from '../fixtures/wire.ts';

/** Logs in as the user of the server's --auto-approve. @returns the headers of a caller in the experiment `demo` */
export async function logIn(target: Listening): Promise<Record<string, string>> {
  return headersWith(target, tokensIn(await poll(target, await startLogin(target))).access_token);
}

/** What a request about reservations of the experiment `demo` carries. */
export const headersWith = (target: Listening, userToken: string): Promise<Record<string, string>> =>
  headersBy((path, headers) => send(target, 'GET', path, { headers }), userToken);

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
export const idIn = (reply: WireReply): string => idInText(reply.text);
