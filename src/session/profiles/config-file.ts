import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { Failure } from '../../contract/failure.ts';
import { isObject } from '../../contract/json.ts';
import { closeFile, privateFolder } from '../../files/private.ts';
import { Settings } from './profile-values.ts';

const Preferences = v.looseObject({
  /** The profile that is used when none is named. */
  profile: v.exactOptional(v.string()),
  profiles: v.optional(
    v.pipe(v.custom<object>(isObject, 'it is no object'), v.record(v.string(), Settings)),
    {},
  ),
});
/** What `config.json` holds (CLI.md, "Files"); what a later version adds is kept. */
export type Preferences = v.InferOutput<typeof Preferences>;

/**
 * Reads `config.json`. Profiles may name programs to be run, so it must be the user's own, and nobody
 * else may have been able to change it (HOSTILE.md 16, 51).
 *
 * @param folder the configuration folder
 * @throws Failure `state_unusable`
 */
export function readPreferences(folder: string): Preferences {
  if (!existsSync(folder)) return { profiles: {} };
  // Whoever could enter or replace the folder could replace what is in it.
  privateFolder(folder);
  let value: unknown;
  try {
    if (!closeFile(fileIn(folder))) return { profiles: {} };
    value = JSON.parse(readFileSync(fileIn(folder), 'utf8'));
  } catch (cause) {
    throw unusable(folder, cause);
  }
  // Valibot takes a list for an object without members.
  const result = v.safeParse(Preferences, isObject(value) ? value : undefined, { abortPipeEarly: true });
  if (result.success) return result.output;
  const [issue] = result.issues;
  throw unusable(folder, `${v.getDotPath(issue) ?? 'It'}: ${issue.message}`);
}

/**
 * How to write `config.json`, whole or not at all: the file 0600, its folder 0700. What takes its time is done now, so
 * that nothing happens between reading and writing.
 *
 * @throws Failure `state_unusable`, the writing too
 */
export async function preferencesWriter(folder: string): Promise<(preferences: Preferences) => void> {
  const { default: ConfFile } = await import('conf');
  return (preferences) => {
    privateFolder(folder);
    try {
      // A symbolic link would be followed.
      closeFile(fileIn(folder));
      const file = new ConfFile<Record<string, unknown>>({
        cwd: folder,
        configName: 'config',
        configFileMode: 0o600,
        accessPropertiesByDotNotation: false,
      });
      file.store = preferences;
    } catch (cause) {
      throw unusable(folder, cause);
    }
  };
}

function fileIn(folder: string): string {
  return join(folder, 'config.json');
}

function unusable(folder: string, cause: unknown): Failure {
  if (cause instanceof Failure) return cause;
  return new Failure('state_unusable', `The file ${fileIn(folder)} can't be used.`, {
    why: cause instanceof Error ? cause.message : String(cause),
    fix: 'Correct the file, or move it away.',
  });
}
