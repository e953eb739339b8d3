import { type Decision, type Demand, type Holding, type Period } from '../../src/allocator/calendar.ts';
import type { Link } from '../../src/contract/links.ts';
/**
 * Says what the allocator must answer, with no cleverness: a list of what is held, and every question asked of every
 * single millisecond. Right by reading, and slow: for times that are a few dozen milliseconds apart.
 */
export declare class Oracle {
    #private;
    constructor(link: Link);
    /** What is held, by id. */
    get held(): ReadonlyMap<string, Holding>;
    hold(id: string, holding: Holding): void;
    drop(id: string): void;
    /** @param own the reservation that is asked about anew: its use does not count, and its tags stay if they can */
    decide(demand: Demand, now: number, own?: string): Decision;
    /** The most Mbps that would be accepted over a period. */
    most(period: Period, own?: string): number;
    /** The earliest start from `from` on at which the demand would be accepted and end by `by`. */
    earliest(from: number, duration: number, bandwidth: number, by: number, own?: string): number | undefined;
}
