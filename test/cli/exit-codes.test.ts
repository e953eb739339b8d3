import { describe, expect, test } from 'vitest';
import { EXIT_CODE_OF, EXIT_CODES, type ExitCode } from '../../src/cli/exit-codes.ts';
import { CLIENT_FAILURES } from '../../src/contract/failure.ts';
import { PROBLEMS, type ProblemCode } from '../../src/contract/problems.ts';

/** The exit codes that a service's status may end with (cli/README.md, "Exit codes"). */
const BY_STATUS: Readonly<Record<number, readonly ExitCode[]>> = {
  ...{ 400: [1], 405: [1], 413: [1], 415: [1], 421: [2], 409: [1, 2], 422: [1, 2, 3, 6] },
  ...{ 403: [4, 5], 404: [3], 410: [7], 429: [7], 500: [7], 503: [7] },
};

const problems = Object.entries(PROBLEMS).map(([code, { status }]) => [code as ProblemCode, status] as const);

describe('exit codes', () => {
  test.each(problems)('%s, status %i, ends as the contract says of that status', (code, status) => {
    expect(BY_STATUS[status]).toContain(EXIT_CODE_OF[code]);
    if (/^(?:site|date|bandwidth|period|vlans)/.test(code)) expect(EXIT_CODE_OF[code]).toBe(6);
    // It asks for a login, or says forbidden.
    if (status === 403) expect(EXIT_CODE_OF[code]).toBe(code.startsWith('token_') ? 4 : 5);
  });

  test('every failure of the client has one that is explained, and none is 0', () => {
    for (const code of CLIENT_FAILURES) {
      expect(EXIT_CODE_OF[code], code).toBeGreaterThan(0);
      expect(EXIT_CODES[EXIT_CODE_OF[code]], code).toMatch(/\S/);
    }
  });

  test('help explains only those that occur', () => {
    // No failure is a plan that changes something.
    const occur = new Set<number>([0, 11, ...Object.values(EXIT_CODE_OF)]);
    expect(new Set(Object.keys(EXIT_CODES).map(Number))).toEqual(occur);
  });
});
