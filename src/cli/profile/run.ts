import * as v from 'valibot';
import { CI_CLIENT_ID } from '../../contract/ci-rules.ts';
import { Failure, ownCommand } from '../../contract/failure.ts';
import { hinted } from '../../session/choice.ts';
import {
  BUILT_IN,
  type ProfileEntry,
  type ProfileView,
  readValue,
  Settings,
  valueFault,
} from '../../session/profiles/profile.ts';
import { isProfileKey, KEY_NAMES, type ProfileKey } from '../../session/profiles/profile-keys.ts';
import type { ProfileChange, Profiles } from '../../session/profiles/profiles.ts';
import { wantedProfile } from '../global-options.ts';
import type { Invocation } from '../invocation.ts';
import { IN_USE } from '../print/cards.ts';
import { escapeText, valueText } from '../print/output.ts';

/** Lists the profiles. */
export async function listProfiles(invocation: Invocation): Promise<void> {
  const { flags, output } = invocation;
  const profiles = await invocation.profiles();
  const chosen = profiles.activeName(wantedProfile(flags));
  const listed = profiles.list();
  const items = listed.map(({ name, entries }) => ({
    name,
    active: name === chosen,
    builtIn: Object.hasOwn(BUILT_IN, name),
    baseUrl: entries.baseUrl.value ?? null,
    portalUrl: entries.portalUrl.value ?? null,
    authUrl: entries.authUrl.value ?? null,
  }));
  const changed = new Set(listed.filter(isChanged).map(({ name }) => name));
  if (!items.some(({ active }) => active))
    output.notice(`The current profile is ${chosen}, but it does not exist.`);
  const variables = profiles.overridingVariables();
  if (variables.length > 0) {
    output.notice(`These variables override every profile except offline: ${variables.join(', ')}.`);
  }
  await output.result({ items }, (print) =>
    print.table(
      ['name', 'base address', 'from'],
      items.map(({ name, active, builtIn, baseUrl }) => [
        `${name}${active ? IN_USE : ''}`,
        typeof baseUrl === 'string' ? baseUrl : 'not set',
        builtIn ? `built-in${changed.has(name) ? ', changed' : ''}` : 'yours',
      ]),
    ),
  );
}

/** Shows a profile, complete or not. No service is asked. */
export async function showProfile(invocation: Invocation, [wanted]: readonly string[]): Promise<void> {
  const profiles = await invocation.profiles();
  await printProfile(invocation, profiles, profiles.inspect(wanted ?? chosenName(invocation, profiles)));
}

/** Stores the chosen profile. */
export async function useProfile(
  { output, profiles }: Invocation,
  [name = '']: readonly string[],
): Promise<void> {
  const opened = await profiles();
  await chooseProfile(output, opened, name);
  await output.result(
    { profile: { name } },
    (print) => `Profile ${print.paint.bold(escapeText(name))} is now in use.\n`,
  );
}

/** Makes a profile the preferred one, and says where the environment prefers another. @throws Failure `not_found`, `state_unusable` */
export async function chooseProfile(
  output: Invocation['output'],
  profiles: Profiles,
  name: string,
): Promise<void> {
  await profiles.use(name);
  const before = profiles.activeName(undefined);
  if (before !== name) output.notice(`SLICES_CONN_PROFILE is set to ${before} and overrides this choice.`);
}

/** Changes a profile, or creates one. */
export async function setProfile(
  invocation: Invocation,
  [name = '', ...words]: readonly string[],
): Promise<void> {
  const profiles = await invocation.profiles();
  const change = parseAssignments(words);
  await printProfile(invocation, profiles, await profiles.set(name, change), true);
  invocation.output.notice(
    `All keys, and where each value comes from: ${ownCommand('profile', 'show', name)}`,
  );
}

/** Removes what the user has set of a profile. */
export async function removeProfile(
  { output, profiles }: Invocation,
  [name = '']: readonly string[],
): Promise<void> {
  const opened = await profiles();
  const { builtIn, removed, wasPreferred } = await opened.remove(name);
  if (wasPreferred) output.notice(`Profile ${name} was in use. Now it is ${opened.activeName(undefined)}.`);
  await output.result({ profile: { name, builtIn, removed } }, (print) => {
    const title = `Profile ${print.paint.bold(escapeText(name))}`;
    if (!builtIn) return `${title} is removed.\n`;
    return removed
      ? `${title} is built in, and is back to its defaults.\n`
      : `${title} is built in, and has its defaults already.\n`;
  });
}

function isChanged({ entries }: ProfileView): boolean {
  return KEY_NAMES.some((key) => entries[key].source === 'file');
}

function chosenName({ flags }: Invocation, profiles: Profiles): string {
  return profiles.activeName(wantedProfile(flags));
}

/** @param isShort prints for people only the keys that a file or a variable sets */
async function printProfile(
  invocation: Invocation,
  profiles: Profiles,
  view: ProfileView,
  isShort = false,
): Promise<void> {
  const { name, entries } = view;
  const profile = Object.fromEntries(KEY_NAMES.map((key) => [key, entries[key].value ?? null]));
  const sources = Object.fromEntries(KEY_NAMES.map((key) => [key, entries[key].source]));
  const isSet = (key: ProfileKey): boolean => ['file', 'environment'].includes(entries[key].source);
  const shown = isShort ? KEY_NAMES.filter(isSet) : KEY_NAMES;
  const inUse = chosenName(invocation, profiles) === name ? ', in use' : '';
  await invocation.output.result({ profile: { name, ...profile }, sources }, (print) =>
    print.card(
      `Profile ${print.paint.bold(escapeText(name))}${inUse}`,
      shown.map((key) => [key, describe(entries[key])]),
    ),
  );
}

/** A value as it would be typed, and where it comes from. */
function describe({ value, source, variable }: ProfileEntry): string {
  if (value === undefined) return 'not set';
  return `${valueText(value)}  (${variable ?? (source === 'file' ? 'config.json' : source)})`;
}

const HELP = 'slices-conn profile set --help';

/**
 * Reads the arguments of `profile set`: `KEY=VALUE` sets a key, `KEY=` unsets it (cli/README.md, "Files").
 *
 * @throws Failure `usage` for the first faulty argument; the message never repeats a value, because it may be
 *   a secret
 */
export function parseAssignments(words: readonly string[]): ProfileChange {
  const values = new Map<ProfileKey, unknown>();
  const unset: ProfileKey[] = [];
  for (const word of words) {
    const { key, typed } = parseAssignment(word);
    if (values.has(key) || unset.includes(key)) {
      throw new Failure('usage', `The key ${key} is given twice.`, { fix: HELP });
    }
    if (typed === '') unset.push(key);
    else values.set(key, readChecked(key, typed));
  }
  return { set: v.parse(Settings, Object.fromEntries(values)), unset };
}

function parseAssignment(word: string): { key: ProfileKey; typed: string } {
  const at = word.indexOf('=');
  const key = at === -1 ? word : word.slice(0, at);
  if (!isProfileKey(key)) throw unknownKey(key);
  if (at !== -1) return { key, typed: word.slice(at + 1) };
  throw new Failure('usage', `No value is given for ${key}.`, {
    why: `Write ${key}=VALUE, or ${key}= to unset it.`,
    fix: HELP,
  });
}

function readChecked(key: ProfileKey, typed: string): unknown {
  const value = readValue(key, typed);
  const why = valueFault(key, value);
  if (why === undefined) return value;
  throw new Failure('usage', `This is not a value for ${key}.`, { why, fix: HELP });
}

/** An unknown key's failure. It may be part of a secret: only its first 40 characters are shown. */
function unknownKey(key: string): Failure {
  const shown = key.length > 40 ? `${key.slice(0, 40)}…` : key;
  return new Failure('usage', hinted(`A profile has no key ${JSON.stringify(shown)}.`, key, KEY_NAMES), {
    why: FORMER_KEYS.get(key) ?? `The keys are: ${KEY_NAMES.join(', ')}.`,
    fix: HELP,
  });
}

const IN_ONE_KEY = 'It is a part of apiGroups now: apiGroups=PROJECTS,EXPERIMENTS.';
/** What took the place of keys that there were once. */
const FORMER_KEYS: ReadonlyMap<string, string> = new Map([
  ['ciClientId', `Machines log in as ${CI_CLIENT_ID}, always.`],
  ['projectsApiGroup', IN_ONE_KEY],
  ['experimentsApiGroup', IN_ONE_KEY],
]);
