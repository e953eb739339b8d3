import { decodeJwt } from 'jose';
import { describe, expect, test } from 'vitest';
import { MAX_TOKENS } from '../../src/contract/reservation.ts';
import { EXPERIMENT_TOKEN_HEADER } from '../../src/contract/routes.ts';
import {
  at,
  booking,
  type Caller,
  CONNECTIVITY,
  DAY,
  endpointsOf,
  HOUR,
  MINUTE,
  openService,
  openWithLead,
  outcome,
  problemIn,
  reservationIn,
  SIGNED,
} from '../fixtures/service.ts';
import { NOW } from '../fixtures/tokens.ts';

const service = await openService();
const elsewhere = await openService({ baseUrl: 'http://elsewhere.localhost' });
const twin = await openService();
const issuers = await service.issuers();

const lead = await service.as('lead');
const reservation = reservationIn(await lead.book()).id;
const user = await service.userToken('lead');
const experiment = await service.experimentToken('lead');
const project = await service.projectToken('lead');
const secondExperiment = await service.experimentToken('lead', await service.newExperiment('second'));
const connectivity = String((await lead.read(reservation, SIGNED)).body);
// A user token lasts an hour: this one's exp is now, which is not after now.
service.moveTo(-HOUR);
const expiredUser = await service.userToken('lead');
service.moveTo(0);
const userClaims = decodeJwt(user);
const wrongAudience = await issuers.identity.issue({ ...userClaims, aud: 'https://elsewhere.example.org' });
const signedByPortal = await issuers.portal.issue(userClaims);
const wrongIssuer = await elsewhere.userToken('lead');
const wrongKey = await twin.userToken('lead');

/** Every endpoint that needs a credential, with the rest of a good request. */
const GUARDED = endpointsOf(service, reservation)
  .filter(({ route }) => route.credentials !== 'none')
  .map(({ name, route, address }) => {
    const bodies = {
      ReservationRequest: booking(),
      ReservationUpdate: { bandwidth: '2', tokens: [] },
      ExperimentRequest: { name: 'third', project_id: service.project, expires_at: at(DAY) },
    };
    return {
      name,
      service: route.service,
      method: route.method,
      address,
      headers: (route.credentials === 'experiment'
        ? { [EXPERIMENT_TOKEN_HEADER]: experiment }
        : {}) as Record<string, string>,
      body: Object.entries(bodies).find(([schema]) => schema === route.request)?.[1],
    };
  });

/** contract/README.md, "Errors" 4, told at every endpoint. All that `Authorization` may hold: test/tokens/verifier.test.ts. */
const BAD_CREDENTIALS: [title: string, authorization: string | undefined, code: string, says: RegExp][] = [
  ['no Authorization', undefined, 'token_missing', /no Authorization/],
  ['Basic', 'Basic bGVhZDpsZWFk', 'token_invalid', /must be Bearer/],
  ['an expired token', `Bearer ${expiredUser}`, 'token_expired', /expired/],
  ['a token of another issuer', `Bearer ${wrongIssuer}`, 'token_invalid', /issuer/],
  ["a user token by the portal's key", `Bearer ${signedByPortal}`, 'token_invalid', /issuer/],
  ['a token for another audience', `Bearer ${wrongAudience}`, 'token_invalid', /is meant for \S+, not for /],
  ['a token by another key', `Bearer ${wrongKey}`, 'token_invalid', /restarted with new keys\? Log in again/],
];

/** Where the metadata of the service are (RFC 9728 §5.1); the portal is another resource. */
const METADATA = `resource_metadata="${service.base}/.well-known/oauth-protected-resource"`;

test.each(GUARDED)('row 34: $method $address ($name)', async ({ method, address, headers, body, ...of }) => {
  const before = service.rows();
  for (const [title, authorization, code, says] of BAD_CREDENTIALS) {
    const reply = await service.send(method, address, {
      headers: { ...headers, ...(authorization === undefined ? {} : { authorization }) },
      ...(body ? { body } : {}),
    });
    expect([title, outcome(reply)]).toEqual([title, `403 ${code}`]);
    expect(problemIn(reply).detail[0]?.msg).toMatch(says);
    const invalid = code === 'token_missing' ? [] : ['error="invalid_token"'];
    const challenge = [...invalid, ...(of.service === 'connectivity' ? [METADATA] : [])].join(', ');
    expect(reply.headers.get('www-authenticate')).toBe(`Bearer ${challenge}`.trim());
  }
  expect(service.rows()).toEqual(before);
});

test('a refusal for want of an experiment token says where the metadata are, and no other refusal does', async () => {
  const challenge = async (caller: Caller, address: string) =>
    (await caller.send('GET', address)).headers.get('www-authenticate');
  const caller = service.with({ authorization: `Bearer ${user}` });
  expect(await challenge(caller, CONNECTIVITY)).toBe(`Bearer ${METADATA}`);
  expect(await challenge(caller, '/nothing')).toBeNull();
});

/** What a placement of tokens is: `Authorization`, the experiment header, and the body's `tokens`. */
interface Placement {
  bearer: string;
  header?: string;
  tokens?: readonly string[];
}

/**
 * contract/README.md, "Experiment token's header": told apart by issuer and subject, never by place; each must verify. Every
 * place of good tokens is below.
 */
const PLACEMENTS: [title: string, placement: Placement, expected: string][] = [
  ['experiment in Authorization, user in the header', { bearer: experiment, header: user }, 'ok'],
  [
    'two experiments in tokens',
    { bearer: user, tokens: [experiment, secondExperiment] },
    '400 experiment_tokens_differ',
  ],
  [
    'a connectivity token in tokens',
    { bearer: user, header: experiment, tokens: [connectivity] },
    '403 token_invalid',
  ],
  ['an empty string in tokens', { bearer: user, header: experiment, tokens: [''] }, '403 token_invalid'],
  ['garbage in the header', { bearer: user, header: 'garbage', tokens: [experiment] }, '403 token_invalid'],
  ...[
    ['an expired token', expiredUser, '403 token_expired'] as const,
    ['a token of another issuer', wrongIssuer, '403 token_invalid'] as const,
    ['a token for another audience', wrongAudience, '403 token_invalid'] as const,
    ['a token by another key', wrongKey, '403 token_invalid'] as const,
  ].map(([title, token, due]): [string, Placement, string] => [
    `${title} in tokens`,
    { bearer: user, header: experiment, tokens: [token] },
    due,
  ]),
  [
    `${MAX_TOKENS} tokens`,
    { bearer: user, header: experiment, tokens: Array.from({ length: MAX_TOKENS }, () => user) },
    'ok',
  ],
  [
    `${MAX_TOKENS + 1} tokens`,
    { bearer: user, header: experiment, tokens: Array.from({ length: MAX_TOKENS + 1 }, () => user) },
    '422 tokens_invalid',
  ],
];

function headersOf({ bearer, header }: Placement): Record<string, string> {
  return {
    authorization: `Bearer ${bearer}`,
    ...(header === undefined ? {} : { [EXPERIMENT_TOKEN_HEADER]: header }),
  };
}

describe.each(['POST', 'PUT'])('where the tokens of a %s stand', (method) => {
  test.each(PLACEMENTS)('%s: %3$s', async (_, placement, expected) => {
    const caller = service.with(headersOf(placement));
    const { tokens = [] } = placement;
    const before = service.rows();
    const reply =
      method === 'POST'
        ? await caller.book(booking({ tokens }))
        : await caller.update(reservation, { bandwidth: '1000', tokens });
    expect(outcome(reply)).toBe(expected === 'ok' ? { POST: '201', PUT: '200' }[method] : expected);
    if (expected !== 'ok') expect(service.rows()).toEqual(before);
  });
});

/** The same for a request without a body: an experiment token in `Authorization` names the user where no user token does. */
const BODYLESS: [title: string, placement: Placement, expected: string][] = [
  ['user alone', { bearer: user }, '403 token_missing'],
  ['user, project in the header', { bearer: user, header: project }, '403 token_missing'],
  ['user, experiment in the header', { bearer: user, header: experiment }, 'ok'],
  ['project alone', { bearer: project }, '403 token_missing'],
  ['project, experiment in the header', { bearer: project, header: experiment }, '403 token_missing'],
  ['experiment alone', { bearer: experiment }, 'ok'],
  ['experiment, user in the header', { bearer: experiment, header: user }, 'ok'],
  ['two experiments', { bearer: experiment, header: secondExperiment }, '400 experiment_tokens_differ'],
  ['garbage in the header', { bearer: user, header: 'garbage' }, '403 token_invalid'],
  ['a connectivity token', { bearer: connectivity, header: experiment }, '403 token_invalid'],
];

describe.each(['GET list', 'DELETE'])(
  'a project token never stands in for the user token of a %s (THREATS.md 87)',
  (method) => {
    test.each(BODYLESS)('%s: %3$s', async (_, placement, expected) => {
      const id = reservationIn(await lead.book()).id;
      const caller = service.with(headersOf(placement));
      const before = service.rows();
      const send = {
        'GET list': () => caller.list(),
        DELETE: () => caller.delete(id),
      };
      const reply = await send[method as keyof typeof send]();
      expect(outcome(reply)).toBe(expected === 'ok' ? (method === 'DELETE' ? '204' : '200') : expected);
      if (expected !== 'ok') expect(service.rows()).toEqual(before);
    });
  },
);

/** Every way to place these three tokens in a request with a body: 3 times 4 times 8. */
const THREE = { user, project, experiment };
const NAMES = ['user', 'project', 'experiment'] as const;
const EVERY_PLACEMENT = NAMES.flatMap((bearer) =>
  [undefined, ...NAMES].flatMap((header) =>
    [...Array(8).keys()].map((bits) => ({
      ...{ bearer, header },
      tokens: NAMES.filter((_, index) => bits & (1 << index)),
    })),
  ),
);

test.each(['POST', 'PUT'])(
  'a %s needs a user and an experiment token, wherever they stand',
  async (method) => {
    for (const placement of EVERY_PLACEMENT) {
      const { bearer, header, tokens: names } = placement;
      const given = new Set([bearer, header, ...names]);
      const tokens = names.map((name) => THREE[name]);
      const caller = service.with(
        headersOf({ bearer: THREE[bearer], ...(header ? { header: THREE[header] } : {}) }),
      );
      const reply =
        method === 'POST'
          ? await caller.book(booking({ tokens }), 'dry_run=true')
          : await caller.update(reservation, { bandwidth: '1', tokens }, 'dry_run=true');
      const due = given.has('user') && given.has('experiment') ? '2' : '403 token_missing';
      expect(outcome(reply).slice(0, due.length), JSON.stringify(placement)).toBe(due);
    }
  },
);

test('an experiment token ends before its user token: 403 token_expired', async () => {
  const { service: later, lead: caller } = await openWithLead();
  later.moveTo(15 * MINUTE - 1);
  expect(outcome(await caller.list())).toBe('200');
  later.moveTo(15 * MINUTE);
  const refused = await caller.list();
  expect(outcome(refused)).toBe('403 token_expired');
  const expires_at = new Date(NOW + 15 * MINUTE).toISOString();
  expect(problemIn(refused).detail[0]?.facts).toEqual({ token: 'experiment', expires_at });
  expect(outcome(await caller.book())).toBe('403 token_expired');
});
