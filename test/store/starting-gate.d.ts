/** What a process left: what it wrote after `ready`, and its stderr. */
export interface Finish {
    output: string;
    errors: string;
}
/**
 * Runs Node processes that start their work together: each writes `ready` when it could begin, and begins when its
 * stdin ends, which is when all are ready.
 *
 * @param args of `node`, for each process
 */
export declare function raceProcesses(...args: readonly (readonly string[])[]): Promise<Finish[]>;
