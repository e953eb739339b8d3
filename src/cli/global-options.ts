import { type Command, InvalidArgumentError, Option } from 'commander';
import { COLOR_CHOICES, type ColorChoice } from './color.ts';

/** The flags that every command takes (CLI.md, "Global flags"). */
export interface GlobalFlags {
  profile?: string;
  experiment?: string;
  project?: string;
  offline?: boolean;
  json?: boolean;
  quiet?: boolean;
  debug?: boolean;
  /** False with `--no-input`. */
  input?: boolean;
  yes?: boolean;
  /** Seconds. */
  timeout?: number;
  caFile?: string;
  color?: ColorChoice;
  tz?: string;
}

const GLOBAL_OPTIONS = (): Option[] => [
  new Option('--profile <name>', 'which services to speak to'),
  new Option('--experiment <id|name>', 'the experiment to act in'),
  new Option('--project <id|name>', 'the project to act in'),
  new Option('--offline', 'use the built-in server inside this process: no network, no login'),
  new Option('--json', 'print one JSON object'),
  new Option('--quiet', 'no notices on stderr'),
  new Option('--debug', 'say more on stderr; secrets are left out'),
  new Option('--no-input', 'never ask').default(undefined),
  new Option('--yes', 'answer yes to every question'),
  new Option('--timeout <seconds>', 'how long to wait for a reply').argParser(seconds),
  new Option('--ca-file <file>', 'certificates to trust, in PEM'),
  new Option('--color <when>', 'when to colour').choices(COLOR_CHOICES),
  new Option('--tz <zone>', 'time zone of times without an offset, such as Europe/Brussels'),
];

/** The top-level command shows the global flags; the others take them and point there. */
export function addGlobalOptions(command: Command, { shown }: { shown: boolean }): Command {
  for (const option of GLOBAL_OPTIONS()) command.addOption(shown ? option : option.hideHelp());
  return command;
}

function seconds(text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0 && value <= 86_400) return value;
  throw new InvalidArgumentError('It must be a number of seconds from 0 to 86400.');
}
