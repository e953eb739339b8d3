import { formatDuration, HOUR, MINUTE, SECOND } from '../../contract/durations.ts';
import { tooMany } from '../problem-error.ts';
import { RateLimit } from '../rate-limit.ts';

/**
 * A {@link RateLimit} of changes for each user and for each experiment, since each leaves rows that are kept for a year or more.
 * A change is a create or an update that a link has accepted or refused: each leaves a row in the audit. Deletions are not
 * limited: there is at most one for each create.
 */
export class ChangeBudget {
  readonly #most: number;
  readonly #limit: RateLimit;

  /**
   * @param most changes at once, and in each hour after that; `Infinity` for no limit
   * @param now milliseconds since the Unix epoch
   */
  constructor(most: number, now: () => number) {
    this.#most = most;
    this.#limit = new RateLimit(most, HOUR, now);
  }

  /** @throws ProblemError 429 with `Retry-After` where the user's budget, or the experiment's, is used up */
  check(user: string, experiment: string): void {
    const whose = { [user]: 'You have', [experiment]: 'This experiment has' };
    for (const [name, has] of Object.entries(whose)) {
      const seconds = Math.ceil(this.#limit.wait(name) / SECOND);
      if (seconds === 0) continue;
      const changes = this.#most === 1 ? 'a change' : `${this.#most} changes`;
      const unit = seconds < 2 * (MINUTE / SECOND) ? SECOND : MINUTE;
      const again = formatDuration(Math.ceil((seconds * SECOND) / unit) * unit);
      throw tooMany(`${has} asked for ${changes} within an hour. Try again in ${again}.`, seconds);
    }
  }

  /** Counts changes that a link has accepted or refused. */
  count(user: string, experiment: string, changes: number): void {
    for (const name of [user, experiment]) this.#limit.count(name, changes);
  }
}
