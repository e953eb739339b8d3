import { expect } from 'vitest';
import { printed, type Report, type Tried } from './report.ts';

/** A proof that found nothing, and tried enough for that to mean something. */
export function expectNothingFound(report: Report, tried: Tried = {}): void {
  expect(report.findings, printed(report)).toEqual([]);
  for (const [what, least] of Object.entries(tried)) {
    expect(report[what as keyof Tried], what).toBeGreaterThanOrEqual(least);
  }
}
