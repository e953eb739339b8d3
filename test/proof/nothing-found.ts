import { expect } from 'vitest';
import { printed, type Report } from './report.ts';

/** A proof that found nothing, and tried enough for that to mean something. */
export function expectNothingFound(
  report: Report,
  tried: Partial<Pick<Report, 'kills' | 'acknowledged' | 'rounds'>>,
): void {
  expect(report.findings, printed(report)).toEqual([]);
  for (const [what, least] of Object.entries(tried)) {
    expect(report[what as keyof typeof tried], what).toBeGreaterThanOrEqual(least);
  }
}
