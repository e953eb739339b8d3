import * as v from 'valibot';
import type { AuditEntry } from '../allocator/store.ts';
import { AUDIT } from './audit.ts';
import { DatabaseFormatError, type SqlDatabase, type SqlRow, type SqlValue } from './sql.ts';

/** Which decisions to read. What is left out does not matter. */
export interface AuditQuery {
  reservation?: string;
  experiment?: string;
  /** Who asked: the `sub` of a user token. */
  by?: string;
  /** See `linkId`. */
  link?: string;
  /** Decided at this instant or later, in milliseconds. */
  since?: number;
  /** Decided before this instant, in milliseconds. */
  until?: number;
  /** Only what was refused. */
  refused?: boolean;
  /** How many at most, the newest of them; 1 or more. */
  limit: number;
}

/** A decision as it is kept. */
export interface AuditRecord extends AuditEntry {
  /** See `linkId`. */
  link: string;
  /** The link's version that it made or, refused, was decided on. */
  version: number;
  granted: boolean;
  /** How many decisions it stands for: more than one for refusals that were counted. */
  count: number;
}

/**
 * Reads decisions, newest last, as of one instant and in portions: however many there are, few are in memory at once.
 * They are in the order in which they were written, which on one link is that of its decisions.
 *
 * @param take is given each portion; the next one waits for it
 * @returns whether older ones match too, and were left out
 * @throws StoreUnavailableError when the database is away
 * @throws DatabaseFormatError when a row can't be what a server wrote
 */
export function readAudit(
  database: Pick<SqlDatabase, 'snapshot'>,
  query: AuditQuery,
  take: (portion: readonly AuditRecord[]) => Promise<void>,
): Promise<boolean> {
  const { where, values } = conditions(query);
  return database.snapshot(async (sql) => {
    const leftOut = await sql.first(
      `SELECT seq FROM audit WHERE ${where} ORDER BY seq DESC LIMIT 1 OFFSET $${values.length + 1}`,
      ...values,
      query.limit,
    );
    const found = sql.portions(
      `SELECT ${READ.join(', ')} FROM audit
       WHERE ${where} AND seq > $${values.length + 1} ORDER BY seq`,
      ...values,
      Number(leftOut?.['seq'] ?? 0),
    );
    for await (const portion of found) await take(portion.map(toRecord));
    return leftOut !== undefined;
  });
}

function conditions(query: AuditQuery): { where: string; values: SqlValue[] } {
  const asked: [condition: string, value: SqlValue | undefined][] = [
    ['reservation =', query.reservation],
    ['experiment =', query.experiment],
    ['actor =', query.by],
    ['link =', query.link],
    ['at_ms >=', query.since],
    ['at_ms <', query.until],
    ['granted =', query.refused ? 0 : undefined],
  ];
  const given = asked.flatMap(([condition, value]) => (value === undefined ? [] : [{ condition, value }]));
  // The first number of a sequence is 1 on either engine.
  const texts = ['seq > 0', ...given.map(({ condition }, index) => `${condition} $${index + 1}`)];
  return { where: texts.join(' AND '), values: given.map(({ value }) => value) };
}

const READ = Object.keys(AUDIT.columns).filter((name) => name !== 'minute_ms');

const Kept = v.object({
  link: v.string(),
  version: v.number(),
  at_ms: v.number(),
  action: v.picklist(['book', 'amend', 'cancel']),
  granted: v.pipe(
    v.picklist([0, 1]),
    v.transform((granted) => granted === 1),
  ),
  actor: v.string(),
  experiment: v.string(),
  reservation: v.nullable(v.string()),
  start_ms: v.number(),
  end_ms: v.number(),
  bandwidth: v.number(),
  tags: v.nullable(
    v.pipe(
      v.string(),
      v.parseJson(),
      v.object({
        site1_s_tag: v.number(),
        site1_c_tag: v.number(),
        site2_s_tag: v.number(),
        site2_c_tag: v.number(),
      }),
    ),
  ),
  why: v.nullable(v.string()),
  times: v.number(),
});

function toRecord(row: SqlRow): AuditRecord {
  const parsed = v.safeParse(Kept, row);
  if (!parsed.success) throw new DatabaseFormatError('A row of the audit is damaged.');
  const {
    at_ms: at,
    actor: by,
    start_ms: start,
    end_ms: end,
    bandwidth,
    times: count,
    ...rest
  } = parsed.output;
  return { ...rest, at, by, count, demand: { start, end, bandwidth } };
}
