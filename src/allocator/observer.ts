/** Told what an allocator does, to be counted. It is called after the fact, never within a transaction, and never throws. */
export interface AllocatorObserver {
  /**
   * A transaction on a link was committed.
   *
   * @param size how many requests were decided in it
   * @param milliseconds from asking for the link's lock to the end of the commit
   */
  committed(size: number, milliseconds: number): void;
}
