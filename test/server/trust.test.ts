import { DatabaseSync } from 'node:sqlite';
import * as v from 'valibot';
import { afterAll, describe, expect, test } from 'vitest';
import { ProblemBody } from '../../src/contract/problems.ts';
import { ROUTES, type Route } from '../../src/contract/routes.ts';
import { createReferenceServer } from '../../src/reference-server.ts';
import type { ForeignIssuers } from '../../src/server/trust.ts';
import {
  addressOf,
  booking,
  CONNECTIVITY,
  HOUR,
  LINKS,
  MINUTE,
  openService,
  outcome,
  PROJECTS,
  problemIn,
  reservationIn,
  SECOND,
} from '../fixtures/service.ts';
import { claimsOf, IDS, makeToken, SECONDS } from '../fixtures/tokens.ts';
import {
  book,
  experiment,
  headersWith,
  KEY_SETS,
  LOGIN,
  loginKey,
  openTrusting,
  PORTAL,
  portalKey,
  user,
} from '../fixtures/trusting.ts';

describe('a server that trusts issuers elsewhere', async () => {
  const { service, world } = await openTrusting();
  const bare = await createReferenceServer({ trust: { issuers: [LOGIN, PORTAL] } });
  afterAll(() => bare.close());

  test('creates reservations for their users, and signs with a key of its own', async () => {
    const reply = await book(service, user());
    expect(outcome(reply)).toBe('201');
    const { id, created_by, experiment_id } = reservationIn(reply);
    expect([created_by, experiment_id]).toEqual([IDS.user, IDS.experiment]);
    const read = await service.send('GET', addressOf('readReservation', id), {
      headers: { ...headersWith(user()), accept: 'application/jwt' },
    });
    expect(read.status).toBe(200);
    expect(
      (await service.send('GET', LINKS, { headers: { authorization: `Bearer ${user()}` } })).status,
    ).toBe(200);
    expect(world.fetched.toSorted()).toEqual(Object.values(KEY_SETS).toSorted());
  });

  test('accepts every kind of token from each of them', async () => {
    const userOfPortal = user({ iss: PORTAL }, portalKey);
    // Ids without an owner (row 50).
    const experimentOfLogin = experiment({ iss: LOGIN, sub: 'exp_login_1' }, loginKey);
    expect(outcome(await book(service, userOfPortal, experimentOfLogin))).toBe('201');
    const project = makeToken(loginKey, claimsOf('project', { iss: LOGIN, sub: 'proj_login_1' }));
    const body = booking({ tokens: [project] });
    const reply = await service.send('POST', CONNECTIVITY, { headers: headersWith(user()), body });
    expect(outcome(reply)).toBe('201');
  });

  test('has no users of its own', async () => {
    await expect(service.userToken('lead')).rejects.toThrow(RangeError);
    const database = new DatabaseSync(service.file, { readOnly: true });
    for (const table of ['person', 'project', 'experiment', 'membership']) {
      expect(database.prepare(`SELECT count(*) AS rows FROM ${table}`).get()).toEqual({ rows: 0 });
    }
    database.close();
  });

  test.each([
    ['/portal/', PORTAL],
    [PROJECTS, PORTAL],
    ['/portal/.well-known/jwks.json', PORTAL],
    ['/auth', 'https://login.example.org/realms/slices'],
    ['/auth/token', 'https://login.example.org/realms/slices'],
    ['/auth/.well-known/jwks.json', 'https://login.example.org/realms/slices'],
  ])('%s: 404 that says where', async (address, where) => {
    // Past the fixture, which holds replies against the description of a server with a portal.
    for (const method of ['GET', 'POST']) {
      const reply = await bare.fetch(new Request(`${service.base}${address}`, { method }));
      expect(reply.status).toBe(404);
      const { code, detail } = v.parse(ProblemBody, await reply.json());
      expect([code, detail[0]?.msg]).toEqual(['not_found', expect.stringContaining(` is at ${where}.`)]);
    }
  });

  test('its description shows the services that are here, without references to missing parts', async () => {
    const { body } = await service.send('GET', '/api-spec');
    const { paths, tags, components } = v.parse(
      v.looseObject({
        paths: v.record(v.string(), v.unknown()),
        tags: v.array(v.object({ name: v.string() })),
        components: v.looseObject({ schemas: v.record(v.string(), v.unknown()) }),
      }),
      body,
    );
    const here = Object.values(ROUTES).filter(({ service: which }: Route) => which === 'connectivity');
    expect(Object.keys(paths).toSorted()).toEqual([...new Set(here.map(({ path }) => path))].toSorted());
    expect(tags.map(({ name }) => name)).toEqual(['connectivity']);
    const text = JSON.stringify(body);
    expect(text).not.toContain('"/portal');
    const referred = [...text.matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) => name);
    expect(new Set(referred)).toEqual(new Set(Object.keys(components.schemas)));
  });
});

describe('aud of a foreign user token', async () => {
  const [open, bound] = [await openTrusting(), await openTrusting({ audience: 'https://conn.example.org' })];
  const others = { aud: 'https://elsewhere.example.org' };
  const both = { aud: ['https://elsewhere.example.org', 'https://conn.example.org'] };

  test.each<[string, object, string, string]>([
    ['the one', {}, '201', '201'],
    ['among others', both, '201', '201'],
    ['another', others, '201', '403 token_invalid'],
    ['none', { aud: undefined }, '201', '403 token_invalid'],
  ])('%s: unset %s, set %s', async (_, claims, unset, set) => {
    expect(outcome(await book(open.service, user(claims)))).toBe(unset);
    expect(outcome(await book(bound.service, user(claims)))).toBe(set);
  });
});

describe('rows 25 to 27: the keys of a trusted issuer', () => {
  test('an issuer that can’t be reached: 503, and one fetch for many tokens; later the copy is used for a day, and the log says so', async () => {
    const { service, world } = await openTrusting();
    service.moveTo(-MINUTE);
    world.away = true;
    const early = { iat: SECONDS - 90, exp: SECONDS };
    for (let turn = 0; turn < 50; turn += 1)
      expect(outcome(await book(service, user(early)))).toBe('503 unavailable');
    expect(world.fetched).toEqual([KEY_SETS[LOGIN]]);
    world.away = false;
    service.moveTo(0);
    expect(outcome(await book(service, user()))).toBe('201');
    world.away = true;
    service.moveTo(23 * HOUR);
    const fresh = { iat: SECONDS + 23 * 3600, exp: SECONDS + 24 * 3600 };
    const links = (token: string) =>
      service.send('GET', LINKS, { headers: { authorization: `Bearer ${token}` } });
    expect(outcome(await links(user(fresh)))).toBe('200');
    expect(service.log).toContainEqual({
      level: 'error',
      event: 'keys_stale',
      fields: { issuer: LOGIN, ms: 23 * HOUR },
    });
    service.moveTo(24 * HOUR + SECOND);
    const later = { iat: SECONDS + 24 * 3600, exp: SECONDS + 25 * 3600 };
    expect(outcome(await links(user(later)))).toBe('503 unavailable');
  });
});

describe('options that are refused', () => {
  test.each([
    'http://portal.example.org',
    'portal.example.org',
    'https://user@portal.example.org',
    'https://portal.example.org?',
    'http://localhost.example.org',
  ])('%j', async (issuer) => {
    await expect(openService({ trust: { issuers: [issuer] } })).rejects.toThrow(RangeError);
  });

  test('an empty list of issuers, and autoApprove with one', async () => {
    await expect(openService({ trust: { issuers: [] } })).rejects.toThrow(RangeError);
    const both = openService({ trust: { issuers: [PORTAL] }, autoApprove: 'lead' });
    await expect(both).rejects.toThrow(/autoApprove/);
  });
});

describe('the addresses in refusals', () => {
  test.each<[string, Partial<ForeignIssuers>, string, string]>([
    ['one issuer is both', { issuers: [PORTAL] }, PORTAL, PORTAL],
    ['the first logs in, the last is the portal', {}, 'https://login.example.org/realms/slices', PORTAL],
    [
      'or what is said',
      { authUrl: 'https://a.example.org/', portalUrl: 'https://b.example.org/x/' },
      'https://a.example.org',
      'https://b.example.org/x',
    ],
  ])('%s', async (_, changes, identity, portal) => {
    const { service } = await openTrusting(changes);
    for (const [address, where] of [
      ['/auth', identity],
      ['/portal', portal],
    ]) {
      expect(problemIn(await service.send('GET', String(address))).detail[0]?.msg).toContain(` ${where}.`);
    }
  });
});
