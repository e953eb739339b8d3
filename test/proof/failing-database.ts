import { CommitUnknownError, StoreUnavailableError } from '../../src/allocator/store.ts';
import type { SqlDatabase, SqlReader, SqlStatements } from '../../src/store/sql.ts';

/** A point between two steps: at `after COMMIT` the work is done and the caller does not know. */
export type Failpoint =
  | 'before BEGIN'
  | 'before a statement'
  | 'after a statement'
  | 'before COMMIT'
  | 'after COMMIT';

/** Which point fails, and whether it did. */
export interface FailurePlan {
  /** Counts from 0; -1 for none. */
  at: number;
  /** What it fails with: a database that is away, or a defect. */
  kind: 'unavailable' | 'defect';
  /** How many points were passed. */
  passed: number;
  fired: Failpoint | undefined;
}

/** A plan that lets everything pass. */
export function noFailure(): FailurePlan {
  return { at: -1, kind: 'unavailable', passed: 0, fired: undefined };
}

/** A database of which the point that the plan names fails, once; everything else is done for real. */
export function failingDatabase(database: SqlDatabase, plan: FailurePlan): SqlDatabase {
  const pass = (point: Failpoint): void => {
    plan.passed += 1;
    if (plan.passed - 1 !== plan.at) return;
    plan.fired = point;
    if (point === 'after COMMIT') throw new CommitUnknownError('on purpose, after COMMIT');
    if (plan.kind === 'unavailable') throw new StoreUnavailableError(`on purpose, ${point}`);
    throw new Error(`on purpose, ${point}`);
  };
  const step = async <Answer>(work: () => Promise<Answer>): Promise<Answer> => {
    pass('before a statement');
    const answer = await work();
    pass('after a statement');
    return answer;
  };
  const failingReader = (sql: SqlReader): SqlReader => ({
    all: <Row extends object>(...given: [string, object?]) => step(() => sql.all<Row>(...given)),
    arrays: (...given) => step(() => sql.arrays(...given)),
    first: <Row extends object>(...given: [string, object?]) => step(() => sql.first<Row>(...given)),
  });
  const failing = (sql: SqlStatements): SqlStatements => ({
    ...failingReader(sql),
    run: (...given) => step(() => sql.run(...given)),
  });
  return {
    ...failing(database),
    reader: failingReader(database.reader),
    async transaction(work) {
      pass('before BEGIN');
      const answer = await database.transaction(async (sql) => {
        const done = await work({
          ...sql,
          ...failing(sql),
          insert: (...given) => step(() => sql.insert(...given)),
          // It fails here rather than after the commit, which would be sent: a statement that fails for real undoes all.
          finish: async (last) => sql.finish(Promise.resolve(await last)),
        });
        pass('before COMMIT');
        return done;
      });
      pass('after COMMIT');
      return answer;
    },
    snapshot: (work) => database.snapshot((sql) => work({ ...failingReader(sql), history: sql.history })),
  };
}
