import { Failure } from '../contract/failure.ts';
import { JWT_TYPE, type RouteName } from '../contract/routes.ts';
import { sendFrom, type Transport } from '../contract/sending.ts';
import type { Trust } from '../tokens/verify.ts';
import { bearerHeader, exchange, readTokenInput, requestTo, type TokenInput, tokenIn } from './exchange.ts';
import { checkDeletion, type ProvenReservation, proveReservation } from './proof.ts';
import { expiredInstead, type Reply } from './reply-failure.ts';

/** Options of {@link createAdministrationClient}. */
export type AdministrationClientOptions = Transport & {
  /** `{base_url}`, without a trailing slash. */
  baseUrl: string;
  userToken: TokenInput;
  /** The issuers whose signature on a reservation is accepted. */
  trust: Trust;
};

/**
 * What the administrators of a connectivity service may do in every experiment: an extension of the reference server.
 * They send only the user token. Every method throws Failure, `forbidden` for users who are not administrators.
 */
export interface AdministrationClient {
  /** A reservation of any experiment, verified. */
  show(id: string): Promise<ProvenReservation>;
  /** Deletes a reservation of any experiment. @param reason 1 to 200 characters, which the service keeps */
  release(id: string, reason: string): Promise<void>;
}

/** A client for administrators. */
export function createAdministrationClient(options: AdministrationClientOptions): AdministrationClient {
  const { baseUrl, userToken, trust } = options;
  const send = sendFrom(options);

  async function request(name: RouteName, accept: string, id: string, query = ''): Promise<Reply> {
    const user = await readTokenInput(userToken);
    const headers = { authorization: bearerHeader(user) };
    const sent = requestTo(baseUrl, name, { values: { id }, query, headers, accept });
    try {
      return await exchange(send, sent, [user]);
    } catch (error) {
      throw expiredInstead(notAdministrator(error), Object.values(headers), (trust.now ?? Date.now)());
    }
  }

  return {
    async show(id) {
      const reply = await request('readReservation', JWT_TYPE, id);
      return proveReservation(tokenIn(reply) ?? reply.text.trim(), trust, { id });
    },
    async release(id, reason) {
      const query = `?${new URLSearchParams({ reason })}`;
      checkDeletion(await request('deleteReservation', 'application/json', id, query), id);
    },
  };
}

/** A service asks users who are not administrators for an experiment token: that failure becomes `forbidden`. */
function notAdministrator(error: unknown): unknown {
  if (!(error instanceof Failure) || error.code !== 'token_missing') return error;
  return new Failure('forbidden', 'This service does not know you as an administrator.', {
    ...error.facts,
    why: 'Its operator names administrators when it starts: serve --administrator USER_ID.',
  });
}
