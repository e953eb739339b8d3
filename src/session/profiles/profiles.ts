import { existsSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { Failure } from '../../contract/failure.ts';
import { refusedValue } from '../../contract/foreign-errors.ts';
import { isObject } from '../../contract/json.ts';
import { readBounded } from '../../files/bounded.ts';
import { onDisk } from '../../files/on-disk.ts';
import { makePrivate, privateFolder, unusableFile } from '../../files/private.ts';
import { removeDrafts } from '../../files/whole.ts';
import { type Choosable, hinted } from '../choice.ts';
import type { Variables } from './folders.ts';
import {
  ADDRESSES,
  BUILT_IN,
  checkProtected,
  KeptSettings,
  ProfileValues,
  type ProfileView,
  type Settings,
  takesKey,
  viewOf,
} from './profile.ts';
import { KEY_NAMES, OFFLINE, PROFILE_KEYS, type ProfileKey } from './profile-keys.ts';

/** Runs `work` while no other process works under the file. The lock ends with its process, even killed. */
export type UnderLock = <Answer>(file: string, work: () => Promise<Answer>) => Promise<Answer>;

/** A profile whose values are complete. */
export interface Profile extends ProfileValues {
  name: string;
  /**
   * The variables that name another connectivity service or portal than the profile itself does. Its token
   * commands are left out then: what they give is for the profile's own services (THREATS.md 49).
   */
  redirectedBy?: readonly string[];
}

/** A change of a profile, all or nothing. */
export interface ProfileChange {
  set: Settings;
  /** Keys that return to their built-in or default values. */
  unset: readonly ProfileKey[];
}

/** The result of a removal. */
interface Removal {
  /** The profile still exists, with its built-in values. */
  builtIn: boolean;
  /** False where the user had set nothing. */
  removed: boolean;
  /** It was the preferred profile until now. */
  wasPreferred: boolean;
}

const Preferences = v.looseObject({
  /** The profile that is used when none is named. */
  profile: v.exactOptional(v.string()),
  profiles: v.optional(
    v.pipe(v.custom<object>(isObject, 'it is not an object'), v.record(v.string(), KeptSettings)),
    {},
  ),
});
/** The content of `config.json` (cli/README.md, "Files"); members that a later version adds are kept. */
type Preferences = v.InferOutput<typeof Preferences>;

/** Where user and experiment tokens are sent. */
const TOKEN_DESTINATIONS = ['baseUrl', 'portalUrl'] as const satisfies readonly ProfileKey[];
const TOKEN_COMMANDS = [
  'userTokenCommand',
  'experimentTokenCommand',
] as const satisfies readonly ProfileKey[];

/** A word, or the host of a service with its port: `login ADDRESS` names profiles so. */
const NAME = /^(?:[a-z0-9][a-z0-9._-]{0,252}|\[[\da-f:.]+\])(?::\d{1,5})?$/;
/** Names of members that every JavaScript object has, which would not be written to the file. */
const NO_NAMES = ['constructor', 'prototype'];

/** Profiles and preferences in `config.json` (cli/README.md, "Files"): no secret, mode 0600. */
export class Profiles {
  readonly #folder: string;
  readonly #file: string;
  readonly #env: Variables;
  readonly #underLock: UnderLock;

  /** @param underLock keeps other processes from changing the file. Default: no lock */
  constructor(folder: string, env: Variables, underLock: UnderLock = (_file, work) => work()) {
    this.#folder = folder;
    this.#file = join(folder, 'config.json');
    this.#env = env;
    this.#underLock = underLock;
  }

  /** The names of all profiles, the built-in ones first. @throws Failure `state_unusable` */
  names(): string[] {
    return namesIn(this.#read());
  }

  /** All profiles, without the values of the environment. @throws Failure `state_unusable` */
  list(): ProfileView[] {
    const preferences = this.#read();
    return namesIn(preferences).map((name) => viewOf(name, ownSettings(name, preferences), {}));
  }

  /**
   * The name of the profile to use: `wanted`, else `SLICES_CONN_PROFILE`, else the preferred one, else
   * `local`. A profile of this name need not exist.
   *
   * @throws Failure `state_unusable`
   */
  activeName(wanted: string | undefined, preferences = this.#read()): string {
    return wanted ?? (this.#env['SLICES_CONN_PROFILE'] || preferences.profile || 'local');
  }

  /**
   * The time zone that the profile of {@link activeName} names; undefined where it names none, or does not
   * exist.
   *
   * @throws Failure `state_unusable`
   */
  zone(wanted: string | undefined): string | undefined {
    const preferences = this.#read();
    return ownSettings(this.activeName(wanted, preferences), preferences).tz;
  }

  /** The variables that are set and override the addresses of every profile but `offline`. */
  overridingVariables(): string[] {
    return ADDRESSES.flatMap((key) => PROFILE_KEYS[key].variables).filter((variable) => this.#env[variable]);
  }

  /**
   * The profile of {@link activeName}, its settings overridden by the environment.
   *
   * @throws Failure `not_found` for an unknown profile, `usage` for one without addresses, an invalid variable, or a plain
   *   http address that the profile does not allow; `state_unusable`
   */
  async resolve(wanted: string | undefined): Promise<Profile> {
    const preferences = this.#read();
    const name = this.activeName(wanted, preferences);
    const own = ownSettings(name, preferences);
    const view = this.inspect(name, preferences);
    const { entries: all, ...redirection } = forItsServices(view, own);
    const isElsewhere = all.baseUrl.source === 'environment';
    const entries = { ...all };
    for (const key of ADDRESSES) {
      // The built-in ones are this machine's own, not those of a service that the environment names.
      if (isElsewhere && all[key].source === 'built-in') entries[key] = { ...all[key], value: undefined };
    }
    // Tokens that are given, or that commands give, need neither portal nor identity provider.
    const isGiven = (kind: 'USER' | 'EXPERIMENT'): boolean =>
      ['', '_FILE'].some((ending) => this.#env[`SLICES_CONN_${kind}_TOKEN${ending}`]) ||
      entries[`${kind === 'USER' ? 'user' : 'experiment'}TokenCommand`].value !== undefined;
    const needed =
      isElsewhere || (isGiven('USER') && isGiven('EXPERIMENT')) ? (['baseUrl'] as const) : ADDRESSES;
    const missing = needed.filter((key) => entries[key].value === undefined);
    if (missing.length > 0) {
      const what = missing.length === ADDRESSES.length ? 'addresses' : missing.join(' and no ');
      throw new Failure('usage', `Profile ${name} has no ${what} yet.`, {
        why: `The addresses of a deployment are never guessed, since they would receive tokens. Log in by the address of the service (slices-conn login ADDRESS), or set ${missing.join(', ')} of profile ${name}.`,
        fix: 'slices-conn profile set --help',
      });
    }
    checkProtected(view);
    const names = own.chosenNames === undefined ? {} : { chosenNames: own.chosenNames };
    return { name, ...valuesIn(entries), ...names, ...redirection };
  }

  /**
   * A profile's keys, their values, and where these come from. It need not be complete.
   *
   * @throws Failure `not_found` for an unknown profile, `usage` for an invalid variable, `state_unusable`
   */
  inspect(name: string, preferences = this.#read()): ProfileView {
    checkKnown(name, preferences);
    return viewOf(name, ownSettings(name, preferences), this.#env);
  }

  /** Makes a profile the preferred one. @throws Failure `not_found` for an unknown one, `state_unusable` */
  async use(name: string): Promise<void> {
    await this.#change((current) => {
      checkKnown(name, current);
      current.profile = name;
    });
  }

  /**
   * Changes a profile, or creates one.
   *
   * @returns the profile after the change
   * @throws Failure `usage` for an invalid name, a key that the profile does not take, or a plain http
   *   address that it does not allow; `state_unusable`
   */
  async set(name: string, { set, unset }: ProfileChange): Promise<ProfileView> {
    return this.#change((current) => {
      if (!namesIn(current).includes(name)) checkName(name);
      checkKeys(name, [...KEY_NAMES.filter((key) => set[key] !== undefined), ...unset]);
      const settings = { ...ownSettings(name, current), ...set };
      for (const key of unset) delete settings[key];
      checkProtected(viewOf(name, settings, {}), 'slices-conn profile set --help');
      const view = viewOf(name, settings, this.#env);
      current.profiles[name] = settings;
      return view;
    });
  }

  /**
   * Keeps a profile's choice of project or experiment: its id, and its name, by which it is found where the
   * id is not known any more. @throws Failure `state_unusable`
   */
  async choose(
    name: string,
    noun: 'project' | 'experiment',
    { id, name: called }: Pick<Choosable, 'id' | 'name'>,
  ): Promise<void> {
    await this.#change((current) => {
      const own = ownSettings(name, current);
      const settings = { ...own, [noun]: id };
      const names = Object.entries({ ...own.chosenNames, [id]: called });
      const inUse = names.filter(([one]) => one === settings.project || one === settings.experiment);
      const chosenNames = Object.fromEntries(inUse.filter(([, known]) => known !== ''));
      current.profiles[name] = { ...settings, chosenNames };
    });
  }

  /**
   * Removes the user's settings of a profile.
   *
   * @throws Failure `not_found` for an unknown one, `state_unusable`
   */
  async remove(name: string): Promise<Removal> {
    return this.#change((current) => {
      checkKnown(name, current);
      const removed = Object.hasOwn(current.profiles, name);
      const wasPreferred = current.profile === name;
      delete current.profiles[name];
      if (wasPreferred) delete current.profile;
      return { builtIn: Object.hasOwn(BUILT_IN, name), removed, wasPreferred };
    });
  }

  /**
   * Reads, changes and writes the file under the lock: whole or not at all, with mode 0600 in a folder with mode 0700. Every
   * change goes through here.
   */
  async #change<Result>(work: (current: Preferences) => Result): Promise<Result> {
    // First, so that no loading happens between reading and writing.
    const { default: ConfFile } = await import('conf');
    privateFolder(this.#folder);
    return this.#underLock(join(this.#folder, 'config.lock'), async () => {
      const preferences = this.#read();
      const result = work(preferences);
      const { SNAP } = process.env;
      // With it conf writes over the file, which a power cut leaves half written.
      delete process.env['SNAP'];
      try {
        removeDrafts(this.#file);
        const file = new ConfFile<Record<string, unknown>>({
          cwd: this.#folder,
          configFileMode: 0o600,
          accessPropertiesByDotNotation: false,
          deserialize: () => ({}),
        });
        file.store = preferences;
        // conf waits for the file, not for its name.
        onDisk(this.#folder);
      } catch (cause) {
        throw unusableFile(this.#file, cause);
      } finally {
        if (SNAP !== undefined) process.env['SNAP'] = SNAP;
      }
      return result;
    });
  }

  /**
   * Reads the file. Profiles may name programs to run, so it must belong to the user, and others must not be able to write to it
   * (THREATS.md 16, 51).
   *
   * @throws Failure `state_unusable`
   */
  #read(): Preferences {
    if (!existsSync(this.#folder)) return { profiles: {} };
    // A user who could write to the folder could replace the file.
    privateFolder(this.#folder);
    let value: unknown;
    try {
      if (!makePrivate(this.#file)) return { profiles: {} };
      value = JSON.parse(readBounded(this.#file).toString());
    } catch (cause) {
      throw unusableFile(this.#file, cause);
    }
    // Valibot takes a list for an object without members.
    const result = v.safeParse(Preferences, isObject(value) ? value : undefined, { abortPipeEarly: true });
    if (result.success) return result.output;
    const [issue] = result.issues;
    throw unusableFile(this.#file, `${refusedValue(v.getDotPath(issue) ?? 'It', issue.message)}.`);
  }
}

/** A profile that is not kept: the way to a service that no profile names yet. */
export function unkeptProfile(name: string, settings: Settings): Profile {
  return { name, ...valuesIn(viewOf(name, settings, {}).entries) };
}

/** The values of a profile that can be used. */
function valuesIn(entries: ProfileView['entries']): ProfileValues {
  const given = KEY_NAMES.filter((key) => entries[key].value !== undefined);
  return v.parse(ProfileValues, Object.fromEntries(given.map((key) => [key, entries[key].value])));
}

function namesIn({ profiles }: Preferences): string[] {
  return Object.keys({ ...BUILT_IN, ...profiles });
}

function ownSettings(name: string, { profiles }: Preferences): Settings {
  return (Object.hasOwn(profiles, name) && profiles[name]) || {};
}

/** The entries, without token commands where the environment names other services (THREATS.md 49). */
function forItsServices(
  { name, entries }: ProfileView,
  settings: Settings,
): Pick<ProfileView, 'entries'> & Pick<Profile, 'redirectedBy'> {
  const own = viewOf(name, settings, {}).entries;
  const redirectedBy = TOKEN_DESTINATIONS.flatMap((key) => {
    const { value, variable } = entries[key];
    return variable === undefined || value === own[key].value ? [] : [variable];
  });
  const given = TOKEN_COMMANDS.filter((key) => entries[key].value !== undefined);
  if (redirectedBy.length === 0 || given.length === 0) return { entries };
  const withoutCommands = Object.fromEntries(
    given.map((key) => [key, { ...entries[key], value: undefined }]),
  );
  return { entries: { ...entries, ...withoutCommands }, redirectedBy };
}

function checkKnown(name: string, preferences: Preferences): void {
  const known = namesIn(preferences);
  if (known.includes(name)) return;
  throw new Failure('not_found', hinted(`There is no profile ${name}.`, name, known), {
    why: `The profiles are: ${known.join(', ')}.`,
    fix: 'slices-conn profile list',
  });
}

function checkName(name: string): void {
  if (NAME.test(name) && !NO_NAMES.includes(name)) return;
  throw new Failure('usage', 'This is not a valid profile name.', {
    why: NO_NAMES.includes(name)
      ? 'It is reserved.'
      : 'It must be up to 253 lower-case letters, digits, dots, dashes and underscores, and begin with a letter or digit; or a host with its port.',
  });
}

function checkKeys(name: string, keys: readonly ProfileKey[]): void {
  const refused = keys.filter((key) => !takesKey(name, key));
  if (refused.length === 0) return;
  const taken = KEY_NAMES.filter((key) => takesKey(OFFLINE, key)).join(', ');
  throw new Failure('usage', `Profile ${name} does not take ${refused.join(', ')}.`, {
    why: `It is the built-in server, so it takes only ${taken}.`,
  });
}
