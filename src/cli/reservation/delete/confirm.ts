import { Failure, type FailureFacts } from '../../../contract/failure.ts';
import { shellWord } from '../../../contract/shell-word.ts';
import { EXIT_CODE_OF } from '../../exit-codes.ts';
import type { Invocation } from '../../invocation.ts';

/**
 * Asks whether to go on, unless the flags say so.
 *
 * @param asking the question, and the command that would not ask
 * @throws Failure `usage` when the answer is no, or nobody is there to give one
 */
export async function confirmed(
  { flags, confirm }: Invocation,
  { question, command }: { question: string; command: readonly string[] },
): Promise<void> {
  if (flags.yes) return;
  const answer = await confirm(question);
  if (answer) return;
  if (answer === false) throw new Failure('usage', 'Nothing was deleted.');
  throw new Failure('usage', 'Nobody is there to confirm the deletion.', {
    why: 'Without a terminal nothing is deleted unless --yes is given.',
    fix: ['slices-conn', ...command].map(shellWord).join(' '),
  });
}

/** Does something about each reservation, one after the other. @returns what failed, by id */
export async function deleteEach(
  ids: readonly string[],
  work: (id: string) => Promise<void>,
): Promise<Map<string, Failure>> {
  const failures = new Map<string, Failure>();
  for (const id of ids) {
    try {
      await work(id);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      failures.set(id, error);
    }
  }
  return failures;
}

/**
 * One failure is told as it is; several that are alike keep their code, others are `partly_done`.
 *
 * @param deletes whether what did not fail is deleted by now
 */
export function summary(
  ids: readonly string[],
  failures: ReadonlyMap<string, Failure>,
  deletes = (id: string): boolean => !failures.has(id),
): Failure {
  const [first, ...rest] = failures.values();
  if (!first) throw new RangeError('a summary of no failures');
  if (ids.length === 1) return first;
  const why = [...failures].map(([id, { message }]) => `${id}: ${message}`).join(' ');
  const alike = rest.every(({ code }) => EXIT_CODE_OF[code] === EXIT_CODE_OF[first.code]);
  const deleted = ids.filter(deletes);
  const maybeDone = [...failures.values()].some(({ facts }) => facts.maybeDone);
  const facts: FailureFacts = { why, ...(maybeDone ? { maybeDone, retryable: false } : {}) };
  const message = `${ids.length - deleted.length} of ${ids.length} reservations were not deleted${deleted.length > 0 ? `; deleted: ${deleted.join(', ')}` : ''}.`;
  return alike && deleted.length === 0
    ? new Failure(first.code, message, { ...first.facts, ...facts })
    : new Failure('partly_done', message, facts);
}
