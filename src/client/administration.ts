import { Failure } from '../contract/failure.ts';
import { JWT_TYPE, ROUTES, type RouteName, routePath } from '../contract/routes.ts';
import type { Trust } from '../tokens/verify.ts';
import { bearerHeader, exchange, type Fetch, readTokenInput, type TokenInput, tokenIn } from './exchange.ts';
import { type ProvenReservation, proveReservation } from './proof.ts';
import { expiredInstead, type Reply } from './reply-failure.ts';

/** What an administrator's client needs. */
export interface AdministrationClientOptions {
  fetch: Fetch;
  /** `{base_url}`, without a trailing slash. */
  baseUrl: string;
  userToken: TokenInput;
  /** Whose signature on a reservation is believed. */
  trust: Trust;
}

/**
 * What the administrators of a connectivity service may do beyond an experiment: an extension of the reference server.
 * They send the user token alone. Every method throws Failure, `forbidden` for everyone else.
 */
export interface AdministrationClient {
  /** Anybody's reservation, proven. */
  show(id: string): Promise<ProvenReservation>;
  /** Deletes anybody's reservation. @param reason 1 to 200 characters, which the service keeps */
  release(id: string, reason: string): Promise<void>;
}

/** A client for administrators over any `fetch`. */
export function createAdministrationClient(options: AdministrationClientOptions): AdministrationClient {
  const { baseUrl, userToken, trust } = options;

  async function request(name: RouteName, accept: string, id: string, query = ''): Promise<Reply> {
    const user = await readTokenInput(userToken);
    const headers = { authorization: bearerHeader(user), accept };
    const { method } = ROUTES[name];
    const sent = new Request(baseUrl + routePath(name, { id }) + query, {
      method,
      headers,
      redirect: 'manual',
    });
    try {
      return await exchange(options.fetch, sent, [user]);
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
      const reply = await request('deleteReservation', 'application/json', id, query);
      if (reply.type !== 'text/html') return;
      throw new Failure('reply_invalid', 'The service answered with a page.', {
        why: 'Nothing says that the reservation was deleted, or not.',
        maybeDone: true,
        reservation: id,
      });
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
