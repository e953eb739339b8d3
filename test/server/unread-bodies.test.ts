import { describe, expect, test } from 'vitest';
import { EXPERIMENT_TOKEN_HEADER } from '../../src/contract/routes.ts';
import { addressOf, booking, EXPERIMENTS, openService, outcome } from '../fixtures/service.ts';

const service = await openService();
const { headers: own } = await service.as('lead');
const { authorization = '', [EXPERIMENT_TOKEN_HEADER]: experiment = '' } = own;
/** The same token with another signature. */
const forged = (token: string): string => token.replace(/[^.]{8}$/, 'AAAAAAAA');

/** A body that counts its reads. */
function countedBody() {
  const count = { pulled: 0 };
  const body = new ReadableStream<Uint8Array>(
    {
      pull(stream) {
        count.pulled += 1;
        stream.enqueue(Buffer.from(JSON.stringify(booking())));
        stream.close();
      },
    },
    { highWaterMark: 0 },
  );
  return { body, count };
}

const ID = 'con_offline.localhost_01jd3x0m2sf0vrv9mhb1wk6x4q';
const ENDPOINTS: [method: string, address: string][] = [
  ['POST', addressOf('createReservation')],
  ['PUT', addressOf('updateReservation', ID)],
  ['POST', EXPERIMENTS],
];
const CREDENTIALS: [title: string, headers: Record<string, string>, expected: string][] = [
  ['no token', {}, '403 token_missing'],
  ['Basic', { authorization: 'Basic YTpi' }, '403 token_invalid'],
  ['what is no token', { authorization: 'Bearer a.b.c' }, '403 token_invalid'],
  ['a forged user token', { ...own, authorization: forged(authorization) }, '403 token_invalid'],
  ['a forged experiment token', { authorization: `Bearer ${forged(experiment)}` }, '403 token_invalid'],
];

describe.each(ENDPOINTS)('row 47: %s %s', (method, address) => {
  test.each(CREDENTIALS)(
    '%s: the request is refused, and the body is not read',
    async (_, headers, expected) => {
      const { body, count } = countedBody();
      expect(outcome(await service.send(method, address, { headers, body }))).toBe(expected);
      expect(count.pulled).toBe(0);
    },
  );

  test('with a valid token the body is read', async () => {
    const { body, count } = countedBody();
    const { status } = await service.send(method, address, { headers: own, body });
    expect(status).not.toBe(403);
    expect(count.pulled).toBe(1);
  });
});

test('row 47: a forged token in the experiment token’s header is refused without reading the body', async () => {
  const { body, count } = countedBody();
  const headers = { ...own, [EXPERIMENT_TOKEN_HEADER]: forged(experiment) };
  const reply = await service.send('POST', addressOf('createReservation'), { headers, body });
  expect(outcome(reply)).toBe('403 token_invalid');
  expect(count.pulled).toBe(0);
});
