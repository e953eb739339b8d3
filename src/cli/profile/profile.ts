import * as v from 'valibot';
import { CI_CLIENT_ID } from '../../contract/ci-rules.ts';
import { Failure, ownCommand } from '../../contract/failure.ts';
import { hinted } from '../../session/choice.ts';
import {
  BUILT_IN,
  type ProfileView,
  readValue,
  Settings,
  valueFault,
} from '../../session/profiles/profile.ts';
import {
  isProfileKey,
  KEY_NAMES,
  PROFILE_KEYS,
  type ProfileKey,
} from '../../session/profiles/profile-keys.ts';
import type { ProfileChange, Profiles } from '../../session/profiles/profiles.ts';
import type { CommandFile } from '../command.ts';
import type { Context } from '../context.ts';
import { openProfiles, wantedProfile } from '../global-options.ts';
import { IN_USE } from '../print/cards.ts';
import { escapeText, valueText } from '../print/output.ts';

/** `slices-conn profile list`. */
export const list: CommandFile = { command: {}, run: listProfiles };

/** Lists the profiles. */
async function listProfiles(context: Context): Promise<void> {
  const { flags, output } = context;
  const profiles = await openProfiles(context);
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
  const isChanged = ({ entries }: ProfileView): boolean =>
    KEY_NAMES.some((key) => entries[key].source === 'file');
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

/** `slices-conn profile show [NAME]`. */
export const show: CommandFile = {
  command: { args: { '[name]': 'the one in use when left out' } },
  run: showProfile,
};

/** Shows a profile, complete or not. No service is asked. */
async function showProfile(context: Context, [wanted]: readonly string[]): Promise<void> {
  const profiles = await openProfiles(context);
  await printProfile(
    context,
    profiles,
    profiles.inspect(wanted ?? profiles.activeName(wantedProfile(context.flags))),
  );
}

/** `slices-conn profile use NAME`. */
export const use: CommandFile = { command: { args: { '<name>': '' } }, run: useProfile };

/** Stores the chosen profile. */
async function useProfile(context: Context, [name = '']: readonly string[]): Promise<void> {
  const { output } = context;
  const opened = await openProfiles(context);
  await chooseProfile(output, opened, name);
  await output.result(
    { profile: { name } },
    (print) => `Profile ${print.paint.bold(escapeText(name))} is now in use.\n`,
  );
}

/** Makes a profile the preferred one, and says where the environment prefers another. @throws Failure `not_found`, `state_unusable` */
export async function chooseProfile(
  output: Context['output'],
  profiles: Profiles,
  name: string,
): Promise<void> {
  await profiles.use(name);
  const before = profiles.activeName(undefined);
  if (before !== name) output.notice(`SLICES_CONN_PROFILE is set to ${before} and overrides this choice.`);
}

/** `slices-conn profile set NAME KEY=VALUE...`. */
export const set: CommandFile = {
  command: {
    about: 'Sets keys of a profile. When one value is refused, nothing is changed. KEY= unsets a key.',
    args: {
      '<name>': 'a new one may have lower-case letters, digits, dots, dashes, underscores',
      '<key=value...>': 'of the keys below',
    },
    notes: `Keys:\n${keyLines()}`,
  },
  run: setProfile,
};

/** Changes a profile, or creates one. */
async function setProfile(context: Context, [name = '', ...words]: readonly string[]): Promise<void> {
  const profiles = await openProfiles(context);
  const change = parseAssignments(words);
  await printProfile(context, profiles, await profiles.set(name, change), true);
  context.output.notice(`All keys, and where each value comes from: ${ownCommand('profile', 'show', name)}`);
}

/** `slices-conn profile remove NAME`. */
export const remove: CommandFile = {
  command: {
    about:
      'Removes what you have set of a profile. A built-in profile returns to its defaults.\nThe login is not removed: run slices-conn logout before.',
    args: { '<name>': '' },
  },
  run: removeProfile,
};

/** Removes what the user has set of a profile. */
async function removeProfile(context: Context, [name = '']: readonly string[]): Promise<void> {
  const { output } = context;
  const opened = await openProfiles(context);
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

/** @param isShort prints for people only the keys that a file or a variable sets */
async function printProfile(
  context: Context,
  profiles: Profiles,
  view: ProfileView,
  isShort = false,
): Promise<void> {
  const { name, entries } = view;
  const profile = Object.fromEntries(KEY_NAMES.map((key) => [key, entries[key].value ?? null]));
  const sources = Object.fromEntries(KEY_NAMES.map((key) => [key, entries[key].source]));
  const isSet = (key: ProfileKey): boolean => ['file', 'environment'].includes(entries[key].source);
  const shown = isShort ? KEY_NAMES.filter(isSet) : KEY_NAMES;
  const inUse = profiles.activeName(wantedProfile(context.flags)) === name ? ', in use' : '';
  await context.output.result({ profile: { name, ...profile }, sources }, (print) =>
    print.card(
      `Profile ${print.paint.bold(escapeText(name))}${inUse}`,
      shown.map((key) => {
        const { value, source, variable } = entries[key];
        const from = variable ?? (source === 'file' ? 'config.json' : source);
        return [key, value === undefined ? 'not set' : `${valueText(value)}  (${from})`];
      }),
    ),
  );
}

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
    const [key = '', ...parts] = word.split('=');
    if (!isProfileKey(key)) {
      // It may be part of a secret: only its beginning is shown.
      const shown = JSON.stringify(key.length > 40 ? `${key.slice(0, 40)}…` : key);
      throw new Failure('usage', hinted(`A profile has no key ${shown}.`, key, KEY_NAMES), {
        why: FORMER_KEYS.get(key) ?? `The keys are: ${KEY_NAMES.join(', ')}.`,
      });
    }
    if (parts.length === 0) {
      const why = `Write ${key}=VALUE, or ${key}= to unset it.`;
      throw new Failure('usage', `No value is given for ${key}.`, { why });
    }
    if (values.has(key) || unset.includes(key)) {
      throw new Failure('usage', `The key ${key} is given twice.`);
    }
    const typed = parts.join('=');
    const value = readValue(key, typed);
    const why = typed === '' ? undefined : valueFault(key, value);
    if (why !== undefined) throw new Failure('usage', `This is not a value for ${key}.`, { why });
    if (typed === '') unset.push(key);
    else values.set(key, value);
  }
  return { set: v.parse(Settings, Object.fromEntries(values)), unset };
}

/** One key after the other, as help lists flags. */
function keyLines(): string {
  const width = Math.max(...KEY_NAMES.map((key) => key.length));
  return KEY_NAMES.map((key) => `  ${key.padEnd(width)}  ${PROFILE_KEYS[key].about}`).join('\n');
}

const IN_ONE_KEY = 'It is a part of apiGroups now: apiGroups=PROJECTS,EXPERIMENTS.';
/** What took the place of keys that there were once. */
const FORMER_KEYS: ReadonlyMap<string, string> = new Map([
  ['ciClientId', `Machines log in as ${CI_CLIENT_ID}, always.`],
  ['projectsApiGroup', IN_ONE_KEY],
  ['experimentsApiGroup', IN_ONE_KEY],
]);
