import { expect, test } from 'vitest';
import { type Action, may, ROLES, readRole, WHO_MAY } from '../../src/contract/roles.ts';

/** contract/README.md, "Authentication" 2 and 3; contract/README.md, "Who may". */
const TABLE: Record<Action, string[]> = {
  create: ['lead'],
  read: ['lead', 'admin', 'viewer'],
  list: ['lead', 'admin', 'viewer'],
  update: ['lead', 'admin'],
  delete: ['lead', 'admin'],
  'create-experiment': ['lead', 'admin'],
  'ci-rules': ['lead'],
};
const ACTIONS = Object.keys(TABLE) as Action[];
const allowed = (action: Action, roles: readonly string[]) => roles.filter((role) => may(role, action));

test('row 35: roles and actions equal the table', () => {
  expect(ROLES).toEqual(['lead', 'admin', 'member', 'viewer']);
  expect(Object.keys(WHO_MAY).sort()).toEqual([...ACTIONS].sort());
});

test.each(ACTIONS)('row 35: %s is for the roles of the table, in any case, and for no others', (action) => {
  expect(allowed(action, ROLES)).toEqual(TABLE[action]);
  const capitals = ROLES.map((role) => role.toUpperCase());
  expect(allowed(action, capitals)).toEqual(TABLE[action].map((role) => role.toUpperCase()));
  const leaders = ['leader', 'Leader', 'LEADER'];
  expect([allowed(action, leaders), leaders.map(readRole)]).toEqual([leaders, ['lead', 'lead', 'lead']]);
  const unknown = ['', 'owner', 'leaders', 'leader ', 'lead ', ' lead', 'lead,admin', 'lead\0', 'İead', '*'];
  expect(allowed(action, [...unknown, 'constructor', '__proto__'])).toEqual([]);
});
