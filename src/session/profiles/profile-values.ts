import { isAbsolute } from 'node:path';
import * as v from 'valibot';
import {
  KEY_NAMES,
  type KeyDeclaration,
  type KeyKind,
  PROFILE_KEYS,
  type ProfileKey,
} from './profile-keys.ts';

/** The longest value, in characters. */
const MAX_LENGTH = 4096;
/** The most words of a command. */
const MAX_WORDS = 64;

/** What any text may be: something to read, and no token, which would be a secret in a file that promises none. */
const text = (message: string) =>
  v.pipe(
    v.string(message),
    v.minLength(1, message),
    v.maxLength(MAX_LENGTH, `It is too long: ${MAX_LENGTH} characters are the most.`),
    v.check((found) => !/\p{Cc}/u.test(found), 'It holds control characters.'),
    v.check(
      (found) => !/\beyJ[\w-]+\.[\w-]+\./.test(found),
      'It holds a token, and a profile keeps no secret.',
    ),
  );
const patterned = (pattern: RegExp, message: string) => v.pipe(text(message), v.regex(pattern, message));

const ADDRESS = 'It must be an https:// or http:// address, without user, password, query or fragment.';
const HEADER = 'It must be the name of an HTTP header, such as Slices-Experiment-Token.';
const COMMAND = 'It must be a JSON array of texts, such as ["slices","experiment","jwt","{experiment}"].';
const FILE = 'It must be an absolute path, since commands are run in any folder.';

/** Headers that say something else already, to the service or to those on the way to it. */
const TAKEN_HEADERS = new Set([
  'accept',
  'authorization',
  'connection',
  'content-length',
  'content-type',
  'cookie',
  'expect',
  'host',
  'idempotency-key',
  'keep-alive',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

interface Kind {
  schema: v.GenericSchema;
  /** How typed text becomes the value; it is the value where this is left out. */
  read?: (typed: string) => unknown;
}

/** Every kind of value: what it must be, and how what a person types becomes it. */
const KINDS = {
  address: {
    schema: v.pipe(text(ADDRESS), v.check(isAddress, ADDRESS)),
    read: (typed: string) => (isAddress(typed) ? withoutSlash(new URL(typed).href) : typed),
  },
  // RFC 6749 A.1 allows spaces too, which would be taken for an end of it where logins are kept.
  client: { schema: patterned(/^[\x21-\x7e]+$/, 'It must be ASCII characters without spaces.') },
  // RFC 6749 §3.3.
  scope: {
    schema: patterned(
      /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/,
      'It must be words separated by single spaces.',
    ),
  },
  // It is a part of an address.
  group: {
    schema: patterned(
      /^[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?$/,
      'It must be letters, digits, dots, dashes and underscores.',
    ),
  },
  // RFC 9110 §5.1.
  header: {
    schema: v.pipe(
      patterned(/^[\w!#$%&'*+.^`|~-]+$/, HEADER),
      v.check((name) => !TAKEN_HEADERS.has(name.toLowerCase()), 'That header has another purpose.'),
    ),
  },
  placement: { schema: v.picklist(['user', 'experiment'], 'It must be user or experiment.') },
  command: {
    schema: v.pipe(
      v.array(text(COMMAND), COMMAND),
      v.minLength(1, COMMAND),
      v.maxLength(MAX_WORDS, `It is too long: ${MAX_WORDS} words are the most.`),
      v.readonly(),
    ),
    read: fromJson,
  },
  file: { schema: v.pipe(text(FILE), v.check(isAbsolute, FILE)) },
  switch: {
    schema: v.boolean('It must be true or false.'),
    read: (typed: string) => (typed === 'true' || typed === 'false' ? typed === 'true' : typed),
  },
  name: { schema: text('It must be an id or a name.') },
} satisfies Record<KeyKind, Kind>;

type SchemaOf<Key extends ProfileKey> = (typeof KINDS)[(typeof PROFILE_KEYS)[Key]['kind']]['schema'];
/** The keys that are always there: those with a default, and those that a profile is of no use without. */
type CertainKey = {
  [Key in ProfileKey]: (typeof PROFILE_KEYS)[Key] extends { needed: true } | { default: unknown }
    ? Key
    : never;
}[ProfileKey];

function entries<Entries>(
  entryOf: (key: ProfileKey) => v.GenericSchema | v.ExactOptionalSchema<v.GenericSchema, undefined>,
): Entries {
  return Object.fromEntries(KEY_NAMES.map((key) => [key, entryOf(key)])) as Entries;
}

/** What `config.json` says about a profile: any of the keys; what a later version adds is kept. */
export const Settings = v.looseObject(
  entries<{ [Key in ProfileKey]: v.ExactOptionalSchema<SchemaOf<Key>, undefined> }>((key) =>
    v.exactOptional(schemaOf(key)),
  ),
);
/** See {@link Settings}. */
export type Settings = v.InferOutput<typeof Settings>;

/** A profile's values with everything in place. */
export const ProfileValues = v.object(
  entries<
    { [Key in CertainKey]: SchemaOf<Key> } & {
      [Key in Exclude<ProfileKey, CertainKey>]: v.ExactOptionalSchema<SchemaOf<Key>, undefined>;
    }
  >((key) => {
    const { needed, default: preset }: KeyDeclaration = PROFILE_KEYS[key];
    return needed || preset !== undefined ? schemaOf(key) : v.exactOptional(schemaOf(key));
  }),
);
/** See {@link ProfileValues}. */
export type ProfileValues = v.InferOutput<typeof ProfileValues>;

/** A key's value as typed. What can't be read comes back as it is, for {@link valueFault}. */
export function readValue(key: ProfileKey, typed: string): unknown {
  const { read }: Kind = KINDS[PROFILE_KEYS[key].kind];
  return read && typed.length <= MAX_LENGTH ? read(typed) : typed;
}

/**
 * What is wrong with a key's value; undefined when nothing is.
 *
 * @returns a sentence that does not repeat the value, since it may hold a secret
 */
export function valueFault(key: ProfileKey, value: unknown): string | undefined {
  const result = v.safeParse(schemaOf(key), value, { abortPipeEarly: true });
  return result.success ? undefined : result.issues[0].message;
}

function withoutSlash(address: string): string {
  return address.replace(/\/+$/, '');
}

function schemaOf(key: ProfileKey): v.GenericSchema {
  return KINDS[PROFILE_KEYS[key].kind].schema;
}

function isAddress(found: string): boolean {
  if (!/^https?:\/\/[^\s\p{Cc}\p{Cf}?#]+$/iu.test(found) || !URL.canParse(found)) return false;
  const { username, password } = new URL(found);
  return username === '' && password === '';
}

function fromJson(typed: string): unknown {
  try {
    return JSON.parse(typed);
  } catch {
    return typed;
  }
}
