/** The roles within a project or an experiment, strongest first (contract/README.md, "Project token"). */
export const ROLES = ['lead', 'admin', 'member', 'viewer'] as const;
/** One of {@link ROLES}. */
export type Role = (typeof ROLES)[number];

/**
 * Who may do what with an experiment's reservations, by the role in the experiment token's `act.role`; creating an
 * experiment goes by the role in the project, its rules for CI jobs by the role in it (contract/README.md, "Authentication" 2 and 3; contract/README.md, "Who may").
 *
 * | action | lead | admin | member | viewer |
 * |---|---|---|---|---|
 * | create | yes | | | |
 * | read, list | yes | yes | | yes |
 * | update, delete | yes | yes | | |
 * | create-experiment | yes | yes | | |
 * | ci-rules | yes | | | |
 */
export const WHO_MAY = {
  create: ['lead'],
  read: ['lead', 'admin', 'viewer'],
  list: ['lead', 'admin', 'viewer'],
  update: ['lead', 'admin'],
  delete: ['lead', 'admin'],
  'create-experiment': ['lead', 'admin'],
  'ci-rules': ['lead'],
} as const satisfies Record<string, readonly Role[]>;
/** Something that a role allows; see {@link WHO_MAY}. */
export type Action = keyof typeof WHO_MAY;

/** Whether `role`, as a token or a record has it, allows `action`; see {@link readRole}. */
export function may(role: string, action: Action): boolean {
  return (WHO_MAY[action] as readonly (string | undefined)[]).includes(readRole(role));
}

/**
 * The role that a token or a record means; undefined for a role that is not known here. The spec writes roles in
 * capitals in places and calls the lead "Leader" (contract/README.md, "Authentication" 2 and 3).
 *
 * | text | role |
 * |---|---|
 * | `lead`, `LEAD` | lead |
 * | `leader`, `Leader` | lead |
 * | `owner` | undefined |
 */
export function readRole(text: string): Role | undefined {
  const plain = text.toLowerCase();
  return plain === 'leader' ? 'lead' : ROLES.find((role) => role === plain);
}

/**
 * The scopes of a user token that open something (contract/README.md, "The reference server").
 *
 * | scope | opens |
 * |---|---|
 * | projects | projects, experiments and reservations |
 * | sessions | the user's logins, and all that lets somebody else act as the user |
 */
export const SCOPES = ['projects', 'sessions'] as const;
/** One of {@link SCOPES}. */
export type Scope = (typeof SCOPES)[number];
