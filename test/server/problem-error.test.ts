import { expect, test } from 'vitest';
import { CommitUnknownError, StoreUnavailableError } from '../../src/allocator/store.ts';
import { problemOf, problemReply, refusal } from '../../src/server/problem-error.ts';

const lost = new CommitUnknownError('The database was lost while it made the change.');
const away = new StoreUnavailableError("The database can't be reached.");
/** An error of the identity provider's library. */
const told = (cause?: Error): Error =>
  Object.assign(new Error('temporarily_unavailable', { cause }), { error: 'temporarily_unavailable' });

/** The thrown error, the method, status and code, the message, and Retry-After. */
test.each<[string, unknown, string, string, RegExp, string | null]>([
  ['a commit that was lost', lost, 'POST', '503 outcome_unknown', /may have been made or not/, null],
  ['a commit that was lost', lost, 'PUT', '503 outcome_unknown', /may have been made or not/, null],
  ['a commit that was lost', lost, 'DELETE', '503 outcome_unknown', /may have been made or not/, null],
  ['a commit that was lost', lost, 'GET', '503 unavailable', /Nothing was changed/, '5'],
  ['a database that is away', away, 'POST', '503 unavailable', /Nothing was changed/, '5'],
  ['a database that is away', away, 'GET', '503 unavailable', /Nothing was changed/, '5'],
  ['a commit that the library met', told(lost), 'POST', '503 outcome_unknown', /may have been made/, null],
  ['what the library met', told(away), 'POST', '503 unavailable', /Nothing was changed/, '5'],
  ['what the library says by itself', told(), 'POST', '503 unavailable', /Nothing was changed/, '5'],
  ['a refusal', refusal('not_found', 'It is gone.'), 'POST', '404 not_found', /gone/, null],
  ['a bug', new TypeError('secret'), 'POST', '500 internal', /^(?!.*(?:secret|Nothing was changed))/, null],
])('row 43: %s, thrown at %s', async (_, error, method, said, words, retryAfter) => {
  const reply = problemReply(problemOf(error, method, { log: () => undefined }));
  const { code, detail } = (await reply.json()) as { code: string; detail: { msg: string }[] };
  expect(`${reply.status} ${code}`).toBe(said);
  expect(detail[0]?.msg).toMatch(words);
  expect(reply.headers.get('retry-after')).toBe(retryAfter);
});
