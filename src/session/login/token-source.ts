import { basename } from 'node:path';
import { Failure, ownCommand, shellWord } from '../../contract/failure.ts';
import { systemReason } from '../../contract/foreign-errors.ts';
import { inOneText } from '../../contract/said.ts';
import { isTokenText, pastedToken, Secret, withoutSecrets, withoutTokens } from '../../contract/secret.ts';
import { readBounded } from '../../files/bounded.ts';
import type { Variables } from '../profiles/folders.ts';
import type { Settings } from '../profiles/profile.ts';
import type { Profile } from '../profiles/profiles.ts';

/** Where tokens come from, in the words of `status`. */
export type TokenOrigin = 'environment' | 'file' | 'command' | 'login' | 'portal' | 'offline';

/** A source of a token. */
export interface TokenSource {
  readonly origin: TokenOrigin;
  /** For people: the variable, the file, the program. */
  readonly where: string;
  /** The variable of the environment that holds the token or names its file. */
  readonly variable?: string;
  /** Whether it gives the same token until the end, as the environment does, and never renews it. */
  readonly isFixed?: boolean;
  /** The token; not verified. @throws Failure when the source gives none */
  get(): Promise<Secret>;
}

/** The variables of tokens; each has a twin `…_FILE`, for a file (cli/README.md, "Environment"). */
const TOKEN_VARIABLES = [
  'SLICES_CONN_USER_TOKEN',
  'SLICES_CONN_EXPERIMENT_TOKEN',
  'SLICES_CONN_REFRESH_TOKEN',
  'SLICES_CONN_ID_TOKEN',
] as const;
/** A variable that holds a token. */
export type TokenVariable = (typeof TOKEN_VARIABLES)[number];

/** Where a job of GitHub asks for its ID tokens, and with which secret. */
export const ID_TOKEN_REQUEST = ['ACTIONS_ID_TOKEN_REQUEST_URL', 'ACTIONS_ID_TOKEN_REQUEST_TOKEN'] as const;

/**
 * The environment of every program that this one starts for a person: a command, a browser, a program of the system. It has
 * no token that the program did not ask for.
 *
 * @param env of this process
 */
export function childEnvironment(env: Variables): Record<string, string | undefined> {
  const names = new Set<string>(TOKEN_VARIABLES.flatMap((name) => [name, `${name}_FILE`]));
  for (const name of ID_TOKEN_REQUEST) names.add(name);
  return Object.fromEntries(Object.entries(env).filter(([name]) => !names.has(name)));
}

/**
 * A token that the environment gives, for CI; undefined where it gives none. An empty variable counts as
 * unset; see {@link pastedToken}.
 */
export function givenToken(env: Variables, variable: TokenVariable): TokenSource | undefined {
  const text = pastedToken(env[variable] ?? '');
  if (text) {
    return {
      origin: 'environment',
      where: variable,
      variable,
      isFixed: true,
      get: async () => asToken(text, variable),
    };
  }
  const path = env[`${variable}_FILE`];
  if (!path) return undefined;
  const twin = `${variable}_FILE`;
  return {
    origin: 'file',
    where: path,
    variable: twin,
    isFixed: true,
    get: async () => tokenFile(path, twin),
  };
}

/** @param where the text is from, for people */
function asToken(text: string, where: string): Secret {
  if (isTokenText(text)) return new Secret(text);
  throw new Failure('token_invalid', `${where} has no token.`, {
    why: 'A token has printable ASCII characters only, and this text has others.',
  });
}

/** The file is the caller's: its owner and mode are not judged, since runners of CI write any. */
function tokenFile(path: string, variable: string): Secret {
  let text: string;
  try {
    text = pastedToken(readBounded(path).toString());
  } catch (cause) {
    throw new Failure('file_unusable', `The file ${path} that ${variable} names can't be read.`, {
      why: systemReason(cause),
      cause,
    });
  }
  if (text !== '') return asToken(text, `The file ${path} that ${variable} names`);
  throw new Failure('file_unusable', `The file ${path} that ${variable} names is empty.`);
}

/** How long a program may take to give a token, in milliseconds (cli/README.md, "Environment"). */
const COMMAND_TIMEOUT = 30_000;
/** The most that is read of what it prints, in bytes. */
const MAX_OUTPUT = 65_536;

/** The values of `{experiment}` and `{project}` in a token command: ids or names. */
export interface Placeholders {
  experiment?: string | undefined;
  project?: string | undefined;
}

/**
 * A token that a program of the user's gives: run without a shell, its standard output is the token
 * (cli/README.md, "Environment", userTokenCommand, experimentTokenCommand).
 *
 * @param command the program and its arguments, in which `{experiment}` and `{project}` are replaced
 * @param env the environment that it runs in
 */
export function commandToken(
  command: readonly string[],
  placeholders: Placeholders,
  env: NodeJS.ProcessEnv,
): TokenSource {
  const [program = '', ...args] = command;
  const known = (arg: string): string =>
    arg.replace(PLACEHOLDER, (found, name: keyof Placeholders) => placeholders[name] ?? found);
  return {
    origin: 'command',
    where: [program, ...args.map(known)].map(shellWord).join(' '),
    get: async () => run(program, filledIn(args, placeholders), env),
  };
}

/** The official client where a profile's tokens come from it: its name on the PATH, or its path. */
export function officialClient({
  userTokenCommand,
  experimentTokenCommand,
}: Pick<Settings, 'userTokenCommand' | 'experimentTokenCommand'>): string | undefined {
  const programs = [experimentTokenCommand?.[0], userTokenCommand?.[0]];
  return programs.find((program) => program !== undefined && basename(program) === OFFICIAL_CLIENT);
}

/** The failure of a login where the profile's tokens come from elsewhere. */
export function noProvider(profile: Profile): Failure {
  const program = officialClient(profile);
  return new Failure('usage', `Profile ${profile.name} has no identity provider to log in to.`, {
    why:
      program === undefined
        ? 'Give a token in SLICES_CONN_USER_TOKEN, or log in by the address of the service: slices-conn login ADDRESS.'
        : `Its tokens come from ${program}: log in there.`,
    fix: program && [program, 'auth', 'login'].map(shellWord).join(' '),
  });
}

/** The program of SLICES that logs people in. */
export const OFFICIAL_CLIENT = 'slices';

const PLACEHOLDER = /\{(experiment|project)\}/g;

/**
 * Arguments with their placeholders replaced.
 *
 * @throws Failure `usage` without a value, or for a flag as value
 */
export function filledIn(args: readonly string[], placeholders: Placeholders): string[] {
  return args.map((arg) =>
    arg.replace(PLACEHOLDER, (found, name: keyof Placeholders) => {
      const value = placeholders[name];
      if (value === undefined) {
        throw new Failure(
          'usage',
          `The profile's token command needs ${name === 'experiment' ? 'an' : 'a'} ${name}.`,
          {
            why: `None was chosen. Name one with --${name}, in SLICES_CONN_${name.toUpperCase()}, or as ${name} of the profile.`,
            fix: ownCommand(name, 'list'),
          },
        );
      }
      if (arg === found && value.startsWith('-')) {
        throw new Failure('usage', `The ${name} ${JSON.stringify(value)} would be taken for a flag.`);
      }
      return value;
    }),
  );
}

async function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Secret> {
  const { execFile } = await import('node:child_process');
  const words = [program, ...args];
  return new Promise((resolve, reject) => {
    const options = {
      env: childEnvironment(env),
      timeout: COMMAND_TIMEOUT,
      maxBuffer: MAX_OUTPUT,
      killSignal: 'SIGKILL',
    } as const;
    try {
      const child = execFile(program, [...args], options, (error, stdout, stderr) => {
        const token = pastedToken(stdout);
        if (!error && /^[\x21-\x7e]+$/.test(token)) resolve(new Secret(token));
        else reject(commandFailure(words, error, { said: lastLine(stderr, token), came: kindOf(token) }));
      });
      child.stdin?.end();
    } catch (error) {
      // Some invalid paths are thrown synchronously.
      reject(error instanceof Error ? commandFailure(words, error, { said: '', came: '' }) : error);
    }
  });
}

/** What a program printed in place of a token: never its content, which may hold a secret. */
function kindOf(printed: string): string {
  if (printed === '') return 'It printed nothing.';
  const lines = printed.split('\n').length;
  const kind = printed.startsWith('<') ? 'HTML' : /^[[{]/.test(printed) ? 'JSON' : 'text';
  return `It printed ${lines === 1 ? 'a line' : `${lines} lines`} of ${kind}; a token is one line without spaces.`;
}

/** @param told the last line of its errors, and what it printed */
function commandFailure(
  words: readonly string[],
  error: Error | null,
  told: { said: string; came: string },
): Failure {
  const shown = words.map(shellWord).join(' ');
  const said = told.said === '' ? undefined : `It said: ${told.said}`;
  const [program = '', noun] = words;
  const isOfficial = basename(program) === OFFICIAL_CLIENT;
  const fix = !isOfficial
    ? shown
    : `${shellWord(program)} ${noun === 'experiment' ? 'experiment list' : 'auth login'}`;
  const facts = { why: said, fix };
  if (!error) {
    return new Failure('not_logged_in', `${shown} gave no token.`, { why: inOneText(told.came, said), fix });
  }
  const { code, killed } = error as { code?: unknown; killed?: unknown };
  if (typeof code === 'string' && code !== 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') {
    const why =
      code === 'ENOENT'
        ? `There is no program ${program}. Activate its virtual environment, or give its path in the profile.`
        : error.message;
    return new Failure('usage', `${shown}, which should give the token, can't be run.`, {
      why,
    });
  }
  if (killed === true && code !== 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') {
    return new Failure('timeout', `${shown} gave no token within ${COMMAND_TIMEOUT / 1000} s.`, {
      retryable: true,
      ...facts,
    });
  }
  return new Failure('not_logged_in', `${shown} gave no token: it ended with ${String(code)}.`, facts);
}

/** The most of a program's error line that is shown, in characters. */
const MAX_SAID = 500;

/**
 * The last line of a program's errors, without the token that it printed and without anything that looks like
 * one. A long line is cut between words, so that no part of a secret is left.
 */
function lastLine(stderr: string, printed: string): string {
  const line = stderr.trim().split('\n').at(-1) ?? '';
  const words = line.length > MAX_SAID ? `${line.slice(0, line.lastIndexOf(' ', MAX_SAID) + 1)}…` : line;
  const secrets = printed
    .split('\n')
    .map((text) => text.trim())
    .filter((text) => text.length <= words.length);
  return withoutTokens(
    withoutSecrets(
      words,
      secrets.map((text) => new Secret(text)),
    ),
  );
}
