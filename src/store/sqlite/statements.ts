import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { Slices } from '../../allocator/event-loop.ts';
import {
  parametersOf,
  type SqlQuery,
  type SqlSnapshot,
  type SqlTransaction,
  type SqlValue,
  statementsBy,
  valueIn,
} from '../sql.ts';
import { storeError } from './file.ts';

/** A statement that was prepared, and the names of its parameters in the order of their places. */
interface Prepared {
  statement: StatementSync;
  names: string[];
}

/** A connection on which each statement is prepared once: to prepare one takes longer than most questions. */
export class Connection {
  readonly database: DatabaseSync;
  readonly #prepared = new Map<string, Prepared>();

  constructor(database: DatabaseSync) {
    this.database = database;
  }

  /** Runs one statement, at once. @throws as {@link storeError} says */
  readonly query: SqlQuery = async <Row extends object>(sql: string, values: object, asArrays: boolean) => {
    try {
      const { statement, names } = this.#prepare(sql);
      statement.setReturnArrays(asArrays);
      return statement.all(...names.map((name) => valueIn(values, name) as SqlValue)) as Row[];
    } catch (error) {
      throw storeError(error);
    }
  };

  /** Runs `work` on what was committed at one instant; nothing else may use the connection meanwhile. */
  async snapshot<Answer>(work: (sql: SqlSnapshot) => Promise<Answer>): Promise<Answer> {
    this.database.exec('BEGIN');
    try {
      // A file that is replaced is refused, so it has one history.
      return await work({ ...statementsBy(this.query), history: '' });
    } finally {
      this.database.exec('ROLLBACK');
    }
  }

  /**
   * Values bind by place: by name, Node takes four times as long, longer than SQLite for most rows. Node 22 knows places only
   * as `?`, so each parameter becomes one, and a value that is named twice is given twice.
   */
  #prepare(sql: string): Prepared {
    const known = this.#prepared.get(sql);
    if (known) return known;
    const names = parametersOf(sql);
    const prepared = { statement: this.database.prepare(sql.replaceAll(/\$\w+/g, '?')), names };
    this.#prepared.set(sql, prepared);
    return prepared;
  }
}

/** The statements of a transaction. */
export function transactionBy(query: SqlQuery): SqlTransaction {
  const statements = statementsBy(query);
  return {
    ...statements,
    // SQLite runs in this process: one prepared statement a row takes microseconds.
    async insert({ row }, rows) {
      const slices = new Slices();
      for (const each of rows) {
        if (slices.isOver) await slices.next();
        await statements.run(row, each);
      }
      // The commit of many rows takes as long as a slice.
      if (slices.count > 1) await slices.next();
    },
    finish: async (last) => void (await last),
  };
}
