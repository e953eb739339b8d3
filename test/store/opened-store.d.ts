import type { ReservationStore } from '../../src/allocator/store.ts';
import { type SqlRow, type SqlValue } from '../../src/store/sqlite/database.ts';
/** A store on a database of its own, and a way past it to the rows. */
export interface OpenedStore {
    store: ReservationStore;
    /** What a statement finds, asked past the store. Parameters are `$1`, `$2`, … */
    rows(sql: string, ...values: SqlValue[]): Promise<SqlRow[]>;
    close(): Promise<void>;
}
/** Opens SQLite. @param path a file, or (default) a new database in memory */
export declare function openSqlite(path?: string): Promise<OpenedStore>;
