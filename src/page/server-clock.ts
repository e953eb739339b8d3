/** The server's time, as the `date` of its answers tells it: what is booked from “now” on is booked by its clock. */
export interface ServerClock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** How far the browser's clock is ahead of the server's for sure, in milliseconds; negative where it is behind. */
  readonly ahead: number;
  /** The server is asked. @returns what takes the `date` of its answer */
  ask(): (date: string | null) => void;
}

/** Makes a {@link ServerClock}. @param now the browser's clock, which is right until an answer says that it can't be */
export function createServerClock(now: () => number): ServerClock {
  let ahead = 0;
  return {
    now: () => now() - ahead,
    get ahead() {
      return ahead;
    },
    ask() {
      const asked = now();
      return (date) => {
        const told = Date.parse(date ?? '');
        if (Number.isNaN(told)) return;
        // It was written between the question and its answer, and is in whole seconds.
        ahead = Math.min(Math.max(ahead, asked - told - 1000), now() - told);
      };
    },
  };
}
