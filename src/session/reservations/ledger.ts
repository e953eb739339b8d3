import * as v from 'valibot';
import { Failure } from '../../contract/failure.ts';
import { readJson } from '../../contract/json.ts';
import { type Reservation, ReservationReply } from '../../contract/reservation.ts';
import { type ChangeItem, ReservationRequest } from '../../contract/reservation-request.ts';

/** A value that a ledger's database takes. */
type SqlValue = string | number | null;

/** The database that a ledger is kept in: durable at the end of each transaction, for several processes at once. */
export interface LedgerDatabase {
  transaction<Answer>(
    work: (sql: {
      run(sql: string, ...values: SqlValue[]): Promise<void>;
      all(sql: string, ...values: SqlValue[]): Promise<Record<string, unknown>[]>;
    }) => Promise<Answer>,
  ): Promise<Answer>;
  close(): Promise<void>;
}

const OUTCOMES = ['unknown', 'booked', 'refused', 'deleted'] as const;
const ASKED = ['reserve', 'update', 'delete'] as const;

const Row = v.object({
  experiment: v.string(),
  key: v.string(),
  asked: v.picklist(ASKED),
  asked_ms: v.number(),
  began_ms: v.number(),
  requested: v.nullable(v.string()),
  pending: v.nullable(v.string()),
  outcome: v.picklist(OUTCOMES),
  reservation_id: v.nullable(v.string()),
  reservation: v.nullable(v.string()),
  token: v.nullable(v.string()),
});

/** A request as its column has it. */
const Typed = v.object({ ...ReservationRequest.entries, typedTimes: v.optional(v.string()) });

/** One reservation that this machine asked for, and what it knows of it. */
export interface LedgerEntry {
  experiment: string;
  /** The `Idempotency-Key` that it was asked for with. */
  key: string;
  /** The last request, and when it was made, in milliseconds. */
  asked: (typeof ASKED)[number];
  askedAt: number;
  /** When the reservation was asked for first, in milliseconds, and as what. */
  beganAt: number;
  requested: ReservationRequest | null;
  /** The words in which its times were typed, such as `+2h`; they mean the times in `requested`. */
  typedTimes?: string;
  /** An update that was sent and not answered yet. */
  pending: ReservationRequest | null;
  /** `unknown`: it was sent, and no answer is known. */
  outcome: (typeof OUTCOMES)[number];
  id: string | undefined;
  /** As the service answered last. */
  reservation: Reservation | undefined;
  token: string | undefined;
}

/** Names one attempt. */
export interface AttemptName {
  experiment: string;
  key: string;
}

/** An answer of the service about a reservation. */
export interface Answered {
  reservation: Reservation;
  /** Null where nothing was signed. */
  token: string | null;
}

const COLUMNS =
  'experiment, key, asked, asked_ms, began_ms, requested, pending, outcome, reservation_id, reservation, token' as const;

/**
 * The requests of this machine to one connectivity service. Each is on disk before it is sent, and its outcome after
 * (cli/README.md, "Files"). After a crash in between, the outcome is unknown.
 *
 * Every method throws Failure `state_unusable` when the file can't be used.
 */
export class Ledger {
  readonly #database: LedgerDatabase;
  readonly #service: string;

  /** @param service the `{base_url}` of the service */
  constructor(database: LedgerDatabase, service: string) {
    this.#database = database;
    this.#service = service;
  }

  /** Writes several things down in one transaction: all of them are on disk, or none. */
  async together<Answer>(work: (ledger: Ledger) => Promise<Answer>): Promise<Answer> {
    return this.#database.transaction((sql) => {
      const joined: LedgerDatabase = { transaction: (inner) => inner(sql), close: async () => undefined };
      return work(new Ledger(joined, this.#service));
    });
  }

  /**
   * Writes down what is about to be asked for.
   *
   * @param name of an update or a deletion: for a reservation that this machine did not create itself
   * @param now milliseconds
   * @param typedTimes of a create: see {@link LedgerEntry}. Where its key made a reservation before, the service forgets the key
   *   as it would have
   */
  async begin(item: ChangeItem, name: AttemptName, now: number, typedTimes?: string): Promise<void> {
    const { experiment, key } = name;
    if (item.action === 'create') {
      await this.#run(
        `INSERT INTO attempt (service, experiment, key, asked, asked_ms, began_ms, requested, outcome)
         VALUES ($1, $2, $3, 'reserve', $4, $4, $5, 'unknown')
         ON CONFLICT (service, experiment, key) DO UPDATE SET asked = 'reserve', asked_ms = $4,
           began_ms = iif(reservation_id IS NULL, $4, began_ms), requested = $5, outcome = 'unknown'`,
        experiment,
        key,
        now,
        JSON.stringify({ ...item.request, typedTimes }),
      );
      return;
    }
    await this.#run(
      `INSERT INTO attempt (service, experiment, key, asked, asked_ms, began_ms, pending, outcome, reservation_id)
       VALUES ($1, $2, $3, $4, $5, $5, $6, 'unknown', $7)
       ON CONFLICT (service, reservation_id) WHERE reservation_id IS NOT NULL
       DO UPDATE SET asked = $4, asked_ms = $5, pending = $6, outcome = 'unknown',
         was = CASE outcome WHEN 'unknown' THEN was ELSE outcome END,
         was_asked = CASE outcome WHEN 'unknown' THEN was_asked ELSE asked END,
         was_asked_ms = CASE outcome WHEN 'unknown' THEN was_asked_ms ELSE asked_ms END`,
      experiment,
      key,
      item.action,
      now,
      item.action === 'update' ? JSON.stringify(item.request) : null,
      item.id,
    );
  }

  /** The service answered an attempt with a reservation. */
  async booked({ experiment, key }: AttemptName, { reservation, token }: Answered): Promise<void> {
    const { id } = reservation;
    const answer = JSON.stringify(reservation);
    await this.#database.transaction(async ({ run }) => {
      // The ledger may hold the same reservation under another key: the service gave it before.
      await run(
        'DELETE FROM attempt WHERE service = $1 AND reservation_id = $2 AND key <> $3',
        this.#service,
        id,
        key,
      );
      await run(
        `UPDATE attempt SET outcome = 'booked', was = NULL, reservation_id = $4, reservation = $5,
           token = iif(reservation_id = $4, coalesce($6, token), $6)
         WHERE service = $1 AND experiment = $2 AND key = $3`,
        this.#service,
        experiment,
        key,
        id,
        answer,
        token,
      );
    });
  }

  /** A reservation was created, but its proof does not verify: the outcome stays unknown. */
  async named({ experiment, key }: AttemptName, id: string): Promise<void> {
    await this.#run(
      `UPDATE OR IGNORE attempt SET reservation_id = $4 WHERE service = $1 AND experiment = $2 AND key = $3`,
      experiment,
      key,
      id,
    );
  }

  /** Nothing was made, for certain. */
  async refused({ experiment, key }: AttemptName): Promise<void> {
    await this.#run(
      `UPDATE attempt SET outcome = 'refused' WHERE service = $1 AND experiment = $2 AND key = $3
         AND outcome = 'unknown'`,
      experiment,
      key,
    );
  }

  /** A change or deletion was refused: the reservation is as it was before. */
  async changeRefused(id: string): Promise<void> {
    const own = 'service = $1 AND reservation_id = $2 AND outcome = ';
    // This machine did not book it and has no answer about it, so the row would say nothing.
    const empty = 'reservation IS NULL AND requested IS NULL';
    const asked = `asked = iif(was IS NULL, asked, coalesce(was_asked, asked)),
      asked_ms = iif(was IS NULL, asked_ms, coalesce(was_asked_ms, asked_ms))`;
    const asBefore = `outcome = coalesce(was, 'unknown'), was = NULL, pending = NULL, ${asked}`;
    await this.#database.transaction(async ({ run }) => {
      await run(`DELETE FROM attempt WHERE ${own} 'unknown' AND ${empty}`, this.#service, id);
      await run(`UPDATE attempt SET ${asBefore} WHERE ${own} 'unknown'`, this.#service, id);
    });
  }

  /**
   * The service sent the reservation, and its proof verifies: nothing about it is unknown any more.
   *
   * @param name a name that was just asked for; a service without names leaves it to the ledger
   */
  async observed({ reservation, token }: Answered, name?: string): Promise<void> {
    await this.#run(
      `UPDATE attempt SET outcome = 'booked', reservation = $3, token = coalesce($4, token),
         was = NULL, pending = NULL,
         requested = CASE WHEN $5 IS NULL THEN requested ELSE json_set(requested, '$.name', $5) END
       WHERE service = $1 AND reservation_id = $2`,
      reservation.id,
      JSON.stringify(reservation),
      token,
      (reservation.name === undefined && name) || null,
    );
  }

  /** A reservation is gone. @param before the reservation as it was, where that is known */
  async deleted(id: string, before?: Reservation): Promise<void> {
    await this.#run(
      `UPDATE attempt SET outcome = 'deleted', was = NULL, pending = NULL, reservation = coalesce($3, reservation)
       WHERE service = $1 AND reservation_id = $2`,
      id,
      before === undefined ? null : JSON.stringify(before),
    );
  }

  /** Whether the outcome of a create under this key is unknown, in whatever experiment. */
  async isUnknown(key: string): Promise<boolean> {
    return (await this.#read(`key = $2 AND asked = 'reserve' AND outcome = 'unknown'`, key)).length > 0;
  }

  /** One attempt. */
  async find({ experiment, key }: AttemptName): Promise<LedgerEntry | undefined> {
    const [entry] = await this.#read('experiment = $2 AND key = $3', experiment, key);
    return entry;
  }

  /**
   * Everything of an experiment, oldest first.
   *
   * @param now milliseconds: leaves out entries that have ended by then, were deleted or refused. They are not read
   *   from the database (THREATS.md 66).
   */
  async entries(experiment: string, now?: number): Promise<LedgerEntry[]> {
    if (now === undefined) return this.#read('experiment = $2', experiment);
    // The plus keeps SQLite from reading the whole experiment by the table's own key.
    return this.#read('past_ms > $2 AND +experiment = $3', now, experiment);
  }

  /** Everything of this service, oldest first. @param now as for {@link entries} */
  async all(now?: number): Promise<LedgerEntry[]> {
    return now === undefined ? this.#read('1') : this.#read('past_ms > $2', now);
  }

  /**
   * The reservations of this service whose id has this text somewhere, or that had this name when this machine asked for them
   * or saw them last, oldest first.
   *
   * @param now as for {@link entries}
   */
  async containing(text: string, now?: number): Promise<LedgerEntry[]> {
    const name = `"name":${JSON.stringify(text)}`;
    // The text of a JSON member is quicker to find than to read: of 100,000 rows, each would have to be parsed.
    const fits =
      '(instr(lower(reservation_id), $2) > 0 OR instr(requested, $3) > 0 OR instr(reservation, $3) > 0)';
    if (now === undefined) return this.#read(fits, text.toLowerCase(), name);
    return this.#read(`past_ms > $4 AND ${fits}`, text.toLowerCase(), name, now);
  }

  /** The entry of a reservation, past or not. */
  async about(id: string): Promise<LedgerEntry | undefined> {
    const [entry] = await this.#read('reservation_id = $2', id);
    return entry;
  }

  async #run(sql: string, ...values: SqlValue[]): Promise<void> {
    await this.#database.transaction((transaction) => transaction.run(sql, this.#service, ...values));
  }

  async #read(where: string, ...values: SqlValue[]): Promise<LedgerEntry[]> {
    const rows = await this.#database.transaction((sql) =>
      sql.all(
        `SELECT ${COLUMNS} FROM attempt WHERE service = $1 AND ${where} ORDER BY asked_ms, key`,
        this.#service,
        ...values,
      ),
    );
    return rows.map(toEntry);
  }
}

function toEntry(value: Record<string, unknown>): LedgerEntry {
  const result = v.safeParse(Row, value);
  if (!result.success) throw foreign(v.getDotPath(result.issues[0]) ?? 'A row');
  const row = result.output;
  const { typedTimes, requested } = row.requested === null ? { requested: null } : readTyped(row.requested);
  return {
    experiment: row.experiment,
    key: row.key,
    asked: row.asked,
    askedAt: row.asked_ms,
    beganAt: row.began_ms,
    requested,
    typedTimes,
    pending: row.pending === null ? null : readColumn(ReservationRequest, row.pending),
    outcome: row.outcome,
    id: row.reservation_id ?? undefined,
    reservation: row.reservation === null ? undefined : readColumn(ReservationReply, row.reservation),
    token: row.token ?? undefined,
  };
}

function readTyped(text: string): Pick<LedgerEntry, 'requested' | 'typedTimes'> {
  const { typedTimes, ...requested } = readColumn(Typed, text);
  return { requested, typedTimes };
}

function readColumn<Schema extends v.GenericSchema>(schema: Schema, text: string): v.InferOutput<Schema> {
  const reading = readJson(text);
  const result = v.safeParse(schema, reading.ok ? reading.value : undefined);
  if (result.success) return result.output;
  throw foreign(v.getDotPath(result.issues[0]) ?? 'A column');
}

function foreign(what: string): Failure {
  return new Failure('state_unusable', 'The ledger holds something that this program did not write.', {
    why: `${what} does not have the expected form.`,
  });
}
