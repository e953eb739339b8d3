import { expect, test } from 'vitest';
import { summary } from '../../../src/cli/reservation/delete.ts';
import { Failure, type FailureFacts } from '../../../src/contract/failure.ts';

const unknown = new Failure('outcome_unknown', 'Nobody knows.', { maybeDone: true, retryable: false });
const away = new Failure('unavailable', 'Not now.', { retryable: true });
const gone = new Failure('not_found', 'It is gone.');

/** The outcomes of three deletions, and the one failure that reports them. */
test.each<[string, (Failure | undefined)[], string, FailureFacts]>([
  [
    'one unknown, two done',
    [unknown, undefined, undefined],
    'partly_done',
    { maybeDone: true, retryable: false },
  ],
  ['one unknown, two away', [away, unknown, away], 'unavailable', { maybeDone: true, retryable: false }],
  ['one unknown, one gone', [gone, unknown, undefined], 'partly_done', { maybeDone: true, retryable: false }],
])('row 43: several deletions: %s', (_, failed, code, facts) => {
  const ids = ['con_1', 'con_2', 'con_3'];
  const failures = new Map(ids.flatMap((id, index) => (failed[index] ? [[id, failed[index]]] : [])));
  expect(summary(ids, failures)).toMatchObject({ code, facts });
});

test('several deletions: which were made is told to programs too, and no id twice', () => {
  const ids = ['con_1', 'con_2', 'con_3'];
  const known = new Failure('not_found', 'There is no reservation con_2.');
  const failures = new Map([
    ['con_1', gone],
    ['con_2', known],
  ]);
  const { facts } = summary(ids, failures);
  expect([String(facts.why), facts.fix, facts.items]).toEqual([
    'con_1: It is gone. There is no reservation con_2.',
    'slices-conn list',
    ids.map((id) => ({ id, deleted: id === 'con_3' })),
  ]);
});

test('row 43: several deletions that were not made have no maybeDone', () => {
  const failures = new Map([
    ['con_1', away],
    ['con_2', gone],
  ]);
  expect(summary(['con_1', 'con_2'], failures).facts.maybeDone).toBeUndefined();
});
