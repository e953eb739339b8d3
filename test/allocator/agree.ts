import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';

/** Expects two answers to be equal. Where they are, as nearly always, it takes a tenth of the time that `expect` does. */
export function agree(found: unknown, due: unknown, asked?: unknown): void {
  if (!isDeepStrictEqual(found, due)) expect({ asked, found }).toEqual({ asked, found: due });
}
