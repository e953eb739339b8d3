import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type Conf from 'conf';
import * as v from 'valibot';
import type { TokenPlacement } from '../client/connectivity.ts';
import { Failure } from '../contract/failure.ts';
import { isObject } from '../contract/json.ts';
import { EXPERIMENT_TOKEN_HEADER, EXPERIMENTS_API_GROUP, PROJECTS_API_GROUP } from '../contract/routes.ts';
import { type Environment, privateFolder } from './folders.ts';
import { OFFLINE, OFFLINE_URL } from './offline.ts';

const Settings = v.looseObject({
  baseUrl: v.optional(v.string()),
  portalUrl: v.optional(v.string()),
  authUrl: v.optional(v.string()),
  clientId: v.optional(v.string()),
  projectsApiGroup: v.optional(v.string()),
  experimentsApiGroup: v.optional(v.string()),
  experimentTokenHeader: v.optional(v.string()),
  tokenPlacement: v.optional(v.picklist(['user', 'experiment'])),
  project: v.optional(v.string()),
  experiment: v.optional(v.string()),
});
/** What a profile may set; what it does not has a default (CLI.md, "Files"). */
export type Settings = v.InferOutput<typeof Settings>;

const Preferences = v.looseObject({
  profile: v.optional(v.string()),
  profiles: v.optional(
    v.pipe(v.custom<object>(isObject, 'it is no object'), v.record(v.string(), Settings)),
    {},
  ),
});
type Preferences = v.InferOutput<typeof Preferences>;

/** A profile with everything in place. */
export interface Profile {
  name: string;
  baseUrl: string;
  portalUrl: string;
  authUrl: string;
  clientId: string;
  projectsApiGroup: string;
  experimentsApiGroup: string;
  experimentTokenHeader: string;
  tokenPlacement: TokenPlacement;
  /** Id or name of the chosen project. */
  project?: string;
  /** Id or name of the chosen experiment. */
  experiment?: string;
}

const LOCAL_URL = 'http://127.0.0.1:4280';

/** The profiles that need no file. `slices` has no addresses: nothing guesses a host that would receive a token. */
const BUILT_IN: Readonly<Record<string, Settings>> = {
  local: { baseUrl: LOCAL_URL, portalUrl: `${LOCAL_URL}/portal`, authUrl: `${LOCAL_URL}/auth` },
  [OFFLINE]: { baseUrl: OFFLINE_URL, portalUrl: `${OFFLINE_URL}/portal`, authUrl: `${OFFLINE_URL}/auth` },
  slices: {},
};

const OVERRIDES = {
  baseUrl: 'SLICES_CONN_BASE_URL',
  portalUrl: 'SLICES_CONN_PORTAL_URL',
  authUrl: 'SLICES_CONN_AUTH_URL',
  clientId: 'SLICES_CONN_CLIENT_ID',
  projectsApiGroup: 'SLICES_CONN_PROJECTS_API_GROUP',
  experimentsApiGroup: 'SLICES_CONN_EXPERIMENTS_API_GROUP',
  project: 'SLICES_CONN_PROJECT',
} as const satisfies Partial<Record<keyof Settings, string>>;

/** Profiles and preferences in `config.json` (CLI.md, "Files"): no secret, mode 0600. */
export class Profiles {
  readonly #folder: string;
  readonly #env: Environment;

  constructor(folder: string, env: Environment) {
    this.#folder = folder;
    this.#env = env;
  }

  /**
   * The profile to use: by `wanted`, else `SLICES_CONN_PROFILE`, else the preferred one, else `local`; its settings
   * overridden by the environment.
   *
   * @throws Failure `usage` for an unknown profile or one without addresses, `state_unusable` for a file that can't
   *   be read
   */
  async resolve(wanted: string | undefined): Promise<Profile> {
    const preferences = this.#read();
    const name = wanted ?? this.#variable('SLICES_CONN_PROFILE') ?? preferences.profile ?? 'local';
    const profiles: Readonly<Record<string, Settings>> = { ...BUILT_IN, ...preferences.profiles };
    if (!Object.hasOwn(profiles, name)) {
      const known = Object.keys(profiles).join(', ');
      throw new Failure('usage', `There is no profile ${name}.`, { why: `The profiles are: ${known}.` });
    }
    const settings = this.#settings(name, preferences.profiles[name]);
    const { baseUrl, portalUrl, authUrl } = settings;
    if (!baseUrl || !portalUrl || !authUrl) {
      throw new Failure('usage', `Profile ${name} has no addresses yet.`, {
        why: 'The addresses of a deployment are never guessed, since they would receive tokens.',
        fix: 'SLICES_CONN_BASE_URL=… SLICES_CONN_PORTAL_URL=… SLICES_CONN_AUTH_URL=… slices-conn …',
      });
    }
    const experiment =
      this.#variable('SLICES_CONN_EXPERIMENT') ?? this.#variable('SLICES_EXPERIMENT') ?? settings.experiment;
    return {
      name,
      baseUrl: withoutSlash(baseUrl),
      portalUrl: withoutSlash(portalUrl),
      authUrl: withoutSlash(authUrl),
      clientId: settings.clientId ?? 'slices-conn',
      projectsApiGroup: settings.projectsApiGroup ?? PROJECTS_API_GROUP,
      experimentsApiGroup: settings.experimentsApiGroup ?? EXPERIMENTS_API_GROUP,
      experimentTokenHeader: settings.experimentTokenHeader ?? EXPERIMENT_TOKEN_HEADER,
      tokenPlacement: settings.tokenPlacement ?? 'user',
      ...(settings.project === undefined ? {} : { project: settings.project }),
      ...(experiment === undefined ? {} : { experiment }),
    };
  }

  /** The names of all profiles. @throws Failure `state_unusable` for a file that can't be read */
  names(): string[] {
    return Object.keys({ ...BUILT_IN, ...this.#read().profiles });
  }

  /** Keeps a profile's choice of project or experiment. @throws Failure `state_unusable` */
  async choose(name: string, choice: { project?: string; experiment?: string }): Promise<void> {
    const { profiles } = this.#read();
    const file = await this.#open();
    file.set('profiles', { ...profiles, [name]: { ...profiles[name], ...choice } });
  }

  /** The built-in server is only ever itself: neither a variable nor a file can point its profile elsewhere. */
  #settings(name: string, own: Settings = {}): Settings {
    if (name === OFFLINE) {
      const project = this.#variable('SLICES_CONN_PROJECT') ?? own.project;
      const { experiment } = own;
      return {
        ...BUILT_IN[OFFLINE],
        ...(project === undefined ? {} : { project }),
        ...(experiment === undefined ? {} : { experiment }),
      };
    }
    const overridden = Object.entries(OVERRIDES).flatMap(([key, variable]) => {
      const value = this.#variable(variable);
      return value === undefined ? [] : [[key, value]];
    });
    return { ...BUILT_IN[name], ...own, ...Object.fromEntries(overridden) };
  }

  /** A variable of the environment; an empty one counts as unset. */
  #variable(name: string): string | undefined {
    return this.#env[name] || undefined;
  }

  #read(): Preferences {
    const path = join(this.#folder, 'config.json');
    if (!existsSync(path)) return { profiles: {} };
    let value: unknown;
    try {
      value = JSON.parse(readFileSync(path, 'utf8'));
    } catch (cause) {
      throw this.#unusable(cause instanceof Error ? cause.message : String(cause));
    }
    // Valibot takes a list for an object without members.
    const result = v.safeParse(Preferences, isObject(value) ? value : undefined);
    if (result.success) return result.output;
    const [issue] = result.issues;
    throw this.#unusable(`${v.getDotPath(issue) ?? 'It'}: ${issue.message}`);
  }

  async #open(): Promise<Conf<Record<string, unknown>>> {
    const { default: ConfFile } = await import('conf');
    privateFolder(this.#folder);
    try {
      return new ConfFile<Record<string, unknown>>({
        cwd: this.#folder,
        configName: 'config',
        configFileMode: 0o600,
        accessPropertiesByDotNotation: false,
      });
    } catch (cause) {
      throw this.#unusable(cause instanceof Error ? cause.message : String(cause));
    }
  }

  #unusable(why: string): Failure {
    return new Failure('state_unusable', `The file ${join(this.#folder, 'config.json')} can't be read.`, {
      why,
      fix: 'Correct the file, or move it away.',
    });
  }
}

function withoutSlash(address: string): string {
  return address.replace(/\/+$/, '');
}
