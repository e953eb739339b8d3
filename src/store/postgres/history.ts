import { DATABASE_UNUSABLE, StoreUnavailableError } from '../../allocator/store.ts';

/**
 * Reads where a connection leads. PostgreSQL gives its data folder an identifier when it is made, and begins a new timeline
 * when a standby is promoted. A standby has no timeline of its own: the connection would outlive its promotion unnoticed.
 * Without a new timeline, a server that was started again may have lost commits too: its folder was restored from a
 * snapshot, or it crashed with `synchronous_commit` off.
 */
export const READ_PLACE = `
  SELECT system_identifier || ' ' || (SELECT oid FROM pg_database WHERE datname = current_database()) AS database,
    extract(epoch FROM pg_postmaster_start_time())::text AS started,
    CASE WHEN pg_is_in_recovery() THEN NULL ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline
  FROM pg_control_system()`;

/** A database, the timeline of its history in 8 hexadecimal digits, which sort as text, and when it was started. */
interface Place {
  database: string;
  timeline: string;
  started: string;
}

/**
 * The histories that a pool's connections belong to. Only connections of the latest one are used: once a promoted standby
 * has been seen, the former primary is not written to any more, even where it was not stopped.
 */
export class Histories {
  readonly #of = new WeakMap<object, string>();
  readonly #changed: (from: string, to: string) => void;
  #latest: Place | undefined;

  /** @param changed is told when a connection leads to another database or timeline than those before it: names of both */
  constructor(changed: (from: string, to: string) => void) {
    this.#changed = changed;
  }

  /** The name of the latest history; empty before the first connection. */
  get name(): string {
    return this.#latest ? nameOf(this.#latest) : '';
  }

  /**
   * Notes where a new connection leads.
   *
   * @param row of {@link READ_PLACE}
   * @throws StoreUnavailableError for a standby, and for an earlier timeline of the same database
   */
  enter(
    connection: object,
    { database, timeline, started }: Omit<Place, 'timeline'> & { timeline: string | null },
  ): void {
    if (timeline === null) {
      throw unavailable('The database is a standby, and this server needs the primary.');
    }
    const before = this.#latest;
    if (before?.database === database && timeline < before.timeline) {
      throw unavailable(
        `The database is on timeline ${timeline}, and this server has used timeline ${before.timeline}: it is a former primary. If that one is meant, restart the server.`,
      );
    }
    const place = { database, timeline, started };
    this.#of.set(connection, nameOf(place));
    this.#latest = place;
    const isSame = before?.database === database && before.timeline === timeline;
    if (before && !isSame) {
      this.#changed(`${before.database} ${before.timeline}`, `${database} ${timeline}`);
    }
  }

  /** The name of a connection's history; it stays the same as long as the connection lasts. */
  of(connection: object): string {
    return this.#of.get(connection) ?? '';
  }
}

function unavailable(reason: string): StoreUnavailableError {
  return new StoreUnavailableError(DATABASE_UNUSABLE, { cause: new Error(reason) });
}

function nameOf({ database, timeline, started }: Place): string {
  return `${database} ${timeline} ${started}`;
}
