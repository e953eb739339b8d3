/** The texts that a browser keeps for the page, by keys. Its user may forbid it: then nothing is kept. */
export interface PageStorage {
  get(key: string): string | null;
  /** Keeps a text; null forgets it. @returns whether it is kept */
  set(key: string, value: string | null): boolean;
  /** Whether an event of another tab concerns a key. */
  concerns(event: StorageEvent, key: string): boolean;
}

/** Opens the storage of this tab, or that of all tabs. @param path of the page: two servers of one origin share nothing */
export function openStorage(kind: 'localStorage' | 'sessionStorage', path: string): PageStorage {
  const name = (key: string): string => `slices-conn ${path} ${key}`;
  return {
    get(key) {
      try {
        return window[kind].getItem(name(key));
      } catch {
        return null;
      }
    },
    set(key, value) {
      try {
        if (value === null) window[kind].removeItem(name(key));
        else window[kind].setItem(name(key), value);
        return true;
      } catch {
        // All but the login works without.
        return false;
      }
    },
    concerns: (event, key) => event.key === null || event.key === name(key),
  };
}
