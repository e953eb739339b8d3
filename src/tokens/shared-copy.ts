import { isWithin } from '../contract/instants.ts';

/** A value, and when it was loaded, in milliseconds since the Unix epoch. */
export interface Copy<Value> {
  value: Value;
  at: number;
}

/** How a copy is loaded, and how long it is used. Times in milliseconds. */
export interface SharedCopyOptions<Value> {
  /** Loads the value. */
  load: () => Promise<Value>;
  /** Told of each copy that was loaded. Where it throws, the load counts as failed, and the copy is used. */
  loaded?: (copy: Copy<Value>) => void;
  /** Told of each load that failed. @returns what `failure` is then. Default: the cause */
  failed?: (cause: unknown) => unknown;
  /** Reads the copy of an earlier process, before the first use. Default: there is none. */
  kept?: () => Copy<Value> | undefined;
  /** Age up to which the copy is used without a load. */
  freshFor: number;
  /** Age up to which the copy stands in for a value that can't be loaded. */
  staleFor: number;
  /** Least time between two loads. */
  cooldown: number;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/** A loaded value that all callers share. */
export interface SharedCopy<Value> {
  /** The copy, however old it is. */
  readonly copy: Copy<Value> | undefined;
  /** Why the last load failed; undefined where it did not. */
  readonly failure: unknown;
  /** Whether there is a copy that was loaded less than so many milliseconds ago. */
  isYoungerThan(span: number): boolean;
  /** Loads unless a load was tried within the cooldown; callers share a load that is under way. Never rejects. */
  refresh(): Promise<void>;
  /**
   * Loads unless the copy is fresh. While one caller waits for the load, the others use a copy that is not stale.
   *
   * @returns a copy that is not stale; undefined where there is none
   */
  usable(): Promise<Copy<Value> | undefined>;
}

/**
 * Shares one copy of a value between all callers: one load at a time, none within the cooldown, and an old copy while the
 * value can't be loaded. So no caller can make this program load it each time. A copy from the future counts as too old:
 * the clock was set back, and the copy would never expire.
 */
export function sharedCopy<Value>(options: SharedCopyOptions<Value>): SharedCopy<Value> {
  const { load, loaded, failed = (cause) => cause, kept, freshFor, staleFor, cooldown, now } = options;
  let copy: Copy<Value> | undefined;
  let isKeptRead = false;
  let failure: unknown;
  let lastTry = Number.NEGATIVE_INFINITY;
  let underWay: Promise<void> | undefined;

  async function tryToLoad(): Promise<void> {
    lastTry = now();
    try {
      copy = { value: await load(), at: now() };
      failure = undefined;
      loaded?.(copy);
    } catch (cause) {
      failure = failed(cause);
    }
  }

  async function refresh(): Promise<void> {
    if (!underWay && isWithin(lastTry, cooldown, now())) return;
    underWay ??= tryToLoad().finally(() => {
      underWay = undefined;
    });
    await underWay;
  }

  function isYoungerThan(span: number): boolean {
    if (!isKeptRead) copy ??= kept?.();
    isKeptRead = true;
    return copy !== undefined && isWithin(copy.at, span, now());
  }

  return {
    get copy() {
      return copy;
    },
    get failure() {
      return failure;
    },
    isYoungerThan,
    refresh,
    async usable() {
      const standsIn = underWay !== undefined && isYoungerThan(staleFor);
      if (!isYoungerThan(freshFor) && !standsIn) await refresh();
      return isYoungerThan(staleFor) ? copy : undefined;
    },
  };
}

/**
 * A value that is made once for all calls, and again when it is not good any more. A failure is not kept: the next call may
 * succeed.
 *
 * @param isGood whether a value still serves that was asked for at this instant, in milliseconds. Default: always
 * @param now milliseconds; needed where `isGood` looks at the instant
 */
export function renewing<Value>(
  make: () => Promise<Value>,
  isGood: (value: Value, askedAt: number) => boolean = () => true,
  now = () => 0,
): () => Promise<Value> {
  let held: { value: Promise<Value>; askedAt: number } | undefined;
  const ask = (): Promise<Value> => {
    const asked = { value: make(), askedAt: now() };
    held = asked;
    asked.value.catch(() => {
      if (held === asked) held = undefined;
    });
    return asked.value;
  };
  return async () => {
    const before = held;
    if (!before) return ask();
    const value = await before.value;
    if (isGood(value, before.askedAt)) return value;
    // Of several calls at once, the first one asks for all.
    return held === before || !held ? ask() : held.value;
  };
}
