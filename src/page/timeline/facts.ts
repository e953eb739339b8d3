import { linkName } from '../../words/links.ts';
import type { Link } from '../service.ts';
import type { Mark } from './model.ts';
import { freeIn } from './use.ts';
import type { View } from './view.ts';
import { freeText, mineTexts, periodText } from './words.ts';

/** A period of a row in words: when it is, what is free, and my reservations in it. */
export function factsAt(view: FactsView, mark: Mark, link: Link) {
  const { now, columns } = view;
  const free = freeIn(columns.get(link) ?? [], mark, now);
  const isOver = mark.end <= now;
  return {
    when: periodText(mark, view),
    facts: isOver ? 'this time is over' : free ? freeText(free, link) : 'not loaded yet',
    own: (view.own[mark.row] ?? []).filter(({ start, end }) => start < mark.end && end > mark.start),
  };
}

/** The parts of a view about which something is said. */
type FactsView = Pick<View, 'clock' | 'now' | 'columns' | 'own'>;

/**
 * A period of a row in a sentence, as the live region says it.
 *
 * @example 'be-gent1 – pl-poznan1, Mon 23 Nov 09:00 to 17:00: 6 of 10 Gbps free throughout, 996 VLANs.'
 */
export function periodSentence(view: FactsView, mark: Mark, link: Link): string {
  const { when, facts, own } = factsAt(view, mark, link);
  const mine = own.length === 0 ? '' : `; yours: ${mineTexts(own).join(', ')}`;
  return `${linkName(link)}, ${when}: ${facts}${mine}.`;
}
