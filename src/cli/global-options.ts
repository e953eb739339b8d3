import { secondsIn } from '../contract/durations.ts';
import { Failure } from '../contract/failure.ts';
import type { OptionsOf, OptionTable } from '../contract/flags.ts';
import { isTimeZone } from '../contract/instants.ts';
import type { Folders, Variables } from '../session/profiles/folders.ts';
import { OFFLINE } from '../session/profiles/profile-keys.ts';
import type { Profiles, UnderLock } from '../session/profiles/profiles.ts';
import { COLOR_CHOICES } from './print/output.ts';

/** Their heading in help. */
export const GLOBAL_FLAGS = 'Global flags:';

/** The flags that every command takes (cli/README.md, "Global flags"), before and after its name. */
export const GLOBAL_OPTIONS = {
  profile: { group: GLOBAL_FLAGS, flags: '--profile <name>', help: 'which services to use' },
  experiment: { flags: '--experiment <id|name>', help: 'the experiment to act in' },
  project: { flags: '--project <id|name>', help: 'the project to act in' },
  offline: { flags: '--offline', help: 'the built-in server inside this process: no network, no login' },
  json: { flags: '--json', help: 'print one JSON object' },
  quiet: { flags: '--quiet', help: 'print no notices on stderr' },
  debug: { flags: '--debug', help: 'say more on stderr; secrets are left out' },
  input: { flags: '--no-input', help: 'never ask' },
  yes: { flags: '--yes', help: 'answer yes to every question' },
  /** Seconds. */
  timeout: { flags: '--timeout <seconds>', help: 'how long to wait for a reply', parse: timeoutSeconds },
  caFile: { flags: '--ca-file <file>', help: 'certificates to trust, in PEM' },
  color: { flags: '--color <when>', help: 'when to colour', choices: COLOR_CHOICES },
  tz: {
    flags: '--tz <zone>',
    help: 'time zone in which times are read and printed, such as Europe/Brussels',
    parse: timeZone,
  },
} as const satisfies OptionTable;
/** The values of {@link GLOBAL_OPTIONS}. */
export type GlobalFlags = OptionsOf<typeof GLOBAL_OPTIONS>;

/** The profile that the flags name. @throws Failure `usage` when they name two */
export function wantedProfile({ offline, profile }: GlobalFlags): string | undefined {
  if (!offline) return profile;
  if (profile === undefined || profile === OFFLINE) return OFFLINE;
  throw new Failure('usage', "--offline and --profile can't be given together.");
}

/** What profiles are read from. */
interface ProfileSource {
  env: { folders: Folders; variables: Variables };
  files: { underLock: UnderLock };
}

/** The profiles of this machine. */
export async function openProfiles({ env, files }: ProfileSource): Promise<Profiles> {
  const { Profiles } = await import('../session/profiles/profiles.ts');
  return new Profiles(env.folders.config, env.variables, files.underLock);
}

function timeZone(text: string): string {
  if (isTimeZone(text)) return text;
  throw new RangeError('It must be a time zone, such as Europe/Brussels.');
}

/** The flag of commands that would else refuse what a service did not sign. */
export const ALLOW_UNSIGNED = {
  allowUnsigned: { flags: '--allow-unsigned', help: 'accept an answer that the service did not sign' },
} as const satisfies OptionTable;

/** Reads the value of a command's `--wait`: whole seconds, or a duration; up to 999,999 s. */
export function waitSeconds(text: string): number {
  const value = secondsIn(text);
  if (Number.isInteger(value) && value <= 999_999) return value;
  throw new RangeError('It must be a whole number of seconds up to 999999, or a duration such as 5m.');
}

function timeoutSeconds(text: string): number {
  const value = secondsIn(text);
  if (value > 0 && value <= 86_400) return value;
  throw new RangeError('It must be more than 0 and at most 86400 seconds, or a duration such as 5m.');
}
