import { expect, test } from 'vitest';
import { type Action, may, ROLES, type Role, readRole, WHO_MAY } from '../../src/contract/roles.ts';

/** contract/README.md, "Authentication" 2 and 3; contract/README.md, "Who may". */
const TABLE: Record<Action, Record<Role, boolean>> = {
  create: { lead: true, admin: false, member: false, viewer: false },
  read: { lead: true, admin: true, member: false, viewer: true },
  list: { lead: true, admin: true, member: false, viewer: true },
  update: { lead: true, admin: true, member: false, viewer: false },
  delete: { lead: true, admin: true, member: false, viewer: false },
  'create-experiment': { lead: true, admin: true, member: false, viewer: false },
  'ci-rules': { lead: true, admin: false, member: false, viewer: false },
};
const ACTIONS = Object.keys(TABLE) as Action[];

test('row 35: roles and actions equal the table', () => {
  expect(ROLES).toEqual(['lead', 'admin', 'member', 'viewer']);
  expect(Object.keys(WHO_MAY).sort()).toEqual([...ACTIONS].sort());
});

test.each(ROLES.flatMap((role) => ACTIONS.map((action) => ({ role, action, due: TABLE[action][role] }))))(
  'row 35: $role, $action: $due',
  ({ role, action, due }) => {
    expect(may(role, action)).toBe(due);
    expect(may(role.toUpperCase(), action)).toBe(due);
    expect((WHO_MAY[action] as readonly string[]).includes(role)).toBe(due);
  },
);

test.each(['leader', 'Leader', 'LEADER'])('%s counts as lead', (role) => {
  expect(readRole(role)).toBe('lead');
  for (const action of ACTIONS) expect(may(role, action)).toBe(TABLE[action].lead);
});

test.each([
  '',
  'owner',
  'leaders',
  'leader ',
  'lead ',
  ' lead',
  'lead,admin',
  'lead\0',
  'constructor',
  '__proto__',
  'İead',
  '*',
])('row 35: an unknown role may do nothing: %j', (role) => {
  for (const action of ACTIONS) expect(may(role, action)).toBe(false);
});
