import { EXPERIMENT_TOKEN_HEADER, EXPERIMENTS_API_GROUP, PROJECTS_API_GROUP } from '../../contract/routes.ts';

/** The kinds of values that a key of a profile may take; `profile-values.ts` has a schema for each. */
export type KeyKind =
  | 'address'
  | 'client'
  | 'scope'
  | 'group'
  | 'header'
  | 'placement'
  | 'command'
  | 'file'
  | 'switch'
  | 'name';

/** What a key of a profile is declared by. Free of schemas, since help lists the keys and loads nothing else. */
export interface KeyDeclaration {
  /** What kind of value it takes, as a schema and as text. */
  kind: KeyKind;
  /** One line of help. */
  about: string;
  /** The environment variables that go before the profile; the first that is set counts. */
  variables?: readonly string[];
  default?: string | boolean;
  /** Without it a profile names no services: there is no default, since nothing guesses a host that gets tokens. */
  needed?: true;
  /** Whether the profile of the built-in server takes it too. */
  offline?: true;
}

/** Every key of a profile, in the order in which they are shown (CLI.md, "Files"). */
export const PROFILE_KEYS = {
  baseUrl: {
    kind: 'address',
    about: 'address of the connectivity service',
    variables: ['SLICES_CONN_BASE_URL'],
    needed: true,
  },
  portalUrl: {
    kind: 'address',
    about: 'address of the portal',
    variables: ['SLICES_CONN_PORTAL_URL'],
    needed: true,
  },
  authUrl: {
    kind: 'address',
    about: 'address of the identity provider',
    variables: ['SLICES_CONN_AUTH_URL'],
    needed: true,
  },
  clientId: {
    kind: 'client',
    about: 'what this program is called at the identity provider',
    variables: ['SLICES_CONN_CLIENT_ID'],
    default: 'slices-conn',
  },
  scope: {
    kind: 'scope',
    about: 'what a login asks for, words separated by spaces',
    default: 'openid offline_access userinfo projects',
  },
  projectsApiGroup: {
    kind: 'group',
    about: "name of the portal's API of projects",
    variables: ['SLICES_CONN_PROJECTS_API_GROUP'],
    default: PROJECTS_API_GROUP,
  },
  experimentsApiGroup: {
    kind: 'group',
    about: "name of the portal's API of experiments",
    variables: ['SLICES_CONN_EXPERIMENTS_API_GROUP'],
    default: EXPERIMENTS_API_GROUP,
  },
  experimentTokenHeader: {
    kind: 'header',
    about: 'HTTP header that carries the experiment token',
    default: EXPERIMENT_TOKEN_HEADER,
  },
  tokenPlacement: {
    kind: 'placement',
    about: 'whose token is in Authorization: user, or experiment',
    default: 'user',
  },
  userTokenCommand: {
    kind: 'command',
    about: 'command that prints a user token, as a JSON array',
  },
  experimentTokenCommand: {
    kind: 'command',
    about: 'command that prints an experiment token, likewise',
  },
  caFile: {
    kind: 'file',
    about: 'PEM file of certificates to trust besides the usual',
  },
  insecure: {
    kind: 'switch',
    about:
      'true: plain http may leave this machine, unprotected; https certificates are checked all the same',
    default: false,
  },
  project: {
    kind: 'name',
    about: 'project to act in, by id or name',
    variables: ['SLICES_CONN_PROJECT'],
    offline: true,
  },
  experiment: {
    kind: 'name',
    about: 'experiment to act in, by id or name',
    variables: ['SLICES_CONN_EXPERIMENT', 'SLICES_EXPERIMENT'],
    offline: true,
  },
} as const satisfies Record<string, KeyDeclaration>;

/** The name of a key; see {@link PROFILE_KEYS}. */
export type ProfileKey = keyof typeof PROFILE_KEYS;

/** The names of all keys, in their order. */
export const KEY_NAMES = Object.keys(PROFILE_KEYS) as readonly ProfileKey[];

/** Whether a text names a key. */
export function isProfileKey(name: string): name is ProfileKey {
  return Object.hasOwn(PROFILE_KEYS, name);
}
