import { describe, expect, test } from 'vitest';
import { EXIT_CODE_OF, EXIT_CODES } from '../../src/cli/exit-codes.ts';
import { CLIENT_FAILURES, type FailureCode } from '../../src/contract/failure.ts';
import { PROBLEM_STATUS } from '../../src/contract/problems.ts';

/** CLI.md, "Exit codes", with the failures that belong to each row. */
const TABLE: Readonly<Record<number, readonly FailureCode[]>> = {
  // Unexpected, and a service's other 4xx: 405, 409, 413, 415, 421, a 400 or 422 without Site, Date or Bandwidth.
  1: [
    'bug',
    'request_rejected',
    'tokens_invalid',
    'body_unreadable',
    'request_invalid',
    'experiment_tokens_differ',
    'method_not_allowed',
    'idempotency_key_reused',
    'body_too_large',
    'media_type_unsupported',
    'host_unknown',
  ],
  2: ['usage', 'file_unusable', 'state_unusable', 'experiment_invalid', 'name_taken', 'planned'],
  3: ['not_found', 'not_supported'],
  4: ['not_logged_in', 'code_expired', 'token_missing', 'token_invalid', 'token_expired'],
  5: ['login_denied', 'forbidden', 'role_not_allowed', 'scope_missing', 'wrong_experiment', 'wrong_project'],
  6: [
    'site_invalid',
    'site_unknown',
    'sites_equal',
    'sites_fixed',
    'sites_not_connected',
    'date_invalid',
    'date_past',
    'period_empty',
    'reservation_ended',
    'experiment_ends_first',
    'experiment_expired',
    'project_ends_first',
    'project_expired',
    'bandwidth_invalid',
    'bandwidth_unavailable',
    'vlans_unavailable',
    'share_exceeded',
  ],
  7: ['network', 'timeout', 'too_many_requests', 'internal', 'unavailable', 'outcome_unknown'],
  8: ['login_pending'],
  9: ['reply_invalid', 'unverified', 'unsigned'],
  10: ['partly_done'],
  130: ['interrupted'],
  143: ['terminated'],
};

const rows = Object.entries(TABLE).flatMap(([exitCode, codes]) =>
  codes.map((code): [FailureCode, number] => [code, Number(exitCode)]),
);

describe('exit codes', () => {
  test.each(rows)('%s ends with %i', (code, exitCode) => {
    expect(EXIT_CODE_OF[code]).toBe(exitCode);
  });

  test('every known failure has an exit code, and only they have one', () => {
    const known = [...Object.keys(PROBLEM_STATUS), ...CLIENT_FAILURES].toSorted();
    expect(rows.map(([code]) => code).toSorted()).toEqual(known);
    expect(Object.keys(EXIT_CODE_OF).toSorted()).toEqual(known);
  });

  test('every failure ends with a code above 0', () => {
    expect(Object.values(EXIT_CODE_OF)).not.toContain(0);
  });

  test('the help topic explains exactly the exit codes of CLI.md', () => {
    expect(Object.keys(EXIT_CODES).map(Number)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 130, 143]);
    for (const meaning of Object.values(EXIT_CODES)) expect(meaning).toMatch(/\S/);
  });
});
