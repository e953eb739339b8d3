import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ConnectivityClient, createConnectivityClient } from '../../src/client/connectivity.ts';
import type { TokenInput } from '../../src/client/exchange.ts';
import { createPortalClient, type PortalClient } from '../../src/client/portal.ts';
import type { ReservationRequest } from '../../src/contract/reservation-request.ts';
import type { Role } from '../../src/contract/roles.ts';
import { KEY_SET_PATH } from '../../src/contract/routes.ts';
import { Secret } from '../../src/contract/secret.ts';
import { createReferenceServer, type ReferenceServer } from '../../src/reference-server.ts';
import { remoteKeySet } from '../../src/tokens/remote-key-set.ts';
import { failureOf } from '../fixtures/failures.ts';
import { create, remove, update } from '../fixtures/single-changes.ts';
import { LATER, NOW } from '../fixtures/tokens.ts';

const HOUR = 3_600_000;
let server: ReferenceServer;

beforeAll(async () => {
  server = await createReferenceServer({ now: () => NOW });
});
afterAll(() => server.close());

function portalOf(user: Role): PortalClient {
  return createPortalClient({
    fetch: server.fetch,
    portalUrl: server.addresses.portal,
    projectsApiGroup: 'projects',
    experimentsApiGroup: 'experiments',
    userToken: async () => new Secret(await server.signIn(user)),
  });
}

/** A client of one of the built-in users, in their shared experiment. */
function connectivityOf(user: Role, tokenPlacement: 'user' | 'experiment' = 'user'): ConnectivityClient {
  const { connectivity } = server.addresses;
  const keys = remoteKeySet({ url: connectivity + KEY_SET_PATH, fetch: server.fetch, now: () => NOW });
  return createConnectivityClient({
    fetch: server.fetch,
    baseUrl: connectivity,
    userToken: async () => new Secret(await server.signIn(user)),
    experimentToken: async () => {
      const portal = portalOf(user);
      const [demo] = await portal.experiments();
      return portal.experimentToken(demo?.id ?? '');
    },
    trust: { issuers: new Map([[connectivity, keys]]), now: () => NOW },
    tokenPlacement,
  });
}

describe('reserve, show, update and delete at the reference server', () => {
  test.each(['user', 'experiment'] as const)('work with the token placement %s', async (placement) => {
    const client = connectivityOf('lead', placement);
    const booked = await create(client, LATER);
    expect(booked).toMatchObject({ verified: true, reservation: { bandwidth: 1000, site1: 'be-gent1' } });
    const { id } = booked.reservation;
    expect((await client.show(id)).reservation).toEqual(booked.reservation);
    expect(await client.list()).toContainEqual(booked.reservation);

    const longer = await update(client, booked.reservation, { end: NOW + 4 * HOUR, bandwidth: 2000 });
    expect(longer.reservation).toMatchObject({
      id,
      bandwidth: 2000,
      start_date: booked.reservation.start_date,
    });

    await remove(client, id);
    expect((await failureOf(() => client.show(id))).code).toBe('not_found');
    expect((await failureOf(() => remove(client, id))).code).toBe('not_found');
    expect((await client.list())?.map((listed) => listed.id)).not.toContain(id);
  });

  test('the sites can be named in either order, and the tags follow their site', async () => {
    const client = connectivityOf('lead');
    const { reservation: there } = await create(client, LATER);
    await remove(client, there.id);
    const { reservation: back } = await create(client, {
      ...LATER,
      site1: 'pl-poznan1',
      site2: 'be-gent1',
    });
    expect(back).toMatchObject({
      site1: 'pl-poznan1',
      site1_c_tag: there.site2_c_tag,
      site1_s_tag: there.site2_s_tag,
      site2: 'be-gent1',
      site2_c_tag: there.site1_c_tag,
      site2_s_tag: there.site1_s_tag,
    });
    await remove(client, back.id);
  });
});

describe('refusals of the reference server', () => {
  test.each<[string, Partial<ReservationRequest>, string]>([
    ['an unknown site', { site2: 'uk-london' }, 'site_unknown'],
    ['equal sites', { site2: 'be-gent1' }, 'sites_equal'],
    ['a start that has passed', { start: NOW - 1 }, 'date_past'],
    ['an end at its start', { end: NOW + HOUR }, 'period_empty'],
    ['an end after the experiment’s', { end: NOW + 91 * 24 * HOUR }, 'experiment_ends_first'],
    ['more than the link has', { bandwidth: 100_001 }, 'bandwidth_unavailable'],
  ])('%s', async (_, changes, code) => {
    const failure = await failureOf(() => create(connectivityOf('lead'), { ...LATER, ...changes }));
    expect(failure).toMatchObject({ code, facts: { httpStatus: 422, retryable: false } });
    expect(failure.facts.details?.[0]?.type).toBe('NotValid');
  });

  test('it accepts its own alternatives', async () => {
    const client = connectivityOf('lead');
    const { facts } = await failureOf(() => create(client, { ...LATER, bandwidth: 100_001 }));
    const [offer] = facts.alternatives ?? [];
    const { reservation } = await create(client, {
      ...LATER,
      bandwidth: offer?.bandwidth ?? 0,
      start: Date.parse(offer?.start_date ?? ''),
      end: Date.parse(offer?.end_date ?? ''),
    });
    await remove(client, reservation.id);
  });
});

describe('a token is given', () => {
  test.each<[string, (token: string) => TokenInput]>([
    ['as a text', (token) => token],
    ['as a text from a file, which ends in a line end', (token) => `${token}\n`],
    ['by a function', (token) => () => token],
    ['by a function that takes its time', (token) => async () => token],
    ['as a secret', (token) => new Secret(token)],
    ['by a function, as a secret', (token) => async () => new Secret(token)],
  ])('%s: lists, reads and books', async (_, given) => {
    const { fetch, addresses } = server;
    const userToken = given(await server.signIn('lead'));
    const portal = createPortalClient({ fetch, portalUrl: addresses.portal, userToken });
    const [demo] = await portal.experiments();
    const client = createConnectivityClient({
      fetch,
      baseUrl: addresses.connectivity,
      userToken,
      experimentToken: given(await portal.experimentToken(demo?.id ?? '')),
      trust: {
        issuers: new Map([
          [
            addresses.connectivity,
            remoteKeySet({ url: addresses.connectivity + KEY_SET_PATH, fetch, now: () => NOW }),
          ],
        ]),
        now: () => NOW,
      },
    });
    const { reservation, verified } = await create(client, LATER);
    expect(verified).toBe(true);
    await remove(client, reservation.id);
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

describe('the reference portal', () => {
  test('lists the user’s projects and experiments, and gives their tokens', async () => {
    const portal = portalOf('lead');
    const [project] = await portal.projects();
    const [experiment] = await portal.experiments();
    expect(project).toMatchObject({ name: 'demo', role: 'lead' });
    expect(experiment).toMatchObject({ name: 'demo', role: 'lead', project_id: project?.id });
    expect((await portal.projectToken(project?.id ?? '')).split('.')).toHaveLength(3);
    expect((await portal.experimentToken(experiment?.id ?? '')).split('.')).toHaveLength(3);
  });
});
