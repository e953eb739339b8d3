import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { Slices } from '../../allocator/event-loop.ts';
import { type SqlQuery, type SqlTransaction, type SqlValue, statementsBy } from '../sql.ts';
import { storeError } from './file.ts';

/** A statement that was prepared, and the numbers of its parameters in the order of their places. */
interface Prepared {
  statement: StatementSync;
  numbers: number[];
}

/** A connection on which each statement is prepared once: to prepare one takes longer than most questions. */
export class Connection {
  readonly database: DatabaseSync;
  readonly #prepared = new Map<string, Prepared>();

  constructor(database: DatabaseSync) {
    this.database = database;
  }

  /** Runs one statement, at once. @throws as {@link storeError} says */
  readonly query: SqlQuery = async <Row extends object>(
    sql: string,
    values: readonly SqlValue[],
    asArrays: boolean,
  ) => {
    try {
      const { statement, numbers } = this.#prepare(sql);
      statement.setReturnArrays(asArrays);
      return statement.all(...numbers.map((number) => values[number - 1] ?? null)) as Row[];
    } catch (error) {
      throw storeError(error);
    }
  };

  /** Runs `work` on what was committed at one instant; nothing else may use the connection meanwhile. */
  async snapshot<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    this.database.exec('BEGIN');
    try {
      return await work();
    } finally {
      this.database.exec('ROLLBACK');
    }
  }

  /**
   * Values bind by place: by name, Node takes four times as long, longer than SQLite for most rows. Node 22 knows places only
   * as `?`, so each `$1`, `$2`, … becomes one, and a value that is named twice is given twice.
   */
  #prepare(sql: string): Prepared {
    const known = this.#prepared.get(sql);
    if (known) return known;
    const numbers = [...sql.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number));
    const prepared = { statement: this.database.prepare(sql.replaceAll(/\$\d+/g, '?')), numbers };
    this.#prepared.set(sql, prepared);
    return prepared;
  }
}

/** The statements of a transaction. @param together see {@link SqlTransaction} */
export function transactionBy(query: SqlQuery, together: number): SqlTransaction {
  const statements = statementsBy(query);
  return {
    ...statements,
    together,
    // SQLite runs in this process: one prepared statement a row takes microseconds.
    async insert({ row }, rows) {
      const slices = new Slices();
      for (const values of rows) {
        if (slices.isOver) await slices.next();
        await statements.run(row, ...values);
      }
      // The commit of many rows takes as long as a slice.
      if (slices.count > 1) await slices.next();
    },
    finish: async (last) => void (await last),
  };
}
