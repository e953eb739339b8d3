import { Slices } from './event-loop.ts';

/**
 * Work in steps, as a generator. Between two of them others may have their turn of the event loop. Where a step gives a promise,
 * such as of rows that must be read, the work goes on when that is settled.
 */
export type Steps<Answer> = Generator<Promise<unknown> | undefined, Answer, void>;

/** Work that has its answer at once. */
export function* atOnce<Answer>(answer: Answer): Steps<Answer> {
  yield;
  return answer;
}

/** Work has taken as long as it may, or read as many rows of a link. What it found until then stands. */
export class TooMuchError extends Error {
  override readonly name = 'TooMuchError';
  /** Of a search for a time: nothing fits before this instant, in milliseconds. */
  readonly notBefore: number | undefined;

  constructor(notBefore?: number) {
    super('the question takes too much');
    this.notBefore = notBefore;
  }
}

/**
 * Takes the steps of work to its end. Where it takes too long, the work is told by a {@link TooMuchError}, and has a quarter of the
 * time more to end with what it has; then it is told again.
 *
 * @param most how long all slices may take, in milliseconds
 * @param turn where another slice begins. Default: in the next turn of the event loop
 */
export async function finish<Answer>(
  work: Steps<Answer>,
  { most, turn }: { most: number; turn?: () => Promise<void> },
): Promise<Answer> {
  const slices = new Slices();
  let until = most;
  let step = work.next();
  while (!step.done) {
    let failure: unknown;
    if (step.value) {
      await slices.wait(step.value).catch((error: unknown) => {
        failure = error;
      });
    }
    if (slices.isOver) await slices.next(turn);
    if (slices.spent > until) {
      failure ??= new TooMuchError();
      until = slices.spent + most / 4;
    }
    step = failure === undefined ? work.next() : work.throw(failure);
  }
  return step.value;
}
