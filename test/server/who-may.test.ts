import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROLES, type Role } from '../../src/contract/roles.ts';
import { authorise } from '../../src/server/credentials.ts';
import { userClaims } from '../../src/server/identity/user-token.ts';
import {
  addressOf,
  at,
  booking,
  type Caller,
  EXPERIMENTS,
  HOUR,
  LINKS,
  MINUTE,
  openService,
  openWithLead,
  outcome,
  PROJECTS,
  problemIn,
  type Reply,
  reservationIn,
  type TestService,
} from '../fixtures/service.ts';

/** All requests of a person. `id` is a reservation's. */
const ACTIONS: Record<string, (caller: Caller, id: string, service: TestService) => Promise<Reply>> = {
  create: (caller) => caller.book(),
  'create, dry run': (caller) => caller.book(booking(), 'dry_run=true'),
  read: (caller, id) => caller.read(id),
  list: (caller) => caller.list(),
  update: (caller, id) => caller.update(id, { bandwidth: '2', tokens: [] }),
  'update, dry run': (caller, id) => caller.update(id, { bandwidth: '3', tokens: [] }, 'dry_run=true'),
  delete: (caller, id) => caller.delete(id),
  'list the links': (caller) => caller.send('GET', LINKS),
  'create an experiment': (caller, id, { project }) =>
    caller.send('POST', EXPERIMENTS, {
      body: { name: id.replace(/.*_/, ''), project_id: project, expires_at: at(24 * HOUR) },
    }),
};

const ROLE = '403 role_not_allowed';
const OTHER = '403 wrong_experiment';
const EXPIRED = '422 experiment_expired Date';
const ENDED = '422 reservation_ended Date';

/** contract/README.md, "Authentication" 2 and 3; contract/README.md, "Who may". The columns are lead, admin, member, viewer. */
const TABLE: Record<string, Record<string, readonly [string, string, string, string]>> = {
  'its own experiment': {
    create: ['201', ROLE, ROLE, ROLE],
    'create, dry run': ['200', ROLE, ROLE, ROLE],
    read: ['200', '200', ROLE, '200'],
    list: ['200', '200', ROLE, '200'],
    update: ['200', '200', ROLE, ROLE],
    'update, dry run': ['200', '200', ROLE, ROLE],
    delete: ['204', '204', ROLE, ROLE],
    'list the links': ['200', '200', '200', '200'],
    'create an experiment': ['201', '201', ROLE, ROLE],
  },
  // The token is valid with the same role, but the reservation belongs to another experiment.
  'another experiment': {
    read: [OTHER, OTHER, ROLE, OTHER],
    update: [OTHER, OTHER, ROLE, ROLE],
    'update, dry run': [OTHER, OTHER, ROLE, ROLE],
    delete: [OTHER, OTHER, ROLE, ROLE],
  },
  // The token is still valid after the experiment's end. Its reservations have ended too and stay readable.
  'an expired experiment': {
    create: [EXPIRED, ROLE, ROLE, ROLE],
    read: ['200', '200', ROLE, '200'],
    list: ['200', '200', ROLE, '200'],
    update: [ENDED, ENDED, ROLE, ROLE],
    delete: ['204', '204', ROLE, ROLE],
    'list the links': ['200', '200', '200', '200'],
    'create an experiment': ['201', '201', ROLE, ROLE],
  },
};

const ROWS = Object.entries(TABLE).flatMap(([place, actions]) =>
  Object.entries(actions).flatMap(([action, expected]) =>
    ROLES.map((role, column) => ({ place, action, role, expected: expected[column] ?? '' })),
  ),
);

/** Every role's caller in an experiment, and reservations of `booked`, made by its lead in the next minutes. */
async function stage(acting: string, booked: string, service: TestService) {
  const callers = new Map<Role, Caller>();
  for (const role of ROLES) callers.set(role, await service.as(role, acting));
  const lead = await service.as('lead', booked);
  const reservations: string[] = [];
  for (let made = 0; made < ROLES.length * Object.keys(ACTIONS).length; made += 1) {
    const body = booking({ bandwidth: '1', start_date: at(30 * MINUTE), end_date: at(45 * MINUTE) });
    reservations.push(reservationIn(await lead.book(body)).id);
  }
  /** A reservation that no other row touches. */
  const nextReservation = (): string => {
    const id = reservations.pop();
    if (id === undefined) throw new Error('every reservation is used');
    return id;
  };
  return { service, callers, nextReservation };
}

/** The place of a row: the caller's experiment, and the reservation's. */
const stages = new Map<string, Awaited<ReturnType<typeof stage>>>();

beforeAll(async () => {
  const own = await openService();
  stages.set('its own experiment', await stage(own.experiment, own.experiment, own));

  const two = await openService();
  const second = await two.newExperiment('second');
  two.enrol(second);
  stages.set('another experiment', await stage(second, two.experiment, two));

  // The experiment lasts 1 h. Tokens from 10 min before its end expire 5 min after it.
  const ending = await openService();
  const brief = await ending.newExperiment('brief', HOUR);
  ending.enrol(brief);
  const staged = await stage(brief, brief, ending);
  ending.moveTo(50 * MINUTE);
  for (const role of ROLES) staged.callers.set(role, await ending.as(role, brief));
  ending.moveTo(HOUR);
  stages.set('an expired experiment', staged);
});

test.each(ROWS)('row 35: $role, $action, in $place: $expected', async ({ place, action, role, expected }) => {
  const found = stages.get(place);
  const caller = found?.callers.get(role);
  const act = ACTIONS[action];
  if (!found || !caller || !act) throw new Error('the table names what is not there');
  const before = found.service.rows();
  const reply = await act(caller, found.nextReservation(), found.service);
  expect(outcome(reply)).toBe(expected);
  if (!expected.startsWith('2')) expect(found.service.rows()).toEqual(before);
});

/** All actions that need an experiment token: those about reservations. */
const WITH_EXPERIMENT = ['create', 'create, dry run', 'read', 'list', 'update', 'update, dry run', 'delete'];

async function attempt(action: string, caller: Caller, id: string, service: TestService): Promise<string> {
  const reply = await ACTIONS[action]?.(caller, id, service);
  if (!reply) throw new Error(`there is no action ${action}`);
  return outcome(reply);
}

test.each(WITH_EXPERIMENT)('row 35: the tokens of two people: %s: 403', async (action) => {
  const { service, lead } = await openWithLead();
  const { id } = reservationIn(await lead.book());
  const before = service.rows();
  const ofAdmin = await service.userToken('admin');
  const mixed = service.with({ ...lead.headers, authorization: `Bearer ${ofAdmin}` });
  expect(await attempt(action, mixed, id, service)).toBe('403 token_invalid');
  for (const reply of [
    await lead.book(booking({ tokens: [ofAdmin] })),
    await lead.update(id, { tokens: [ofAdmin] }),
  ]) {
    expect(outcome(reply)).toBe('403 token_invalid');
  }
  expect(service.rows()).toEqual(before);
});

describe('row 35: a user without a project', async () => {
  const service = await openService();
  const reservation = reservationIn(await (await service.as('lead')).book()).id;
  const stranger = { id: 'user_offline.localhost_01jd3x0m2sf0vrv9mhb1wk6x4q', name: 'stranger' };
  const { identity } = await service.issuers();
  const token = await identity.issue(userClaims(stranger, { audience: service.base, login: service.now() }));
  const caller = service.with({ authorization: `Bearer ${token}` });

  test('lists the links, has no projects and experiments, gets no token and creates no experiment', async () => {
    const of = async (method: string, address: string) => outcome(await caller.send(method, address));
    expect(await of('GET', LINKS)).toBe('200');
    expect(await of('GET', `${EXPERIMENTS}${service.experiment}`)).toBe('403 wrong_experiment');
    expect(await of('GET', `${PROJECTS}${service.project}`)).toBe('403 wrong_project');
    expect((await caller.send('GET', PROJECTS)).body).toEqual({ projects: [] });
    expect((await caller.send('GET', EXPERIMENTS)).body).toEqual({ experiments: [] });
    expect(await attempt('create an experiment', caller, reservation, service)).toBe('403 wrong_project');
  });
});

describe('row 171: who could do what a role refuses', async () => {
  const service = await openService();
  const others = new DatabaseSync(service.file);
  afterAll(() => others.close());
  const lead = (name: string, scope: string): void => {
    others.prepare('INSERT INTO person (id, name) VALUES (?, ?)').run(`user_localhost_${name}`, name);
    others
      .prepare("INSERT INTO membership (person, scope, role) VALUES (?, ?, 'lead')")
      .run(`user_localhost_${name}`, scope);
  };
  const refusals = (reply: Reply): string[] => problemIn(reply).detail.map(({ msg }) => msg);
  const NEEDS = 'Your role in experiment demo is viewer; this needs lead.';

  test('is named to a member: the lead, the leads, and of many the first', async () => {
    const viewer = await service.as('viewer');
    expect(refusals(await viewer.book())).toEqual([`${NEEDS} Its lead is the user lead.`]);
    lead('anna', service.experiment);
    // A lead of another experiment, and of the project, does not lead this one.
    lead('zoe', service.idOf('experiment', 'other'));
    lead('ben', service.project);
    expect(refusals(await viewer.book())).toEqual([`${NEEDS} Its leads are the users anna and lead.`]);
    for (const name of ['m1', 'm2', 'm3', 'm4', 'm5']) lead(name, service.experiment);
    expect(refusals(await viewer.book())).toEqual([
      `${NEEDS} Its leads are the users anna, lead, m1, m2, m3 and others.`,
    ]);
  });

  test('also for what needs lead or admin, for each item of a batch, in a project and for rules of CI jobs', async () => {
    const viewer = await service.as('viewer');
    const named =
      /; this needs (?:lead|lead or admin|lead, admin or viewer)\. Its leads are the users .*\blead\b/;
    const id = 'con_127.0.0.1_01jd3x0m2sf0vrv9mhb1wk6x4q';
    const items = [
      { action: 'delete', id },
      { action: 'create', reservation: booking() },
    ];
    const batch = await viewer.send('POST', addressOf('batchReservations'), { body: { items, tokens: [] } });
    const project = { name: 'one', project_id: service.project, expires_at: at(24 * HOUR) };
    const replies = {
      update: await viewer.update(id, { tokens: [] }),
      delete: await viewer.delete(id),
      read: await (await service.as('member')).read(id),
      batch,
      project: await viewer.send('POST', EXPERIMENTS, { body: project }),
      rules: await viewer.send('GET', addressOf('listCiRules', service.experiment)),
    };
    for (const [what, reply] of Object.entries(replies)) {
      expect(refusals(reply), what).not.toEqual([]);
      for (const said of refusals(reply)) expect(said, what).toMatch(named);
    }
    expect(refusals(batch)).toHaveLength(2);
    expect(refusals(replies.project)[0]).toContain('Its leads are the users ben and lead.');
  });

  test('is not named to who is a member no more, nor to a stranger', async () => {
    const viewer = await service.as('viewer');
    others.prepare("DELETE FROM membership WHERE role = 'viewer'").run();
    expect(refusals(await viewer.book())).toEqual([NEEDS]);
    const elsewhere = addressOf('listCiRules', service.idOf('experiment', 'other'));
    for (const caller of [viewer, await service.as('admin')]) {
      const stranger = await caller.send('GET', elsewhere);
      expect(outcome(stranger)).toBe('403 wrong_experiment');
      expect(stranger.text).not.toContain('zoe');
    }
  });

  test('is not named to a CI job, whose log may be public', async () => {
    const trust = { leadsOf: async () => ['anna'] };
    const experiment = { id: service.experiment, name: 'demo', tenant: '', role: 'viewer', expiry: 0 };
    const refused = (isLimited: boolean): Promise<unknown> =>
      authorise({ user: 'user_1', name: 'job', experiment, isLimited, expiry: 0 }, 'create', trust);
    await expect(refused(false)).rejects.toThrow(`${NEEDS} Its lead is the user anna.`);
    await expect(refused(true)).rejects.toThrow(new RegExp(`${NEEDS}$`));
  });
});
