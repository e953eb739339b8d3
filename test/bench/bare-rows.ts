import { DatabaseSync, type SQLOutputValue, type StatementSync } from 'node:sqlite';

/** The tables that a booking writes to. */
const TABLES = ['link', 'reservation', 'hop'] as const;
/** A row as it stands in a table, by its columns' names. */
type Row = Record<string, SQLOutputValue>;
/** The rows of one booking. */
export interface BookedRows {
  reservation: Row;
  hop: Row;
}

/** Reads what bookings wrote, beside the server that writes it. */
export class RowReader {
  readonly #database: DatabaseSync;

  constructor(path: string) {
    this.#database = new DatabaseSync(path, { readOnly: true });
  }

  /** @throws Error when there is no such reservation */
  rowsOf(id: string): BookedRows {
    const reservation = this.#database.prepare('SELECT * FROM reservation WHERE id = ?').get(id);
    const hop = this.#database.prepare('SELECT * FROM hop WHERE reservation = ?').get(id);
    if (!reservation || !hop) throw new Error(`there is no ${id}`);
    return { reservation, hop };
  }
}

/**
 * The same rows in a file with the same columns and indexes, and neither checks nor foreign keys: what
 * it costs to write them durably, and nothing else.
 */
export class BareRows {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  /** @param like a server's file, whose rows are taken over */
  constructor(path: string, like: string) {
    this.#database = new DatabaseSync(path);
    this.#database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF');
    this.#database.prepare('ATTACH ? AS source').run(like);
    for (const table of TABLES) this.#copy(table);
    this.#database.exec('DETACH source; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA synchronous = FULL');
  }

  /** One durable transaction. */
  write({ reservation, hop }: BookedRows): void {
    this.#run('BEGIN IMMEDIATE');
    this.#insert('reservation', reservation);
    this.#insert('hop', hop);
    this.#run('UPDATE link SET version = version + 1 WHERE id = ?', hop['link'] ?? null);
    this.#run('COMMIT');
  }

  close(): void {
    this.#database.close();
  }

  #copy(table: string): void {
    const columns = this.#database
      .prepare('SELECT name, type, pk FROM pragma_table_info(?, ?)')
      .all(table, 'source');
    const key = columns
      .filter(({ pk }) => Number(pk) > 0)
      .toSorted((one, other) => Number(one['pk']) - Number(other['pk']));
    const made = this.#database
      .prepare("SELECT sql FROM source.sqlite_schema WHERE type = 'table' AND name = ?")
      .get(table);
    const rowid = /WITHOUT ROWID/i.test(String(made?.['sql'])) ? 'WITHOUT ROWID' : '';
    const named = columns.map(({ name, type }) => `${name} ${type}`).join(', ');
    const keyed = key.map(({ name }) => name).join(', ');
    this.#database.exec(`
      CREATE TABLE main.${table} (${named}, PRIMARY KEY (${keyed})) ${rowid};
      INSERT INTO main.${table} SELECT * FROM source.${table}`);
    const indexes = this.#database
      .prepare(
        "SELECT sql FROM source.sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL",
      )
      .all(table);
    for (const { sql } of indexes) this.#database.exec(String(sql));
  }

  #insert(table: string, row: Row): void {
    const columns = Object.keys(row);
    const places = columns.map(() => '?').join(', ');
    this.#run(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${places})`, ...Object.values(row));
  }

  #run(sql: string, ...values: SQLOutputValue[]): void {
    const statement = this.#statements.get(sql) ?? this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    statement.run(...values);
  }
}
