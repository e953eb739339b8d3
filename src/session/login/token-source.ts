import { readFileSync } from 'node:fs';
import { Failure } from '../../contract/failure.ts';
import { Secret } from '../../contract/secret.ts';
import type { Environment } from '../profiles/folders.ts';

/** Where tokens come from, in the words of `status`. */
export const TOKEN_ORIGINS = ['environment', 'file', 'command', 'login', 'portal', 'offline'] as const;
/** One of {@link TOKEN_ORIGINS}. */
export type TokenOrigin = (typeof TOKEN_ORIGINS)[number];

/** A place that a token is had from. */
export interface TokenSource {
  readonly origin: TokenOrigin;
  /** For people: the variable, the file, the program. */
  readonly where: string;
  /** The token; not verified. @throws Failure when it can't be had */
  get(): Promise<Secret>;
}

/** The variables that may hold a token; each has a twin `…_FILE` that names a file with it (CLI.md, "Environment"). */
export type TokenVariable = 'SLICES_CONN_USER_TOKEN' | 'SLICES_CONN_EXPERIMENT_TOKEN';

/**
 * A token that the environment gives, for CI; undefined where it gives none. An empty variable counts as unset. White
 * space around the token is dropped, since files and secrets end in newlines.
 */
export function givenToken(env: Environment, variable: TokenVariable): TokenSource | undefined {
  const text = env[variable]?.trim();
  if (text) return { origin: 'environment', where: variable, get: async () => new Secret(text) };
  const path = env[`${variable}_FILE`];
  if (!path) return undefined;
  return { origin: 'file', where: path, get: async () => tokenFile(path, `${variable}_FILE`) };
}

function tokenFile(path: string, variable: string): Secret {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch (cause) {
    throw new Failure('file_unusable', `The file ${path} that ${variable} names can't be read.`, {
      why: cause instanceof Error ? cause.message : String(cause),
      cause,
    });
  }
  if (text !== '') return new Secret(text);
  throw new Failure('file_unusable', `The file ${path} that ${variable} names is empty.`);
}
