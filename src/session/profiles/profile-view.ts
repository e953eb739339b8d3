import { Failure } from '../../contract/failure.ts';
import { isProtected, UNPROTECTED } from '../../contract/loopback.ts';
import { shellWord } from '../../contract/shell-word.ts';
import type { Environment } from './folders.ts';
import { OFFLINE, OFFLINE_URL } from './offline.ts';
import { KEY_NAMES, type KeyDeclaration, PROFILE_KEYS, type ProfileKey } from './profile-keys.ts';
import { readValue, type Settings, valueFault } from './profile-values.ts';

/** Where a value comes from; each goes before those after it (CLI.md, "Global flags"). */
export type Source = 'environment' | 'file' | 'built-in' | 'default';

/** A key's value, undefined where nothing gives one, and where it comes from. */
export interface ProfileEntry {
  value: unknown;
  source: Source;
  /** The environment variable that it comes from. */
  variable?: string;
}

/** A profile as it stands, complete or not. */
export interface ProfileView {
  name: string;
  entries: Readonly<Record<ProfileKey, ProfileEntry>>;
}

const LOCAL_URL = 'http://127.0.0.1:4280';

/** The profiles that need no file. `slices` has no addresses: nothing guesses a host that would receive a token. */
export const BUILT_IN: Readonly<Record<string, Settings>> = {
  local: { baseUrl: LOCAL_URL, portalUrl: `${LOCAL_URL}/portal`, authUrl: `${LOCAL_URL}/auth` },
  [OFFLINE]: { baseUrl: OFFLINE_URL, portalUrl: `${OFFLINE_URL}/portal`, authUrl: `${OFFLINE_URL}/auth` },
  slices: {},
};

/** The keys without which a profile names no services. */
export const ADDRESSES = ['baseUrl', 'portalUrl', 'authUrl'] as const satisfies readonly ProfileKey[];

function builtInSettings(name: string): Settings {
  return (Object.hasOwn(BUILT_IN, name) && BUILT_IN[name]) || {};
}

/** Whether a profile takes a key: the built-in server is only ever itself, whatever a variable or the file says. */
export function takesKey(name: string, key: ProfileKey): boolean {
  const { offline }: KeyDeclaration = PROFILE_KEYS[key];
  return name !== OFFLINE || offline === true;
}

/**
 * A profile's keys, their values, and where these come from.
 *
 * @param own what the user has set of it
 * @throws Failure `usage` for a variable whose text is no value of its key; the text is not repeated
 */
export function viewOf(name: string, own: Settings, env: Environment): ProfileView {
  const preset = builtInSettings(name);
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
  return { name, entries: Object.fromEntries(entries) as Record<ProfileKey, ProfileEntry> };
}

/** A file may hold what a person typed into it: addresses are put in order as they are everywhere else. */
function entry(key: ProfileKey, value: unknown, source: Source): ProfileEntry {
  return { value: typeof value === 'string' ? readValue(key, value) : value, source };
}

/** @throws Failure `usage` */
function entryOfVariable(key: ProfileKey, variable: string, text: string): ProfileEntry {
  const found: ProfileEntry = { ...entry(key, text, 'environment'), variable };
  const why = valueFault(key, found.value);
  if (why === undefined) return found;
  throw new Failure('usage', `${variable} holds no value for ${key}.`, { why, fix: `unset ${variable}` });
}

/**
 * Checks that a profile sends nothing over plain http that it does not allow to (HOSTILE.md 5).
 *
 * @throws Failure `usage`, before anything is sent
 */
export function checkProtected({ name, entries }: ProfileView): void {
  const insecure = entries.insecure.value === true;
  const key = ADDRESSES.find((address) => {
    const { value } = entries[address];
    return typeof value === 'string' && !isProtected(new URL(value), insecure);
  });
  if (key === undefined) return;
  const { variable } = entries[key];
  throw new Failure('usage', `${variable ?? `The ${key} of profile ${name}`} is not an https address.`, {
    why: `${UNPROTECTED} Only a profile with insecure=true allows it.`,
    ...(variable === undefined ? { fix: `slices-conn profile set ${shellWord(name)} ${key}=https://…` } : {}),
  });
}
