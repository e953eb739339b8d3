import type { AuditEntry } from '../allocator/store.ts';
import type { SqlInsert, SqlReader, SqlValue, SqlWrite } from './sql.ts';

/** One row for each decision: who, what, when, and why it was refused. Rows of one link are in order by `seq`. */
export const AUDIT: SqlInsert = {
  into: 'audit',
  columns: {
    link: 'text',
    version: 'bigint',
    at_ms: 'bigint',
    action: 'text',
    granted: 'integer',
    actor: 'text',
    experiment: 'text',
    reservation: 'text',
    start_ms: 'bigint',
    end_ms: 'bigint',
    bandwidth: 'bigint',
    tags: 'text',
    why: 'text',
    times: 'integer',
    minute_ms: 'bigint',
  },
};

/** How many refusals of one experiment in an hour have a row each; those beyond are counted by the minute. */
export const REFUSALS_IN_ROWS = 1000;
const HOUR = 3_600_000;
const MINUTE = 60_000;

/** What an experiment was refused of late. */
interface Tally {
  /** In the last hour, on all links. */
  refusals: number;
  /** The row that counts this minute's on this link. */
  seq: number | undefined;
  /** The same, while it is still to be written. */
  row: SqlValue[] | undefined;
  /** How many there are to add to the row that is there. */
  more: number;
}

/**
 * What a group of decisions leaves in the audit. A granted one carries the version of the link that it made, a refused
 * one the version that it was decided on: read in the order of `seq`, the rows are the link's whole history.
 *
 * Whoever is refused all day does not fill the disk (HOSTILE.md 59): beyond {@link REFUSALS_IN_ROWS} of an experiment in
 * an hour, the first on a link in a minute stands for all that follow in it, with how many they are.
 *
 * @param sql within the transaction that has the link's lock
 * @param before the link's version before the first of them
 */
export async function auditWrites(
  sql: SqlReader,
  link: string,
  before: number,
  entries: readonly AuditEntry[],
): Promise<SqlWrite[]> {
  const tallies = await talliesOf(sql, link, entries);
  const rows: SqlValue[][] = [];
  let version = before;
  for (const { at, action, by, experiment, reservation, demand, tags, why } of entries) {
    if (tags) version += 1;
    const tally = tags ? undefined : tallies.get(experiment);
    if (tally) tally.refusals += 1;
    const counted = tally !== undefined && tally.refusals > REFUSALS_IN_ROWS;
    if (counted && (tally.seq !== undefined || tally.row)) {
      tally.more += 1;
      continue;
    }
    const { start, end, bandwidth } = demand;
    const asked = [start, end, bandwidth];
    const held = tags && JSON.stringify(tags);
    const decided = [link, version, at, action, tags ? 1 : 0, by, experiment, reservation];
    const row = [...decided, ...asked, held, why, 1, counted ? minuteOf(at) : null];
    if (counted) tally.row = row;
    rows.push(row);
  }
  const changes = [...tallies.values()].flatMap(({ seq, row, more }): SqlWrite[] => {
    if (row) row[TIMES] = 1 + more;
    return seq === undefined || more === 0 ? [] : [{ change: COUNT_MORE, values: [seq, more] }];
  });
  return [{ insert: AUDIT, rows }, ...changes];
}

const TIMES = Object.keys(AUDIT.columns).indexOf('times');
const COUNT_MORE = 'UPDATE audit SET times = times + $2 WHERE seq = $1';

async function talliesOf(
  sql: SqlReader,
  link: string,
  entries: readonly AuditEntry[],
): Promise<Map<string, Tally>> {
  const refused = new Map(
    entries.flatMap(({ tags, experiment, at }) => (tags ? [] : [[experiment, at] as const])),
  );
  if (refused.size === 0) return new Map();
  const read = [...refused].map(async ([experiment, at]): Promise<[string, Tally]> => {
    const row = await sql.first(
      `SELECT COALESCE(sum(times), 0) AS refusals, max(CASE WHEN link = $2 AND minute_ms = $3 THEN seq END) AS seq
       FROM audit WHERE experiment = $1 AND granted = 0 AND at_ms > $4`,
      experiment,
      link,
      minuteOf(at),
      at - HOUR,
    );
    const seq = row?.['seq'] ?? undefined;
    const found = { refusals: Number(row?.['refusals']), seq: seq === undefined ? undefined : Number(seq) };
    return [experiment, { ...found, row: undefined, more: 0 }];
  });
  return new Map(await Promise.all(read));
}

function minuteOf(at: number): number {
  return at - (at % MINUTE);
}
