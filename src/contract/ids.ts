/** The kinds of identifiers: each has its prefix before the first underscore (contract/README.md, "Connectivity reservation"). */
export const ID_PREFIXES = { user: 'user', project: 'proj', experiment: 'exp', reservation: 'con' } as const;
/** One of `user`, `project`, `experiment`, `reservation`. */
export type IdKind = keyof typeof ID_PREFIXES;
/** An identifier of each kind, for examples. */
export const EXAMPLE_IDS = {
  user: 'user_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
  project: 'proj_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
  experiment: 'exp_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
  reservation: 'con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
} as const satisfies Record<IdKind, string>;

/**
 * The kind of thing that an identifier names, by its prefix; undefined for anything else.
 *
 * @example idKind('con_conn.example.org_01jd3x') // 'reservation'
 */
export function idKind(id: string): IdKind | undefined {
  const [prefix, rest] = id.split('_', 2);
  if (rest === undefined) return undefined;
  return (Object.keys(ID_PREFIXES) as IdKind[]).find((kind) => ID_PREFIXES[kind] === prefix);
}

/** The form of a reservation's name (cli/README.md, "Commands"): 1 to 64 of `a` to `z`, `0` to `9` and `-`, a letter first. */
export const RESERVATION_NAME = /^[a-z][a-z0-9-]{0,63}$/;

/** Crockford's alphabet in lower case: no i, l, o, u, so that an id can be read aloud. */
const BASE32 = '0123456789abcdefghjkmnpqrstvwxyz';

/**
 * A new identifier: the prefix, the host, and 26 characters of lower-case base32 that hold the time in
 * milliseconds (48 bits, so ids sort by age) and 80 random bits, as TypeID and ULID do (contract/README.md,
 * "Decided here").
 *
 * @param host host name without a port, as it stands in the service's base address
 * @param now milliseconds since the Unix epoch
 * @param random ten random bytes
 */
export function newId(kind: IdKind, host: string, now: number, random: Uint8Array): string {
  let bits = BigInt(Math.trunc(now));
  for (const byte of random.subarray(0, 10)) bits = (bits << 8n) | BigInt(byte);
  let opaque = '';
  for (let index = 0; index < 26; index += 1) {
    opaque = (BASE32[Number(bits & 31n)] ?? '') + opaque;
    bits >>= 5n;
  }
  return `${ID_PREFIXES[kind]}_${host}_${opaque}`;
}
