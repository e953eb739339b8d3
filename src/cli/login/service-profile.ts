import { resolve } from 'node:path';
import { describedFeatures, readFeatures } from '../../client/features.ts';
import { Failure, failureOrThrow, ownCommand } from '../../contract/failure.ts';
import { inOneText } from '../../contract/said.ts';
import { sendFrom } from '../../contract/sending.ts';
import { OFFICIAL_CLIENT } from '../../session/login/token-source.ts';
import { ADDRESSES, type ProfileView, type Settings } from '../../session/profiles/profile.ts';
import {
  KEY_NAMES,
  type KeyDeclaration,
  PROFILE_KEYS,
  type ProfileKey,
} from '../../session/profiles/profile-keys.ts';
import { type Profiles, unkeptProfile } from '../../session/profiles/profiles.ts';
import {
  askForServices,
  changedKeys,
  type NamedServices,
  readServiceAddress,
} from '../../session/profiles/service-address.ts';
import type { Context } from '../context.ts';
import { openProfiles, wantedProfile } from '../global-options.ts';
import type { Output } from '../print/output.ts';
import { chooseProfile } from '../profile/profile.ts';
import { confirm } from '../questions.ts';

/**
 * Finds the profile of a service; it is put to use once the login there has succeeded. Where there is none, the service is asked
 * for its portal and its identity provider, and they are kept once a person accepts them. What is kept stays: a service that names others later is told of, and
 * changes nothing (THREATS.md 148).
 *
 * @param typed the service's address
 * @returns the profile's name
 * @throws Failure `usage`; what {@link askForServices} throws; Declined
 */
export async function serviceProfile(context: Context, typed: string): Promise<string> {
  const { flags, output } = context;
  const profiles = await profilesOfNoOther(context);
  const address = readServiceAddress(typed);
  const { name, url } = address;
  const known = profiles.names().includes(name) ? profiles.inspect(name) : undefined;
  const { value: base = url } = known?.entries.baseUrl ?? {};
  if (base !== url) {
    throw new Failure('usage', `Profile ${name} is for ${String(base)}, not for ${url}.`, {
      why: 'A login goes to the services of its profile.',
      fix: ownCommand('login', '--profile', name),
    });
  }
  const send = sendFrom(await context.connect(unkeptProfile(name, { baseUrl: url })));
  const named = await output.waitFor(name, () => askForServices(address, send)).catch(failureOrThrow);
  if (known && ADDRESSES.every((key) => known.entries[key].value !== undefined)) {
    // A profile that is there needs no answer.
    if (!(named instanceof Failure)) tellChanges(output, known, named);
    return name;
  }
  if (named instanceof Failure) {
    // The advice is to look at the profile, which does not exist yet.
    if (named.facts.fix === ownCommand('profile', 'show', name)) {
      const why = inOneText(named.facts.why, 'For another address: slices-conn login ADDRESS.');
      throw named.with({ why, fix: undefined });
    }
    throw named.code === 'not_supported' ? await orWithSlices(context, typed, named) : named;
  }
  // Without its certificates, later commands would not reach the service.
  const settings = { ...named, ...certificatesOf(flags) };
  await acceptServices(context, name, settings);
  await profiles.set(name, { set: settings, unset: [] });
  return name;
}

/** The failure of a login at a service that names no identity provider: where the official client is here, it logs in. */
async function orWithSlices({ processes }: Context, typed: string, failure: Failure): Promise<Failure> {
  const missing = await processes.check(OFFICIAL_CLIENT).catch((error: unknown) => error);
  if (missing) return failure;
  const why = `The official client ${OFFICIAL_CLIENT} is on this machine: its tokens are a way in.`;
  return failure.with({ why, lines: undefined, fix: ownCommand('login', typed, '--with-slices') });
}

/**
 * Makes the profile of a service whose tokens the official client gives the preferred one. The service is sent no token, and
 * the person is asked nothing, since no other address than the typed one is kept.
 *
 * @param typed the service's address; undefined for the one that the profile has
 * @returns the profile's name
 * @throws Failure `usage` without an address, and where there is no official client; `not_logged_in` where it gives no token;
 *   `network` where no service answers. Then nothing was changed
 */
export async function officialProfile(context: Context, typed: string | undefined): Promise<string> {
  const { flags, output } = context;
  const profiles = await profilesOfNoOther(context);
  const { value: before } = profiles.inspect(OFFICIAL_CLIENT).entries.baseUrl;
  if (typed === undefined && typeof before !== 'string') {
    throw new Failure('usage', 'The address of the service is missing.');
  }
  const baseUrl = typed === undefined ? String(before) : readServiceAddress(typed).url;
  const settings: Settings = {
    ...{ baseUrl, tokenPlacement: 'experiment', ...certificatesOf(flags) },
    userTokenCommand: [OFFICIAL_CLIENT, 'auth', 'get-for-audience', baseUrl],
    experimentTokenCommand: [OFFICIAL_CLIENT, 'experiment', 'jwt', '{experiment}'],
  };
  const connection = await context.connect(unkeptProfile(OFFICIAL_CLIENT, settings));
  await output.waitFor(OFFICIAL_CLIENT, () => connection.userToken.get());
  await describedFeatures(() => readFeatures(sendFrom(connection), baseUrl));
  // A portal of another service is not this one's.
  const unset = baseUrl === before ? [] : (['portalUrl', 'authUrl'] as const);
  await profiles.set(OFFICIAL_CLIENT, { set: settings, unset });
  await chooseProfile(output, profiles, OFFICIAL_CLIENT);
  context.processes.ifStopped({ why: `Profile ${OFFICIAL_CLIENT} was saved, and is in use.` });
  return OFFICIAL_CLIENT;
}

/** The certificates that a login was told to trust, for its profile. */
function certificatesOf({ caFile }: Context['flags']): Pick<Settings, 'caFile'> {
  return caFile === undefined ? {} : { caFile: resolve(caFile) };
}

/** Opens the profiles, where nothing but the address chooses the services. @throws Failure `usage` */
async function profilesOfNoOther(context: Context): Promise<Profiles> {
  if (wantedProfile(context.flags) !== undefined) {
    throw new Failure(
      'usage',
      'An address, --profile and --offline are each a choice of the services: give one.',
    );
  }
  const profiles = await openProfiles(context);
  const variables = profiles.overridingVariables();
  if (variables.length > 0) {
    throw new Failure('usage', `${variables.join(', ')} would send this login elsewhere.`, {
      why: 'These variables override the addresses of every profile.',
      fix: `unset ${variables.join(' ')}`,
    });
  }
  return profiles;
}

/** Shows what a service names, and asks whether to keep it and log in there. @throws Failure `usage`; Declined */
async function acceptServices(context: Context, name: string, named: Settings): Promise<void> {
  const { output } = context;
  output.prompt(`${name} names its portal and its identity provider:`);
  for (const [key, label] of LABELS) {
    const { default: usual }: KeyDeclaration = PROFILE_KEYS[key];
    const value = named[key];
    if (value !== undefined && value !== usual) output.prompt(`  ${label.padEnd(17)}  ${value}`);
  }
  await confirm(context, `Save them as the profile ${name}, and log in there?`, {
    unasked: `The services that ${name} names were not confirmed.`,
    declined: 'Nothing was saved, and nobody was logged in.',
    isExpected: true,
  });
}

const LABELS = [
  ['portalUrl', 'portal'],
  ['authUrl', 'identity provider'],
  ['clientId', 'client'],
  ['apiGroups', 'APIs of the portal'],
  ['caFile', 'certificates'],
] as const satisfies readonly (readonly [ProfileKey, string])[];

/** Says what a service names otherwise than its profile has it. */
function tellChanges(output: Output, { name, entries }: ProfileView, named: NamedServices): void {
  const kept = Object.fromEntries(KEY_NAMES.map((key) => [key, entries[key].value]));
  const changed = changedKeys(named, kept);
  if (changed.length === 0) return;
  output.notice(
    `warning: ${name} now names other services than its profile has. The profile is used as it is.`,
  );
  for (const key of changed) output.notice(`  ${key}  ${String(kept[key])}  now ${named[key]}`);
  const words = changed.map((key) => `${key}=${named[key]}`);
  output.notice(`If its operator confirms them: ${ownCommand('profile', 'set', name, ...words)}`);
}
