/** For how long work goes on in one turn of the event loop, in milliseconds. Then others have their turn. */
export const MAX_BLOCKING_MS = 15;

/** Lets the event loop come round: every request that has arrived is read, and what waits has its turn. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
