import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { builtInTopology, createNetwork } from '../../src/allocator/network.ts';
import { readAdministrator } from '../../src/contract/addresses.ts';
import { ROLES } from '../../src/contract/roles.ts';
import { EXPERIMENT_TOKEN_HEADER } from '../../src/contract/routes.ts';
import { createReferenceServer } from '../../src/reference-server.ts';
import { administratorsNamed } from '../../src/server/credentials.ts';
import {
  addressOf,
  booked,
  type Caller,
  NOW,
  openService,
  outcome,
  reservationIn,
  SIGNED,
  type TestService,
  verified,
} from '../fixtures/service.ts';
import { IDS } from '../fixtures/tokens.ts';
import { LOGIN, openTrusting, PORTAL, portalKey, user } from '../fixtures/trusting.ts';

const REASON = '?reason=its%20job%20died';

/** The user id of a built-in user: the same in every service of a test, since their ids are drawn alike. */
async function userId(service: TestService, user: (typeof ROLES)[number]): Promise<string> {
  const [, payload = ''] = (await service.userToken(user)).split('.');
  return v.parse(v.object({ sub: v.string() }), JSON.parse(String(Buffer.from(payload, 'base64url')))).sub;
}

async function userAlone(service: TestService, user: (typeof ROLES)[number]): Promise<Caller> {
  return service.with({ authorization: `Bearer ${await service.userToken(user)}` });
}

const plain = await openService();
const administrator = await userId(plain, 'member');
const service = await openService({ administrators: [administrator] });

const deletion = (caller: Caller, id: string, query = ''): Promise<string> =>
  caller.send('DELETE', `${addressOf('deleteReservation', id)}${query}`).then(outcome);

describe('everyone but the named', () => {
  test.each(ROLES)('%s without an experiment token, where another or none is one: 403', async (role) => {
    for (const at of role === 'member' ? [plain] : [plain, service]) {
      const { id } = await booked(await at.as('lead'));
      const caller = await userAlone(at, role);
      const before = at.rows();
      for (const query of ['', REASON]) expect(await deletion(caller, id, query)).toBe('403 token_missing');
      expect(outcome(await caller.read(id))).toBe('403 token_missing');
      expect(at.rows()).toEqual(before);
    }
  });

  test('the role admin in an experiment is not this', async () => {
    const { id } = await booked(await service.as('lead', await service.newExperiment('leads-own')));
    expect(await deletion(await service.as('admin'), id, REASON)).toBe('403 wrong_experiment');
  });
});

describe('an administrator', () => {
  test('reads the tags of each hop, in the order of the route; its lead does not, and no token has them', async () => {
    const lead = await service.as('lead');
    const own = await booked(lead, { site1: 'gr-uth', site2: 'be-gent1', bandwidth: '1' });
    const caller = await userAlone(service, 'member');
    const { hops, ...reservation } = reservationIn(await caller.read(own.id));
    expect(reservation).toEqual(own);
    const sites = ['gr-uth', 'hu-sztaki', 'pl-poznan1', 'be-gent1'];
    expect(hops?.map(({ site1, site2 }) => [site1, site2])).toEqual(
      [0, 1, 2].map((at) => sites.slice(at, at + 2)),
    );
    const ends = hops?.flatMap((hop) => [hop.site1_c_tag, hop.site2_c_tag]) ?? [];
    expect([ends[0], ends.at(-1)]).toEqual([own.site1_c_tag, own.site2_c_tag]);
    // At a site each link has 1,000 C-tags of its own, so a tag says at which end of which link it is.
    const { links } = createNetwork(builtInTopology());
    const first = (from?: string, to?: string) =>
      links.flatMap((link) => {
        if (link.site1 === from && link.site2 === to) return link.site1_c_tags[0];
        return link.site2 === from && link.site1 === to ? link.site2_c_tags[0] : [];
      })[0];
    expect(ends.map((tag) => tag - ((tag - 1) % 1000))).toEqual(
      [0, 1, 2].flatMap((at) => [first(sites[at], sites[at + 1]), first(sites[at + 1], sites[at])]),
    );
    expect(reservationIn(await lead.read(own.id))).toEqual(own);
    expect((await verified(service, await caller.read(own.id, SIGNED), own.id)).connectivity).toEqual(own);
  });

  test('releases it with a reason, which is logged; then it is gone, and its tags are free', async () => {
    const { id, experiment_id, created_by } = await booked(await service.as('lead'), { bandwidth: '2' });
    const caller = await userAlone(service, 'member');
    const { hops } = service.rows();
    expect(await deletion(caller, id, REASON)).toBe('204');
    expect(service.rows().hops).toBe(hops - 1);
    const fields = {
      reservation: id,
      by: administrator,
      reason: 'its job died',
      experiment: experiment_id,
      created_by,
    };
    expect(service.log.filter(({ event }) => event === 'deleted')).toEqual([
      { level: 'info', event: 'deleted', fields },
    ]);
    expect(await deletion(caller, id, REASON)).toBe('404 not_found');
    expect(outcome(await caller.read(id))).toBe('404 not_found');
  });

  test('a token in the reason is kept nowhere', async () => {
    const { id } = await booked(await service.as('lead'), { bandwidth: '1' });
    const token = await service.userToken('member');
    const caller = await userAlone(service, 'member');
    expect(await deletion(caller, id, `?reason=see%20${token.slice(0, 150)}`)).toBe('204');
    expect(service.log.at(-2)?.fields).toMatchObject({ reservation: id, reason: 'see [secret]' });
    expect(JSON.stringify(service.log)).not.toContain('eyJ');
  });

  test.each([
    ['none', '', '400 request_invalid'],
    ['blanks', '?reason=%20%09', '400 request_invalid'],
    ['201 characters', `?reason=${'x'.repeat(201)}`, '400 request_invalid'],
    ['a line end', '?reason=a%0Ab', '400 request_invalid'],
    ['text that turns round', '?reason=%E2%80%AEx', '400 request_invalid'],
    ['two of them', '?reason=a&reason=b', '400 request_invalid'],
    ['200 characters outside the basic plane', `?reason=${encodeURIComponent('😀'.repeat(200))}`, '204'],
  ])('reason: %s: %s → %s', async (_, query, expected) => {
    const { id } = await booked(await service.as('lead'), { bandwidth: '1' });
    const caller = await userAlone(service, 'member');
    const before = service.rows().hops;
    expect(await deletion(caller, id, query)).toBe(expected);
    expect(service.rows().hops).toBe(expected === '204' ? before - 1 : before);
  });

  test('with an experiment token acts in that experiment, by the role there', async () => {
    const { id } = await booked(await service.as('lead'), { bandwidth: '1' });
    expect(await deletion(await service.as('member'), id, REASON)).toBe('403 role_not_allowed');
    expect(outcome(await (await service.as('member')).read(id))).toBe('403 role_not_allowed');
    // The experiment token alone names the user, who has not shown a token of their own.
    const alone = service.with({ authorization: `Bearer ${await service.experimentToken('member')}` });
    expect(await deletion(alone, id, REASON)).toBe('403 role_not_allowed');
  });

  test('may do nothing else without an experiment, and nothing with a token that is not good here', async () => {
    const { id } = await booked(await service.as('lead'), { bandwidth: '1' });
    const caller = await userAlone(service, 'member');
    for (const reply of [
      await caller.book(),
      await caller.list(),
      await caller.update(id, { bandwidth: '2' }),
    ]) {
      expect(outcome(reply)).toBe('403 token_missing');
    }
    const alone = service.with({ authorization: `Bearer ${await service.projectToken('member')}` });
    expect(await deletion(alone, id, REASON)).toBe('403 token_missing');
    const mixed = service.with({
      ...caller.headers,
      [EXPERIMENT_TOKEN_HEADER]: await service.experimentToken('lead'),
    });
    expect(await deletion(mixed, id, REASON)).toBe('403 token_invalid');
    const elsewhere = await createReferenceServer({ baseUrl: 'http://elsewhere.localhost', now: () => NOW });
    const foreign = service.with({ authorization: `Bearer ${await elsewhere.signIn('member')}` });
    await elsewhere.close();
    expect(await deletion(foreign, id, REASON)).toBe('403 token_invalid');
    service.moveTo(3_600_000);
    expect(await deletion(caller, id, REASON)).toBe('403 token_expired');
    service.moveTo(0);
  });
});

describe('two issuers are trusted, and one name is used by both', () => {
  const [ofLogin, ofPortal] = [user(), user({ iss: PORTAL }, portalKey)];

  test.each([
    ['named with it', `${IDS.user}@${LOGIN}`, ofLogin, '404 not_found'],
    ['named with the other', `${IDS.user}@${PORTAL}`, ofPortal, '404 not_found'],
    ['named with the other, at this', `${IDS.user}@${PORTAL}`, ofLogin, '403 token_missing'],
  ])('%s', async (_, named, token, expected) => {
    const trusting = await openTrusting({}, { administrators: [named] });
    const caller = trusting.service.with({ authorization: `Bearer ${token}` });
    expect(outcome(await caller.read(IDS.reservation))).toBe(expected);
  });
});

test.each<[string, object | undefined]>([
  ['user_h_1', { user: 'user_h_1' }],
  [
    'user_h_1@https://login.example.org/realm',
    { user: 'user_h_1', issuer: 'https://login.example.org/realm' },
  ],
  ...['member', 'exp_h_1', '', 'user_h_1@', 'user_h_1@login.example.org', 'user_h_1@javascript:x'].map(
    (text): [string, undefined] => [text, undefined],
  ),
  ['user_h_1 user_h_2', undefined],
])('%j names %j', (text, expected) => {
  expect(readAdministrator(text)).toEqual(expected);
  if (!expected) expect(() => administratorsNamed([text], 'https://h')).toThrow(RangeError);
});
