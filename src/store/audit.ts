import * as v from 'valibot';
import { type Demand, TAG_PLACES } from '../allocator/demand.ts';
import type { AuditEntry } from '../allocator/store.ts';
import { HOUR, MINUTE } from '../contract/durations.ts';
import type { CiAuditEntry } from '../server/identity/ci-rules.ts';
import type { Person } from '../server/identity/user-token.ts';
import { DatabaseFormatError, insertInto, type Locking, type SqlDatabase, type SqlReader } from './sql.ts';

/**
 * The audit: one row for each decision, who, what, when, and why it was refused. Rows of one link are in order by `seq`.
 */
export const AUDIT = insertInto(
  'audit',
  `link text, version bigint, at_ms bigint at, action text, accepted integer, actor text by, experiment text,
   reservation text, start_ms bigint start, end_ms bigint end, bandwidth bigint, tags text, why text, times integer,
   minute_ms bigint minute`,
);

/** How many refusals of one experiment in an hour have a row each; those beyond are counted by the minute. */
const REFUSALS_IN_ROWS = 1000;

/** The recent refusals of an experiment. */
interface Tally {
  /** In the last hour, on all links. */
  refusals: number;
  /** The row in the database that counts this minute's refusals on this link; null where there is none. */
  seq: number | null;
  /** The same row, while it is not written yet. */
  row?: { times: number };
  /** How many refusals to add to the row in the database. */
  more: number;
}

/**
 * The rows that a group of decisions adds to the audit. An accepted decision carries the version of the link that it made,
 * a refused one the version that it was decided on: in the order of `seq`, the rows are the link's whole history.
 *
 * A client that is refused all day does not fill the disk (THREATS.md 59): beyond {@link REFUSALS_IN_ROWS} refusals of an
 * experiment in an hour, one row per link and minute counts them.
 *
 * @param sql within the transaction that has the links' locks
 * @param before the links' versions before the first of them
 * @returns rows for {@link AUDIT}, and values for {@link COUNT_MORE}
 */
export async function auditRows(
  sql: SqlReader,
  before: ReadonlyMap<string, number>,
  entries: readonly AuditEntry[],
): Promise<{ rows: object[]; counted: { seq: number | null; more: number }[] }> {
  const tallies = await talliesOf(sql, entries);
  const rows: object[] = [];
  const versions = new Map(before);
  for (const entry of entries) {
    const { link, at, demand, tags } = entry;
    const version = (versions.get(link) ?? 0) + (tags ? 1 : 0);
    versions.set(link, version);
    const tally = tags ? undefined : tallies.get(tallyOf(entry));
    if (tally) tally.refusals += 1;
    const counted = tally !== undefined && tally.refusals > REFUSALS_IN_ROWS;
    if (counted && tally.row) {
      tally.row.times += 1;
    } else if (counted && tally.seq !== null) {
      tally.more += 1;
    } else {
      const minute = counted ? minuteOf(at) : null;
      const decided = { version, accepted: tags ? 1 : 0, tags: tags && JSON.stringify(tags) };
      const row = { ...demand, ...entry, ...decided, times: 1, minute };
      if (counted) tally.row = row;
      rows.push(row);
    }
  }
  return { rows, counted: [...tallies.values()].filter(({ more }) => more > 0) };
}

/** Counts refusals in a row that is there: `$more` in the row `$seq`. */
export const COUNT_MORE = 'UPDATE audit SET times = times + $more WHERE seq = $seq';

/** Refusals are counted for an experiment on a link. */
function tallyOf({ experiment, link }: AuditEntry): string {
  return JSON.stringify([experiment, link]);
}

async function talliesOf(sql: SqlReader, entries: readonly AuditEntry[]): Promise<Map<string, Tally>> {
  const refused = new Map(entries.flatMap((entry) => (entry.tags ? [] : [[tallyOf(entry), entry]])));
  const read = [...refused].map(async ([tally, { experiment, link, at }]): Promise<[string, Tally]> => {
    const [row = []] = await sql.arrays(
      `SELECT COALESCE(sum(times), 0), max(CASE WHEN link = $link AND minute_ms = $minute THEN seq END)
       FROM audit WHERE experiment = $experiment AND accepted = 0 AND at_ms > $since`,
      { experiment, link, minute: minuteOf(at), since: at - HOUR },
    );
    const [refusals, seq] = row;
    return [tally, { refusals: Number(refusals), seq: seq === null ? null : Number(seq), more: 0 }];
  });
  return new Map(await Promise.all(read));
}

function minuteOf(at: number): number {
  return at - (at % MINUTE);
}

/** The action of rows about CI jobs. They are about no link. */
export const CI_TOKEN = 'ci_token';

/** Adds to the audit that a CI job got a token, or was refused one; see `CiRules.audit`. */
export function auditCiJob(
  database: SqlDatabase,
  locking: Locking,
  { at, accepted, by, experiment, why }: CiAuditEntry,
): Promise<void> {
  const same = { minute: minuteOf(at), by, experiment, accepted: Number(accepted), why };
  return database.transaction(async (sql) => {
    await locking.lockNames(sql, [CI_TOKEN]);
    const counted = await sql.first(
      `UPDATE audit SET times = times + 1 WHERE seq = (
         SELECT max(seq) FROM audit WHERE at_ms >= $minute AND minute_ms = $minute AND action = '${CI_TOKEN}'
           AND actor = $by AND experiment = $experiment AND accepted = $accepted AND why = $why) RETURNING seq`,
      same,
    );
    if (counted) return;
    const nothing = { link: '', version: 0, reservation: null, start: at, end: at, bandwidth: 0, tags: null };
    await sql.insert(AUDIT, [{ ...nothing, ...same, at, action: CI_TOKEN, times: 1 }]);
  });
}

/** Which decisions to read. A condition that is left out matches every decision. */
export interface AuditQuery {
  /** The id of a reservation. */
  reservation?: string;
  /** The name that reservations have now, or had when they were deleted. */
  name?: string;
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
  /** How many at most: the newest; 1 or more. */
  limit: number;
}

/** A decision as it is kept. */
export interface AuditRecord extends Omit<AuditEntry, 'action'> {
  action: AuditEntry['action'] | typeof CI_TOKEN;
  /** The link's version that the decision made or, when it was refused, was decided on. */
  version: number;
  accepted: boolean;
  /** How many decisions it stands for: more than one for refusals that were counted. */
  count: number;
  /** The reservation as it is now, which may go over other links too; null where none was made, or it was forgotten. */
  of: { name: string | null; site1: string; site2: string } | null;
}

/** How many decisions a portion has. */
const PORTION = 1000;

/**
 * Reads decisions as of one instant, newest last: in the order in which they were written, which on one link is the order
 * of its decisions. They come in portions, so that few are in memory at once.
 *
 * @param take is given each portion; the next one waits for it
 * @returns whether older decisions match too, and were left out
 * @throws StoreUnavailableError when the database is away
 * @throws DatabaseFormatError when no server can have written a row
 */
export function readAudit(
  database: Pick<SqlDatabase, 'snapshot'>,
  query: AuditQuery,
  take: (portion: readonly AuditRecord[]) => Promise<void>,
): Promise<boolean> {
  const where = conditionsOf(query);
  return database.snapshot(async (sql) => {
    const leftOut = await sql.first(
      `SELECT seq FROM ${DECISIONS} WHERE ${where} ORDER BY seq DESC LIMIT 1 OFFSET $limit`,
      query,
    );
    let last = Number(leftOut?.['seq'] ?? 0);
    for (;;) {
      const rows = await sql.all<DecisionRow>(
        `SELECT ${DECISION} FROM ${DECISIONS} WHERE ${where} AND seq > $last ORDER BY seq LIMIT ${PORTION}`,
        { ...query, last },
      );
      if (rows.length > 0) await take(rows.map(toRecord));
      if (rows.length < PORTION) return leftOut !== undefined;
      last = rows.at(-1)?.seq ?? last;
    }
  });
}

/** The names of a server's own users, by their ids; none where the users are another provider's. @throws as readAudit */
export function readNames(database: Pick<SqlDatabase, 'snapshot'>): Promise<ReadonlyMap<string, string>> {
  return database.snapshot(async (sql) => {
    const rows = await sql.all<Person>('SELECT id, name FROM person');
    return new Map(rows.map(({ id, name }) => [id, name]));
  });
}

/** What the members of a query ask for. */
const CONDITIONS: Readonly<Record<Exclude<keyof AuditQuery, 'limit'>, string>> = {
  reservation: 'audit.reservation = $reservation',
  name: 'reservation.name = $name',
  experiment: 'audit.experiment = $experiment',
  by: 'audit.actor = $by',
  link: 'audit.link = $link',
  // Without an index: the pages go by number, and another order would be sorted anew for each.
  since: 'audit.at_ms + 0 >= $since',
  until: 'audit.at_ms + 0 < $until',
  refused: 'audit.accepted + 0 = 0',
};

function conditionsOf(query: AuditQuery): string {
  const asked = new Map<string, unknown>(Object.entries(query));
  const conditions = Object.entries(CONDITIONS).flatMap(([name, condition]) =>
    (asked.get(name) ?? false) === false ? [] : condition,
  );
  // The first number of a sequence is 1 on either engine.
  return ['seq > 0', ...conditions].join(' AND ');
}

const DECISIONS = 'audit LEFT JOIN reservation ON reservation.id = audit.reservation';
const DECISION = `seq, audit.link, audit.version, audit.at_ms AS at, audit.action, audit.accepted, audit.actor AS "by",
  audit.experiment, audit.reservation, audit.start_ms AS start, audit.end_ms AS "end", audit.bandwidth, audit.tags,
  audit.why, audit.times AS count, reservation.name, reservation.site1, reservation.site2`;

interface DecisionRow extends Omit<AuditRecord, 'accepted' | 'demand' | 'tags' | 'of'>, Demand {
  seq: number;
  accepted: number;
  tags: string | null;
  name: string | null;
  site1: string | null;
  site2: string | null;
}

const HeldTags = v.nullable(
  v.pipe(v.string(), v.parseJson(), v.object(v.entriesFromList(TAG_PLACES, v.number()))),
);

function toRecord(row: DecisionRow): AuditRecord {
  const { seq: _, start, end, bandwidth, name, site1, site2, ...rest } = row;
  const tags = v.safeParse(HeldTags, row.tags);
  if (!tags.success) throw new DatabaseFormatError('A row of the audit is damaged.');
  const of = site1 === null || site2 === null ? null : { name, site1, site2 };
  return { ...rest, accepted: row.accepted === 1, tags: tags.output, of, demand: { start, end, bandwidth } };
}
