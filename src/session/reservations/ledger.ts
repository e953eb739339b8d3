import * as v from 'valibot';
import { Failure } from '../../contract/failure.ts';
import { type Reservation, ReservationReply } from '../../contract/reservation.ts';
import { type ChangeItem, ReservationRequest } from '../../contract/reservation-request.ts';

/**
 * The database that a ledger is kept in: durable at the end of each transaction, for several processes at once. A parameter
 * `$name` is the member of that name in `values`.
 */
export interface LedgerDatabase {
  transaction<Answer>(
    work: (sql: {
      run(sql: string, values: object): Promise<void>;
      all(sql: string, values: object): Promise<Record<string, unknown>[]>;
    }) => Promise<Answer>,
  ): Promise<Answer>;
  close(): Promise<void>;
}

/** A column of JSON. */
const json = <Schema extends v.GenericSchema>(schema: Schema) => v.pipe(v.string(), v.parseJson(), schema);

const Entry = v.pipe(
  v.object({
    experiment: v.string(),
    key: v.string(),
    asked: v.picklist(['reserve', 'update', 'delete']),
    asked_ms: v.number(),
    began_ms: v.number(),
    requested: v.nullable(
      json(v.object({ ...ReservationRequest.entries, typedTimes: v.optional(v.string()) })),
    ),
    pending: v.nullable(json(ReservationRequest)),
    outcome: v.picklist(['unknown', 'booked', 'refused', 'deleted']),
    reservation_id: v.nullable(v.string()),
    reservation: v.nullable(json(ReservationReply)),
    token: v.nullable(v.string()),
  }),
  v.transform(({ experiment, key, asked, pending, outcome, ...row }) => {
    const { typedTimes, ...requested } = row.requested ?? {};
    return {
      experiment,
      /** The `Idempotency-Key` that it was asked for with. */
      key,
      /** The last request, and when it was made, in milliseconds. */
      asked,
      askedAt: row.asked_ms,
      /** When the reservation was asked for first, in milliseconds, and as what. */
      beganAt: row.began_ms,
      requested: row.requested && (requested as ReservationRequest),
      /** The words in which its times were typed, such as `+2h`; they mean the times in `requested`. */
      typedTimes,
      /** An update that was sent and not answered yet. */
      pending,
      /** `unknown`: it was sent, and no answer is known. */
      outcome,
      id: row.reservation_id ?? undefined,
      /** As the service answered last. */
      reservation: row.reservation ?? undefined,
      token: row.token ?? undefined,
    };
  }),
);
/** One reservation that this machine asked for, and what it knows of it. */
export type LedgerEntry = v.InferOutput<typeof Entry>;

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

/** Which entries are read: those that fit each member. */
interface EntryFilter {
  /** Leaves out entries that have ended by then, in milliseconds, were deleted or refused; they are not read from the database (THREATS.md 66). */
  now?: number;
  experiment?: string;
  key?: string;
  /** Of the reservation. */
  id?: string;
  /** Is somewhere in the reservation's id, or its name when this machine asked for it or saw it last. */
  text?: string;
}

const CONDITIONS: Readonly<Record<keyof EntryFilter, string>> = {
  now: 'past_ms > $now',
  experiment: 'experiment = $experiment',
  key: 'key = $key',
  id: 'reservation_id = $id',
  // The text of a JSON member is quicker to find than to read: of 100,000 rows, each would have to be parsed.
  text: '(instr(lower(reservation_id), lower($text)) > 0 OR instr(requested, $name) > 0 OR instr(reservation, $name) > 0)',
};

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
    if (item.action === 'create') {
      await this.#run(
        `INSERT INTO attempt (service, experiment, key, asked, asked_ms, began_ms, requested, outcome)
         VALUES ($service, $experiment, $key, 'reserve', $now, $now, $requested, 'unknown')
         ON CONFLICT (service, experiment, key) DO UPDATE SET asked = 'reserve', asked_ms = $now,
           began_ms = iif(reservation_id IS NULL, $now, began_ms), requested = $requested, outcome = 'unknown'`,
        { ...name, now, requested: JSON.stringify({ ...item.request, typedTimes }) },
      );
      return;
    }
    await this.#run(
      `INSERT INTO attempt (service, experiment, key, asked, asked_ms, began_ms, pending, outcome, reservation_id)
       VALUES ($service, $experiment, $key, $action, $now, $now, $pending, 'unknown', $id)
       ON CONFLICT (service, reservation_id) WHERE reservation_id IS NOT NULL
       DO UPDATE SET asked = $action, asked_ms = $now, pending = $pending, outcome = 'unknown',
         was = CASE outcome WHEN 'unknown' THEN was ELSE outcome END,
         was_asked = CASE outcome WHEN 'unknown' THEN was_asked ELSE asked END,
         was_asked_ms = CASE outcome WHEN 'unknown' THEN was_asked_ms ELSE asked_ms END`,
      { ...item, ...name, now, pending: item.action === 'update' ? JSON.stringify(item.request) : null },
    );
  }

  /** The service answered an attempt with a reservation. */
  async booked(name: AttemptName, { reservation, token }: Answered): Promise<void> {
    const answer = JSON.stringify(reservation);
    const values = { ...name, service: this.#service, id: reservation.id, answer, token };
    await this.#database.transaction(async ({ run }) => {
      // The ledger may hold the same reservation under another key: the service gave it before.
      await run(
        'DELETE FROM attempt WHERE service = $service AND reservation_id = $id AND key <> $key',
        values,
      );
      await run(
        `UPDATE attempt SET outcome = 'booked', was = NULL, reservation_id = $id, reservation = $answer,
           token = iif(reservation_id = $id, coalesce($token, token), $token)
         WHERE service = $service AND experiment = $experiment AND key = $key`,
        values,
      );
    });
  }

  /** A reservation was created, but its proof does not verify: the outcome stays unknown. */
  async named(name: AttemptName, id: string): Promise<void> {
    await this.#run(
      `UPDATE OR IGNORE attempt SET reservation_id = $id
       WHERE service = $service AND experiment = $experiment AND key = $key`,
      { ...name, id },
    );
  }

  /** Nothing was made, for certain. */
  async refused(name: AttemptName): Promise<void> {
    await this.#run(
      `UPDATE attempt SET outcome = 'refused'
       WHERE service = $service AND experiment = $experiment AND key = $key AND outcome = 'unknown'`,
      name,
    );
  }

  /** A change or deletion was refused: the reservation is as it was before. */
  async changeRefused(id: string): Promise<void> {
    const own = 'service = $service AND reservation_id = $id AND outcome = ';
    // This machine did not book it and has no answer about it, so the row would say nothing.
    const empty = 'reservation IS NULL AND requested IS NULL';
    const asked = `asked = iif(was IS NULL, asked, coalesce(was_asked, asked)),
      asked_ms = iif(was IS NULL, asked_ms, coalesce(was_asked_ms, asked_ms))`;
    const values = { service: this.#service, id };
    const asBefore = `outcome = coalesce(was, 'unknown'), was = NULL, pending = NULL, ${asked}`;
    await this.#database.transaction(async ({ run }) => {
      await run(`DELETE FROM attempt WHERE ${own} 'unknown' AND ${empty}`, values);
      await run(`UPDATE attempt SET ${asBefore} WHERE ${own} 'unknown'`, values);
    });
  }

  /**
   * The service sent the reservation, and its proof verifies: nothing about it is unknown any more.
   *
   * @param name a name that was just asked for; a service without names leaves it to the ledger
   */
  async observed({ reservation, token }: Answered, name?: string): Promise<void> {
    await this.#run(
      `UPDATE attempt SET outcome = 'booked', reservation = $answer, token = coalesce($token, token),
         was = NULL, pending = NULL,
         requested = CASE WHEN $name IS NULL THEN requested ELSE json_set(requested, '$.name', $name) END
       WHERE service = $service AND reservation_id = $id`,
      {
        id: reservation.id,
        answer: JSON.stringify(reservation),
        token,
        name: (reservation.name === undefined && name) || null,
      },
    );
  }

  /** A reservation is gone. @param before the reservation as it was, where that is known */
  async deleted(id: string, before?: Reservation): Promise<void> {
    await this.#run(
      `UPDATE attempt SET outcome = 'deleted', was = NULL, pending = NULL, reservation = coalesce($before, reservation)
       WHERE service = $service AND reservation_id = $id`,
      { id, before: before === undefined ? null : JSON.stringify(before) },
    );
  }

  /** The entries of this service that a filter leaves, oldest first. */
  async entries(filter: EntryFilter = {}): Promise<LedgerEntry[]> {
    const { now, text } = filter;
    const fit = Object.entries(CONDITIONS).filter(
      ([name]) => filter[name as keyof EntryFilter] !== undefined,
    );
    // The plus keeps SQLite from reading the whole experiment by the table's own key.
    const plus = ([name, fits]: string[]) => (name === 'experiment' && now !== undefined ? `+${fits}` : fits);
    const where = ['service = $service', ...fit.map(plus)].join(' AND ');
    const values = { ...filter, name: `"name":${JSON.stringify(text)}`, service: this.#service };
    const rows = await this.#database.transaction((sql) =>
      sql.all(`SELECT * FROM attempt WHERE ${where} ORDER BY asked_ms, key`, values),
    );
    return rows.map(toEntry);
  }

  /** The entry of a reservation, past or not. */
  async about(id: string): Promise<LedgerEntry | undefined> {
    const [entry] = await this.entries({ id });
    return entry;
  }

  async #run(sql: string, values: object): Promise<void> {
    await this.#database.transaction((transaction) =>
      transaction.run(sql, { ...values, service: this.#service }),
    );
  }
}

function toEntry(row: Record<string, unknown>): LedgerEntry {
  const result = v.safeParse(Entry, row);
  if (result.success) return result.output;
  throw new Failure('state_unusable', 'The ledger holds something that this program did not write.', {
    why: `${v.getDotPath(result.issues[0]) ?? 'A row'} does not have the expected form.`,
  });
}
