import { resolve } from 'node:path';
import { Failure, ownCommand } from '../../contract/failure.ts';
import { ADDRESSES, type ProfileView, type Settings } from '../../session/profiles/profile.ts';
import {
  KEY_NAMES,
  type KeyDeclaration,
  PROFILE_KEYS,
  type ProfileKey,
} from '../../session/profiles/profile-keys.ts';
import { unkeptProfile } from '../../session/profiles/profiles.ts';
import {
  askForServices,
  changedKeys,
  type NamedServices,
  readServiceAddress,
  type ServiceAddress,
} from '../../session/profiles/service-address.ts';
import { wantedProfile } from '../global-options.ts';
import type { Invocation } from '../invocation.ts';
import type { Output } from '../print/output.ts';
import { chooseProfile } from '../profile/run.ts';
import { confirm } from '../questions.ts';

/**
 * Makes the profile of a service the preferred one. Where there is none, the service is asked for its portal and its identity
 * provider, and they are kept once a person accepts them. What is kept stays: a service that names others later is told of, and
 * changes nothing (THREATS.md 148).
 *
 * @param typed the service's address
 * @returns the profile's name
 * @throws Failure `usage`; what {@link askForServices} throws; Declined
 */
export async function serviceProfile(invocation: Invocation, typed: string): Promise<string> {
  const { flags, output, waitFor } = invocation;
  if (wantedProfile(flags) !== undefined) {
    throw new Failure(
      'usage',
      'An address, --profile and --offline are each a choice of the services: give one.',
    );
  }
  const profiles = await invocation.profiles();
  const variables = profiles.overridingVariables();
  if (variables.length > 0) {
    throw new Failure('usage', `${variables.join(', ')} would send this login elsewhere.`, {
      why: 'These variables override the addresses of every profile.',
      fix: `unset ${variables.join(' ')}`,
    });
  }
  const address = readServiceAddress(typed);
  const { name, url } = address;
  const known = profiles.names().includes(name) ? profiles.inspect(name) : undefined;
  checkSame(known, address);
  const send = await invocation.sendTo(unkeptProfile(name, url));
  const asked = waitFor(name, () => askForServices(address, send));
  if (known && ADDRESSES.every((key) => known.entries[key].value !== undefined)) {
    // A profile that is there needs no answer.
    const named = await asked.catch((error: unknown) => {
      if (error instanceof Failure) return undefined;
      throw error;
    });
    if (named) tellChanges(output, known, named);
  } else {
    const named = await asked.catch((error: unknown) => {
      // There is no profile yet that a look at would help.
      const looks = error instanceof Failure && error.facts.fix === ownCommand('profile', 'show', name);
      throw looks ? error.with({ fix: undefined }) : error;
    });
    // Without its certificates, later commands would not reach the service.
    const settings = { ...named, ...(flags.caFile === undefined ? {} : { caFile: resolve(flags.caFile) }) };
    await acceptServices(invocation, name, settings);
    await profiles.set(name, { set: settings, unset: [] });
  }
  await chooseProfile(output, profiles, name);
  return name;
}

/** Checks that a profile of a service's name is for that service. @throws Failure `usage` */
function checkSame(known: ProfileView | undefined, { name, url }: ServiceAddress): void {
  const { value = url } = known?.entries.baseUrl ?? {};
  if (value === url) return;
  throw new Failure('usage', `Profile ${name} is for ${String(value)}, not for ${url}.`, {
    why: 'A login goes to the services of its profile.',
    fix: ownCommand('login', '--profile', name),
  });
}

/** Shows what a service names, and asks whether to keep it and log in there. @throws Failure `usage`; Declined */
async function acceptServices(
  invocation: Invocation,
  name: string,
  named: NamedServices & Pick<Settings, 'caFile'>,
): Promise<void> {
  const { output } = invocation;
  output.prompt(`${name} names its portal and its identity provider:`);
  for (const [key, label] of Object.entries(LABELS) as [keyof typeof LABELS, string][]) {
    const { default: usual }: KeyDeclaration = PROFILE_KEYS[key];
    if (named[key] !== undefined && named[key] !== usual)
      output.prompt(`  ${label.padEnd(17)}  ${named[key]}`);
  }
  await confirm(invocation, `Save them as the profile ${name}, and log in there?`, {
    unasked: `The services that ${name} names were not confirmed.`,
    declined: 'Nothing was saved, and nobody was logged in.',
    isExpected: true,
  });
}

const LABELS = {
  portalUrl: 'portal',
  authUrl: 'identity provider',
  clientId: 'client',
  projectsApiGroup: 'projects API',
  experimentsApiGroup: 'experiments API',
  caFile: 'certificates',
} as const satisfies Partial<Record<ProfileKey, string>>;

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
