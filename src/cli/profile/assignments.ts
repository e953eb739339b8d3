import * as v from 'valibot';
import { Failure } from '../../contract/failure.ts';
import { nearest } from '../../session/choice.ts';
import { readValue, Settings, valueFault } from '../../session/profiles/profile.ts';
import { isProfileKey, KEY_NAMES, type ProfileKey } from '../../session/profiles/profile-keys.ts';
import type { ProfileChange } from '../../session/profiles/profiles.ts';

const HELP = 'slices-conn profile set --help';

/**
 * Reads the arguments of `profile set`: `KEY=VALUE` sets a key, `KEY=` unsets it (CLI.md, "Files").
 *
 * @throws Failure `usage` for the first faulty one; the message never repeats a value, because it may be a secret
 */
export function parseAssignments(words: readonly string[]): ProfileChange {
  const values = new Map<ProfileKey, unknown>();
  const unset: ProfileKey[] = [];
  for (const word of words) {
    const { key, typed } = parseAssignment(word);
    if (values.has(key) || unset.includes(key)) {
      throw new Failure('usage', `The key ${key} is given twice.`, { fix: HELP });
    }
    if (typed === '') unset.push(key);
    else values.set(key, readChecked(key, typed));
  }
  return { set: v.parse(Settings, Object.fromEntries(values)), unset };
}

function parseAssignment(word: string): { key: ProfileKey; typed: string } {
  const at = word.indexOf('=');
  const key = at === -1 ? word : word.slice(0, at);
  if (!isProfileKey(key)) throw unknownKey(key);
  if (at !== -1) return { key, typed: word.slice(at + 1) };
  throw new Failure('usage', `No value is given for ${key}.`, {
    why: `Write ${key}=VALUE, or ${key}= to unset it.`,
    fix: HELP,
  });
}

function readChecked(key: ProfileKey, typed: string): unknown {
  const value = readValue(key, typed);
  const why = valueFault(key, value);
  if (why === undefined) return value;
  throw new Failure('usage', `This is not a value for ${key}.`, { why, fix: HELP });
}

/** An unknown key may be a part of a value, so only its first 40 characters are shown. */
function unknownKey(key: string): Failure {
  const shown = key.length > 40 ? `${key.slice(0, 40)}…` : key;
  const near = nearest(key, KEY_NAMES);
  const meant = near === undefined ? '' : `Did you mean ${near}? `;
  return new Failure('usage', `A profile has no key ${JSON.stringify(shown)}.`, {
    why: `${meant}The keys are: ${KEY_NAMES.join(', ')}.`,
    fix: HELP,
  });
}
