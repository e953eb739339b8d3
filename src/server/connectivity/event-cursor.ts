import { createHash } from 'node:crypto';
import * as v from 'valibot';
import type { LinkVersion, StoreSnapshot } from '../../allocator/store.ts';
import { readJson } from '../../contract/json.ts';

/** Up to where a stream has told what happened. */
export interface Position {
  /** See `StoreSnapshot.history`. */
  history: string;
  /** Each link's version, by its id, in the order of the ids. */
  versions: ReadonlyMap<string, number>;
  /** Up to when reservations have started and ended, in milliseconds since the Unix epoch. */
  at: number;
}

/**
 * The position of a snapshot.
 *
 * @param links those of the topology: a link that nobody has booked has no row
 */
export function positionOf(
  { history }: Pick<StoreSnapshot, 'history'>,
  { rows, links, at }: { rows: readonly LinkVersion[]; links: readonly string[]; at: number },
): Position {
  const known = new Map(rows.map(({ id, version }) => [id, version]));
  const ids = [...new Set([...links, ...known.keys()])].toSorted();
  return { history, versions: new Map(ids.map((id) => [id, known.get(id) ?? 0])), at };
}

/**
 * A position as a text, opaque to clients: a digest of what must be the same, the instant, and the versions. It tells nothing
 * of the database, and fits a header with hundreds of links.
 */
export function encodeCursor({ history, versions, at }: Position): string {
  const text = JSON.stringify([digestOf(history, versions), at, ...versions.values()]);
  return Buffer.from(text).toString('base64url');
}

/**
 * The position that a cursor stands for.
 *
 * @param present where the stream goes on from there
 * @returns undefined for a cursor of another history or other links, from after the present, and for a text that is none
 */
export function decodeCursor(cursor: string, present: Position): Position | undefined {
  const reading = readJson(Buffer.from(cursor, 'base64url'));
  const read = v.safeParse(Cursor, reading.ok ? reading.value : undefined);
  if (!read.success) return undefined;
  const [digest, at, ...versions] = read.output;
  const links = [...present.versions];
  if (digest !== digestOf(present.history, present.versions) || versions.length !== links.length)
    return undefined;
  if (links.some(([, latest], index) => (versions[index] ?? 0) > latest)) return undefined;
  const known = new Map(links.map(([id], index) => [id, versions[index] ?? 0]));
  return { history: present.history, versions: known, at };
}

const Count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const Cursor = v.tupleWithRest([v.string(), Count], Count);

function digestOf(history: string, versions: Position['versions']): string {
  const text = JSON.stringify([history, ...versions.keys()]);
  return createHash('sha256').update(text).digest('base64url').slice(0, 11);
}
