import { describe, expect, test } from 'vitest';
import { type Attempt, pauseBeforeNext } from '../../src/client/transport.ts';

const status = (code: number, retryAfter: string | null = null): Attempt => ({ status: code, retryAfter });

describe('a reply', () => {
  test.each<[Attempt, number, number, number | undefined]>([
    [status(503), 1, 0, 300],
    [status(503), 1, 1, 450],
    [status(503), 2, 0, 600],
    [status(503), 2, 1, 900],
    [status(503), 3, 0, undefined],
    [status(503), 4, 0, undefined],
    ...[429, 502, 504].map((code): [Attempt, number, number, number] => [status(code), 1, 0, 300]),
    ...[200, 204, 301, 400, 401, 403, 404, 408, 409, 422, 425, 500, 501, 505].map(
      (code): [Attempt, number, number, undefined] => [status(code, '1'), 1, 0, undefined],
    ),
    // Retry-After, in seconds (RFC 9110 §10.2.3).
    [status(503, '1'), 1, 0, 1000],
    [status(429, '7'), 2, 1, 7000],
    [status(503, '0'), 1, 0, 300],
    [status(503, '999999'), 1, 0, 999_999_000],
    [status(503, '1'), 3, 0, undefined],
    // A value that is not a number of seconds is ignored.
    ...['', '-1', '1.5', '1e3', ' 2', '9999999', '١', 'Sat, 21 Nov 2026 12:00:00 GMT'].map(
      (text): [Attempt, number, number, number] => [status(503, text), 1, 0, 300],
    ),
  ])('%j, attempts made %i, chance %d: %s', (attempt, made, chance, pause) => {
    expect(pauseBeforeNext(made, attempt, chance)).toBe(pause);
  });
});

describe('no reply', () => {
  test.each([
    ['ECONNRESET', 300],
    ['EPIPE', 300],
    ['ETIMEDOUT', 300],
    ['EAI_AGAIN', 300],
    ['ENETDOWN', 300],
    ['ENETRESET', 300],
    ['UND_ERR_SOCKET', 300],
    ['ECONNREFUSED', undefined],
    ['ENOTFOUND', undefined],
    ['EHOSTUNREACH', undefined],
    ['CERT_HAS_EXPIRED', undefined],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', undefined],
    ['UND_ERR_CONNECT_TIMEOUT', undefined],
    ['', undefined],
  ])('%s: %s', (problem, pause) => {
    expect(pauseBeforeNext(1, { problem }, 0)).toBe(pause);
    expect(pauseBeforeNext(2, { problem }, 0)).toBe(pause === undefined ? undefined : pause * 2);
    expect(pauseBeforeNext(3, { problem }, 0)).toBeUndefined();
  });
});
