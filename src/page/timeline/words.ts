import { formatBandwidth } from '../../contract/amounts.ts';
import type { Period } from '../../contract/instants.ts';
import type { Times } from '../../contract/said.ts';
import { type Calendar, endText, instantText } from '../../words/civil-time.ts';
import { linkName } from '../../words/links.ts';
import type { Column, Link, Own } from '../service.ts';
import type { Mark } from './model.ts';
import { freeIn } from './use.ts';
import type { View } from './view.ts';

/** A period in words: `Mon 23 Nov 09:00 to 17:00`, or with both days. */
export function periodText({ start, end }: Period, calendar: Calendar): string {
  return timesIn(calendar).ends(start, end).join(' to ');
}

/** Times in sentences, in the page's zone. */
export function timesIn(calendar: Calendar): Times {
  return {
    instant: (at) => instantText(at, calendar),
    ends: (start, end) => [instantText(start, calendar), endText(start, end, calendar)],
  };
}

/** `6 of 10 Gbps`; both units where they differ. */
export function shareText(free: number, of: number): string {
  const [part, whole] = [formatBandwidth(free), formatBandwidth(of)];
  const [number, unit] = part.split(' ');
  return free === 0 || (unit && whole.endsWith(unit))
    ? `${free === 0 ? 0 : number} of ${whole}`
    : `${part} of ${whole}`;
}

/** `996 VLANs`. */
export function vlansText(vlans: number): string {
  return `${vlans} ${vlans === 1 ? 'VLAN' : 'VLANs'}`;
}

/** The free part of a link, in words: `6 of 10 Gbps free throughout, up to 8 Gbps for part of it, 996 VLANs`. */
export function freeText({ free, freeMax, vlans }: Omit<Column, keyof Period>, link: Link): string {
  const best = freeMax > free ? `, up to ${formatBandwidth(freeMax)} for part of it` : '';
  const tags = vlans === 0 ? 'no VLAN left' : vlansText(vlans);
  return `${shareText(free, link.bandwidth)} free throughout${best}, ${tags}`;
}

/** My reservation in words: its name, or the end of its id, and its bandwidth. */
export function ownText({ id, name, bandwidth }: Own): string {
  return `${name ?? `…${id.slice(-6)}`} with ${formatBandwidth(bandwidth)}`;
}

/** The most Mbps that my reservations have at the same time, from an instant on. */
export function mostOf(own: readonly Own[], from: number): number {
  const steps = own.flatMap(({ start, end, bandwidth }) => [
    { at: Math.max(start, from), by: bandwidth },
    { at: end, by: -bandwidth },
  ]);
  let [most, sum] = [0, 0];
  // What ends makes room for what begins at that time.
  for (const { by } of steps.toSorted((one, other) => one.at - other.at || one.by - other.by)) {
    sum += by;
    most = Math.max(most, sum);
  }
  return most;
}

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
  const [first, ...others] = own;
  // Of many the names would be more than a line can hold.
  const several = `; ${own.length} of yours, ${formatBandwidth(mostOf(own, mark.start))} at most`;
  const mine = first === undefined ? '' : others.length === 0 ? `; yours: ${ownText(first)}` : several;
  return `${linkName(link)}, ${when}: ${facts}${mine}.`;
}

/** How the drawing is used: by a user who may book, and by one who may only look. */
export function hintText(mayPick: boolean, isTouch: boolean): string {
  if (isTouch) return mayPick ? TOUCH.pick : TOUCH.look;
  return `${mayPick ? POINTER.pick : POINTER.look} Drag the dates to move; Ctrl and the wheel zoom.`;
}

const TOUCH = {
  pick: 'Tap a row for the start, or rest your finger there and drag. Two fingers zoom.',
  look: 'Tap a row to see what is free. Two fingers zoom.',
};
const POINTER = {
  pick: 'Click a row for the start, or drag over it for all of the time.',
  look: 'Point at a row, or drag over it, to see what is free.',
};

/** How the keys are used. */
export function keysText(mayPick: boolean): string {
  const enter = mayPick ? 'Enter picks' : 'Enter says again what is free';
  return `Arrow keys move in time and between links, with Shift left and right change the length; plus and minus zoom; Page Up and Page Down turn pages; Home goes to now; ${enter}.`;
}
