import { type Command, InvalidArgumentError, Option } from 'commander';
import { secondsIn } from '../contract/durations.ts';
import { Failure } from '../contract/failure.ts';
import { isTimeZone } from '../contract/instants.ts';
import type { Folders, Variables } from '../session/profiles/folders.ts';
import { OFFLINE } from '../session/profiles/profile-keys.ts';
import type { Profiles, UnderLock } from '../session/profiles/profiles.ts';
import type { ServiceFlags } from './advice.ts';
import { COLOR_CHOICES, type ColorChoice } from './print/output.ts';

/** The flags that every command takes (cli/README.md, "Global flags"). */
export interface GlobalFlags extends ServiceFlags {
  json?: boolean;
  quiet?: boolean;
  debug?: boolean;
  /** False with `--no-input`. */
  input?: boolean;
  yes?: boolean;
  /** Seconds. */
  timeout?: number;
  color?: ColorChoice;
  tz?: string;
}

/** Their heading in help. */
export const GLOBAL_FLAGS = 'Global flags:';

/**
 * Adds the global flags to the top-level command. Commander reads a program's own options anywhere on the
 * line, so each is accepted before and after the command.
 */
export function addGlobalOptions(program: Command): Command {
  program.optionsGroup(GLOBAL_FLAGS);
  return program
    .option('--profile <name>', 'which services to use')
    .option('--experiment <id|name>', 'the experiment to act in')
    .option('--project <id|name>', 'the project to act in')
    .option('--offline', 'the built-in server inside this process: no network, no login')
    .option('--json', 'print one JSON object')
    .option('--quiet', 'print no notices on stderr')
    .option('--debug', 'say more on stderr; secrets are left out')
    .addOption(new Option('--no-input', 'never ask').default(undefined))
    .option('--yes', 'answer yes to every question')
    .option('--timeout <seconds>', 'how long to wait for a reply', timeoutSeconds)
    .option('--ca-file <file>', 'certificates to trust, in PEM')
    .addOption(new Option('--color <when>', 'when to colour').choices(COLOR_CHOICES))
    .option(
      '--tz <zone>',
      'time zone in which times are read and printed, such as Europe/Brussels',
      timeZone,
    );
}

/** The profile that the flags name. @throws Failure `usage` when they name two */
export function wantedProfile({ offline, profile }: GlobalFlags): string | undefined {
  if (!offline) return profile;
  if (profile === undefined || profile === OFFLINE) return OFFLINE;
  throw new Failure('usage', "--offline and --profile can't be given together.");
}

/** The profiles of this machine. */
export async function openProfiles({
  env: { folders, variables },
  files,
}: {
  env: { folders: Folders; variables: Variables };
  files: { underLock: UnderLock };
}): Promise<Profiles> {
  const { Profiles } = await import('../session/profiles/profiles.ts');
  return new Profiles(folders.config, variables, files.underLock);
}

function timeZone(text: string): string {
  if (isTimeZone(text)) return text;
  throw new InvalidArgumentError('It must be a time zone, such as Europe/Brussels.');
}

/** The flag of commands that would else refuse what a service did not sign. */
export const ALLOW_UNSIGNED = ['--allow-unsigned', 'accept an answer that the service did not sign'] as const;

/** Reads the value of a command's `--wait`: whole seconds, or a duration; up to 999,999 s. */
export function waitSeconds(text: string): number {
  const value = secondsIn(text);
  if (Number.isInteger(value) && value <= 999_999) return value;
  throw new InvalidArgumentError(
    'It must be a whole number of seconds up to 999999, or a duration such as 5m.',
  );
}

function timeoutSeconds(text: string): number {
  const value = secondsIn(text);
  if (value > 0 && value <= 86_400) return value;
  throw new InvalidArgumentError(
    'It must be more than 0 and at most 86400 seconds, or a duration such as 5m.',
  );
}
