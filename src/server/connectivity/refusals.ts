import type { Refusal } from '../../allocator/calendar.ts';
import type { Offer } from '../../allocator/offers.ts';
import type { RefusedOutcome } from '../../allocator/outcome.ts';
import { formatInstant } from '../../contract/instants.ts';
import type { Link } from '../../contract/links.ts';
import type { Alternative, Problem } from '../../contract/problems.ts';
import { ProblemError } from '../problem-error.ts';

/**
 * The reply to a demand that the link can't meet: every limit that it broke, with the arithmetic, and what would be
 * accepted instead (SPEC.md, "Errors" 2 and 3).
 */
export function refusedOutcome(outcome: RefusedOutcome, demanded: number): ProblemError {
  const [first, ...rest] = outcome.refusals.map((refusal) => problem(refusal, outcome.link, demanded));
  if (!first) throw new RangeError('a refusal without a reason');
  const advice = outcome.offers.map(sentence).join(' ');
  const advised = advice === '' ? first : { ...first, msg: `${first.msg} ${advice}` };
  return new ProblemError([advised, ...rest], outcome.offers.map(alternative));
}

function problem(refusal: Refusal, link: Link, demanded: number): Problem {
  const { site1, site2 } = link;
  const period = `from ${formatInstant(refusal.start)} to ${formatInstant(refusal.end)}`;
  if (refusal.limit === 'bandwidth') {
    const used = refusal.capacity - refusal.free;
    return {
      code: 'bandwidth_unavailable',
      loc: 'Bandwidth',
      msg: `Not enough free bandwidth between ${site1} and ${site2}: ${used} + ${demanded} = ${used + demanded} Mbps of ${refusal.capacity} ${period}; ${refusal.free} Mbps are free.`,
    };
  }
  const site = refusal.place.startsWith('site1') ? site1 : site2;
  const kind = refusal.place.endsWith('s_tag') ? 'S-tags' : 'C-tags';
  return {
    code: 'vlans_unavailable',
    loc: 'Bandwidth',
    msg: `No available VLANs between the two sites ${period}: each of the ${refusal.total} ${kind} at ${site} is taken for some of it.`,
  };
}

function sentence({ bandwidth, start, end }: Offer): string {
  return `Would be accepted: ${bandwidth} Mbps from ${formatInstant(start)} to ${formatInstant(end)}.`;
}

function alternative({ bandwidth, start, end }: Offer): Alternative {
  return { bandwidth, start_date: formatInstant(start), end_date: formatInstant(end) };
}
