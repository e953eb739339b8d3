import { isAbsolute } from 'node:path';
import * as v from 'valibot';
import { isProtected, isServiceAddress, LOCAL_URL, UNPROTECTED } from '../../contract/addresses.ts';
import { Failure, shellWord } from '../../contract/failure.ts';
import { isTimeZone, zoneName } from '../../contract/instants.ts';
import { isObject, readJson } from '../../contract/json.ts';
import { API_GROUP, EXPERIMENTS_API_GROUP, PROJECTS_API_GROUP } from '../../contract/routes.ts';
import type { Variables } from './folders.ts';
import {
  GROUP_VARIABLES,
  KEY_NAMES,
  type KeyDeclaration,
  OFFLINE,
  OFFLINE_URL,
  PROFILE_KEYS,
  type ProfileKey,
} from './profile-keys.ts';

/** The longest value, in characters. */
const MAX_LENGTH = 4096;
/** The most words of a command. */
const MAX_WORDS = 64;

/** A text that people can read. A token would be a secret, and the file promises to hold none. */
const text = (message: string) =>
  v.pipe(
    v.string(message),
    v.minLength(1, message),
    v.maxLength(MAX_LENGTH, `It is longer than ${MAX_LENGTH} characters.`),
    v.check((found) => !/\p{Cc}/u.test(found), 'It contains control characters.'),
    v.check(
      (found) => !/\beyJ[\w-]+\.[\w-]+\./.test(found),
      'It contains a token. A profile must not contain secrets.',
    ),
  );
const patterned = (pattern: RegExp, message: string) => v.pipe(text(message), v.regex(pattern, message));

const ADDRESS = 'It must be an https:// or http:// address, without user, password, query or fragment.';
const AUDIENCE = 'It must be an absolute URI without a fragment, such as https://conn.example.org.';
const HEADER =
  'It must be the name of an HTTP header without another purpose, such as Slices-Experiment-Token.';
const GROUPS = `It must be two names with a comma between them, such as projects,experiments. ${API_GROUP.problem}`;
const COMMAND = 'It must be a JSON array of texts, such as ["slices","experiment","jwt","{experiment}"].';
const ZONE = 'It must be a time zone, such as Europe/Brussels.';
const FILE = 'It must be an absolute path, since commands are run in any folder.';

/** The name of a header (RFC 9110 §5.1), but not of one that has a meaning already, for the service or for a proxy on the way to it. */
const FREE_HEADER =
  /^(?!(?:accept|(?:proxy-)?authorization|connection|content-(?:length|type)|cookie|expect|host|idempotency-key|keep-alive|te|trailer|transfer-encoding|upgrade)$)[\w!#$%&'*+.^`|~-]+$/i;

const address = v.exactOptional(v.pipe(text(ADDRESS), v.check(isServiceAddress, ADDRESS)));
const groups = v.exactOptional(
  v.pipe(
    text(GROUPS),
    v.check((names) => {
      const found = names.split(',');
      return found.length === 2 && found.every((name) => API_GROUP.pattern.test(name));
    }, GROUPS),
  ),
);
const command = v.exactOptional(
  v.pipe(
    v.array(text(COMMAND), COMMAND),
    v.minLength(1, COMMAND),
    v.maxLength(MAX_WORDS, `It is longer than ${MAX_WORDS} words.`),
    v.readonly(),
  ),
);
// RFC 6749 A.1 allows spaces too, but the files of logins end the id at a space.
const clientId = v.exactOptional(patterned(/^[\x21-\x7e]+$/, 'It must be ASCII characters without spaces.'));
const name = v.exactOptional(text('It must be an id or a name.'));

/** A profile in `config.json`: any of the keys. Keys that a later version adds are kept. */
export const Settings = v.looseObject({
  baseUrl: address,
  portalUrl: address,
  authUrl: address,
  clientId,
  // RFC 6749 §3.3.
  scope: v.exactOptional(
    patterned(
      /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/,
      'It must be words separated by single spaces.',
    ),
  ),
  // RFC 8707 §2: an absolute URI without a fragment.
  audience: v.exactOptional(
    v.pipe(
      patterned(/^[^\s#]+$/, AUDIENCE),
      v.check((uri) => URL.canParse(uri), AUDIENCE),
    ),
  ),
  issuer: address,
  apiGroups: groups,
  experimentTokenHeader: v.exactOptional(patterned(FREE_HEADER, HEADER)),
  tokenPlacement: v.exactOptional(v.picklist(['user', 'experiment'], 'It must be user or experiment.')),
  userTokenCommand: command,
  experimentTokenCommand: command,
  caFile: v.exactOptional(v.pipe(text(FILE), v.check(isAbsolute, FILE))),
  insecure: v.exactOptional(v.boolean('It must be true or false.')),
  project: name,
  experiment: name,
  tz: v.exactOptional(v.pipe(text(ZONE), v.check(isTimeZone, ZONE))),
  // The names of the chosen project and experiment, by id (cli/README.md, "Files"). Not a key that people
  // set.
  chosenNames: v.exactOptional(v.record(v.string(), v.string())),
});
/** See {@link Settings}. */
export type Settings = v.InferOutput<typeof Settings>;

/** {@link Settings} as they stand in `config.json`, where the API groups may still have a key each. */
export const KeptSettings = v.pipe(
  v.custom<Record<string, unknown>>(isObject, 'it is not an object'),
  v.transform(({ projectsApiGroup, experimentsApiGroup, ...own }) => {
    if (projectsApiGroup === undefined && experimentsApiGroup === undefined) return own;
    const groups = [projectsApiGroup ?? PROJECTS_API_GROUP, experimentsApiGroup ?? EXPERIMENTS_API_GROUP];
    // A value that is not a text stays in the array, so that `Settings` refuses it.
    return { apiGroups: groups.every((group) => typeof group === 'string') ? groups.join() : groups, ...own };
  }),
  Settings,
);

/** The addresses of a profile. They have no default, since a guessed host would receive tokens. */
export const ADDRESSES = ['baseUrl', 'portalUrl', 'authUrl'] as const satisfies readonly ProfileKey[];

/**
 * The values of a profile that can be used: keys with a default always have a value. Portal and identity provider are
 * needed only where tokens come from them.
 */
export const ProfileValues = v.required(v.object(Settings.entries), [
  'baseUrl',
  'clientId',
  'scope',
  'apiGroups',
  'experimentTokenHeader',
  'tokenPlacement',
  'insecure',
]);
/** See {@link ProfileValues}. */
export type ProfileValues = v.InferOutput<typeof ProfileValues>;

/**
 * Turns typed text into the value of a key: an address without slashes at its end, JSON, true or false.
 *
 * @returns the text as it is where it can't be read; {@link valueFault} says why
 */
export function readValue(key: ProfileKey, typed: string): unknown {
  if (typed.length > MAX_LENGTH) return typed;
  switch (key) {
    case 'baseUrl':
    case 'portalUrl':
    case 'authUrl':
    case 'issuer':
      return isServiceAddress(typed) ? new URL(typed).href.replace(/\/+$/, '') : typed;
    case 'userTokenCommand':
    case 'experimentTokenCommand': {
      const reading = readJson(typed);
      return reading.ok ? reading.value : typed;
    }
    case 'tz':
      return zoneName(typed) ?? typed;
    case 'insecure':
      return typed === 'true' || typed === 'false' ? typed === 'true' : typed;
    default:
      return typed;
  }
}

/**
 * The reason why a value is not valid for a key; undefined for a valid one.
 *
 * @returns a sentence that does not repeat the value, since it may hold a secret
 */
export function valueFault(key: ProfileKey, value: unknown): string | undefined {
  const result = v.safeParse(Settings.entries[key].wrapped, value, { abortPipeEarly: true });
  return result.success ? undefined : result.issues[0].message;
}

/** Where a value comes from; each overrides the ones after it (cli/README.md, "Global flags"). */
type Source = 'environment' | 'file' | 'built-in' | 'default';

/** A key's value, undefined where nothing gives one, and where it comes from. */
export interface ProfileEntry {
  value: unknown;
  source: Source;
  /** The environment variable that it comes from. */
  variable?: string;
}

/** A profile with its keys, complete or not. */
export interface ProfileView {
  name: string;
  entries: Readonly<Record<ProfileKey, ProfileEntry>>;
}

/** The built-in profiles. `slices` has no addresses, since a guessed host would receive tokens. */
export const BUILT_IN: Readonly<Record<string, Settings>> = {
  local: { baseUrl: LOCAL_URL, portalUrl: `${LOCAL_URL}/portal`, authUrl: `${LOCAL_URL}/auth` },
  [OFFLINE]: { baseUrl: OFFLINE_URL, portalUrl: `${OFFLINE_URL}/portal`, authUrl: `${OFFLINE_URL}/auth` },
  slices: {},
};

/** Whether a profile takes a key. `offline` takes few: nothing can change the built-in server. */
export function takesKey(name: string, key: ProfileKey): boolean {
  const { offline }: KeyDeclaration = PROFILE_KEYS[key];
  return name !== OFFLINE || offline === true;
}

/**
 * A profile's keys, their values, and where these come from.
 *
 * @param own what the user has set of it
 * @throws Failure `usage` for a variable with an invalid value, which the failure does not repeat
 */
export function viewOf(name: string, own: Settings, env: Variables): ProfileView {
  const preset: Settings = (Object.hasOwn(BUILT_IN, name) && BUILT_IN[name]) || {};
  const entries = KEY_NAMES.map((key): [ProfileKey, ProfileEntry] => {
    const { variables = [], default: fallback }: KeyDeclaration = PROFILE_KEYS[key];
    if (takesKey(name, key)) {
      // An empty variable counts as unset.
      const variable = variables.find((candidate) => env[candidate]) ?? '';
      const text = env[variable];
      if (text) return [key, entryOfVariable(key, variable, text)];
      if (own[key] !== undefined) return [key, entry(key, own[key], 'file')];
    }
    if (preset[key] !== undefined) return [key, entry(key, preset[key], 'built-in')];
    return [key, entry(key, fallback, 'default')];
  });
  const view = { name, entries: Object.fromEntries(entries) as Record<ProfileKey, ProfileEntry> };
  if (takesKey(name, 'apiGroups')) overrideGroups(view.entries, env);
  return view;
}

/** Each API group has a variable of its own. */
function overrideGroups(entries: Record<ProfileKey, ProfileEntry>, env: Variables): void {
  const groups = String(entries.apiGroups.value).split(',');
  for (const [at, variable] of GROUP_VARIABLES.entries()) {
    const group = env[variable];
    if (!group) continue;
    groups[at] = group;
    entries.apiGroups = entryOfVariable('apiGroups', variable, groups.join());
  }
}

/** People may edit the file, so its addresses are normalised like typed ones. */
function entry(key: ProfileKey, value: unknown, source: Source): ProfileEntry {
  return { value: typeof value === 'string' ? readValue(key, value) : value, source };
}

/** @throws Failure `usage` */
function entryOfVariable(key: ProfileKey, variable: string, text: string): ProfileEntry {
  const found: ProfileEntry = { ...entry(key, text, 'environment'), variable };
  const why = valueFault(key, found.value);
  if (why === undefined) return found;
  throw new Failure('usage', `${variable} is not a valid value for ${key}.`, {
    why,
    fix: `unset ${variable}`,
  });
}

/**
 * Checks that a profile uses plain http only where it is allowed (THREATS.md 5).
 *
 * @param look what to do about a value of the profile
 * @throws Failure `usage`, before anything is sent
 */
export function checkProtected(
  { name, entries }: ProfileView,
  look = `slices-conn profile show ${shellWord(name)}`,
): void {
  const insecure = entries.insecure.value === true;
  const key = ADDRESSES.find((address) => {
    const { value } = entries[address];
    return typeof value === 'string' && !isProtected(new URL(value), insecure);
  });
  if (key === undefined) return;
  const { variable } = entries[key];
  throw new Failure('usage', `${variable ?? `The ${key} of profile ${name}`} is not an https address.`, {
    why: `${UNPROTECTED} Only a profile with insecure=true allows it.`,
    fix: variable === undefined ? look : `unset ${variable}`,
  });
}
