import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createConnectivityClient } from '../../src/client/connectivity.ts';
import type { TokenInput } from '../../src/client/exchange.ts';
import { createPortalClient } from '../../src/client/portal.ts';
import { KEY_SET_PATH } from '../../src/contract/routes.ts';
import { Secret } from '../../src/contract/secret.ts';
import { createReferenceServer, type ReferenceServer } from '../../src/reference-server.ts';
import { remoteKeySet } from '../../src/tokens/remote-key-set.ts';
import { failureOf } from '../fixtures/failures.ts';
import { create, remove } from '../fixtures/single-changes.ts';
import { LATER, NOW } from '../fixtures/tokens.ts';

let server: ReferenceServer;

beforeAll(async () => {
  server = await createReferenceServer({ now: () => NOW });
});
afterAll(() => server.close());

describe('a token is given to the exported clients', () => {
  test.each<[string, (token: string) => TokenInput, 'user' | 'experiment']>([
    ['as a text', (token) => token, 'user'],
    ['as a text from a file, which ends in a line end', (token) => `${token}\n`, 'user'],
    ['by a function', (token) => () => token, 'user'],
    ['by a function that takes its time', (token) => async () => token, 'user'],
    ['as a secret', (token) => new Secret(token), 'experiment'],
    ['by a function, as a secret', (token) => async () => new Secret(token), 'experiment'],
  ])('%s: lists, reads and books', async (_, given, tokenPlacement) => {
    const { fetch, addresses } = server;
    const userToken = given(await server.signIn('lead'));
    const portal = createPortalClient({ fetch, portalUrl: addresses.portal, userToken });
    const [demo] = await portal.experiments();
    const keys = remoteKeySet({ url: addresses.connectivity + KEY_SET_PATH, fetch, now: () => NOW });
    const client = createConnectivityClient({
      ...{ fetch, userToken, tokenPlacement },
      baseUrl: addresses.connectivity,
      experimentToken: given(await portal.experimentToken(demo?.id ?? '')),
      trust: { issuers: new Map([[addresses.connectivity, keys]]), now: () => NOW },
    });
    const { reservation, verified } = await create(client, LATER);
    expect(verified).toBe(true);
    expect(await client.list()).toContainEqual(reservation);
    await remove(client, reservation.id);
    expect((await failureOf(() => client.show(reservation.id))).code).toBe('not_found');
  });

  test.each([undefined, null, 5, {}, () => undefined])('but not as %s', async (wrong) => {
    const portal = createPortalClient({
      fetch: server.fetch,
      portalUrl: server.addresses.portal,
      // Plain JavaScript can pass such values.
      userToken: wrong as never,
    });
    expect(await failureOf(() => portal.projects())).toMatchObject({ code: 'usage' });
  });
});
