import type { Demand } from '../../src/allocator/calendar.ts';
import type { Link } from '../../src/contract/links.ts';
/** What a racing process is to do, all at once, as soon as it is told to. */
export interface RaceOrder {
    /** The SQLite file. */
    path: string;
    link: Link;
    /** Comes before the ids of what this process books. */
    name: string;
    /** Bookings to ask for. */
    book: readonly Demand[];
    /** Changes of one reservation to ask for. */
    amend?: {
        id: string;
        changes: readonly Partial<Demand>[];
    };
}
/** What became of a request, or the error that it ended in. */
export type RaceAnswer = {
    ok: true;
    id: string;
} | {
    ok: false;
    why: string;
};
