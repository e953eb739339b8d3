import { EXPERIMENT_TOKEN_HEADER, EXPERIMENTS_API_GROUP, PROJECTS_API_GROUP } from '../../contract/routes.ts';

/** The name of the profile for the built-in server inside this process. */
export const OFFLINE = 'offline';
/** `{base_url}` of the built-in server; never fetched. */
export const OFFLINE_URL = 'http://offline.localhost';

/** A key of a profile. Its schema is in `profile.ts`, since help lists the keys and loads no schema. */
export interface KeyDeclaration {
  /** One line of help. */
  about: string;
  /** The environment variables that override the profile; the first that is set counts. */
  variables?: readonly string[];
  default?: string | boolean;
  /** Whether the profile of the built-in server takes it too. */
  offline?: true;
}

/** Every key of a profile, in the order in which they are shown (cli/README.md, "Files"). */
export const PROFILE_KEYS = {
  baseUrl: {
    about: 'address of the connectivity service',
    variables: ['SLICES_CONN_BASE_URL'],
  },
  portalUrl: {
    about: 'address of the portal',
    variables: ['SLICES_CONN_PORTAL_URL'],
  },
  authUrl: {
    about: 'address of the identity provider',
    variables: ['SLICES_CONN_AUTH_URL'],
  },
  clientId: {
    about: 'what this program is called at the identity provider',
    variables: ['SLICES_CONN_CLIENT_ID'],
    default: 'slices-conn',
  },
  scope: {
    about: 'what a login asks for, words separated by spaces',
    default: 'openid offline_access userinfo projects sessions',
  },
  audience: {
    about: 'address of the service that a login asks a token for (RFC 8707), where the provider needs it',
  },
  issuer: {
    about: 'what the identity provider calls itself, where that is not authUrl; it gets codes and tokens too',
  },
  apiGroups: {
    about: "names of the portal's APIs of projects and of experiments, with a comma between them",
    default: `${PROJECTS_API_GROUP},${EXPERIMENTS_API_GROUP}`,
  },
  experimentTokenHeader: {
    about: 'HTTP header that carries the experiment token',
    variables: ['SLICES_CONN_EXPERIMENT_TOKEN_HEADER'],
    default: EXPERIMENT_TOKEN_HEADER,
  },
  tokenPlacement: {
    about: 'whose token is in Authorization: user, or experiment',
    variables: ['SLICES_CONN_TOKEN_PLACEMENT'],
    default: 'user',
  },
  userTokenCommand: {
    about: 'command that prints a user token, as a JSON array',
  },
  experimentTokenCommand: {
    about: 'command that prints an experiment token, as a JSON array',
  },
  caFile: {
    about: 'PEM file of certificates to trust besides the usual ones',
  },
  insecure: {
    about: 'true: plain http may leave this machine, unprotected; https certificates are still checked',
    default: false,
  },
  project: {
    about: 'project to act in, by id or name',
    variables: ['SLICES_CONN_PROJECT'],
    offline: true,
  },
  experiment: {
    about: 'experiment to act in, by id or name',
    variables: ['SLICES_CONN_EXPERIMENT', 'SLICES_EXPERIMENT'],
    offline: true,
  },
  tz: {
    about:
      'time zone in which times are read and printed, such as Europe/Brussels; else TZ, else the system’s',
    offline: true,
  },
} as const satisfies Record<string, KeyDeclaration>;

/** The variables that override the parts of `apiGroups`, in their order. */
export const GROUP_VARIABLES = [
  'SLICES_CONN_PROJECTS_API_GROUP',
  'SLICES_CONN_EXPERIMENTS_API_GROUP',
] as const;

/** The name of a key; see {@link PROFILE_KEYS}. */
export type ProfileKey = keyof typeof PROFILE_KEYS;

/** The names of all keys, in their order. */
export const KEY_NAMES = Object.keys(PROFILE_KEYS) as readonly ProfileKey[];

/** Whether a text names a key. */
export function isProfileKey(name: string): name is ProfileKey {
  return Object.hasOwn(PROFILE_KEYS, name);
}
