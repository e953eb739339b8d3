import { formatBandwidth } from '../../contract/amounts.ts';
import type { Period } from '../../contract/instants.ts';
import type { Times } from '../../contract/said.ts';
import { type Calendar, endText, instantText } from '../../words/civil-time.ts';
import type { Column, Link, Own } from '../service.ts';

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
function ownText({ id, name, bandwidth }: Own): string {
  return `${name ?? `…${id.slice(-6)}`} with ${formatBandwidth(bandwidth)}`;
}

/** How many of my reservations are named. */
const MOST_NAMED = 4;

/** My reservations in words, of many the first ones. */
export function mineTexts(own: readonly Own[]): string[] {
  const more = own.length > MOST_NAMED ? [`and ${own.length - MOST_NAMED} more of yours`] : [];
  return [...own.slice(0, MOST_NAMED).map(ownText), ...more];
}

/** How the drawing is used: by a user who may book, and by one who may only look. */
export function hintText(mayPick: boolean): string {
  const first = mayPick ? 'Click a row for the start, or drag over it' : 'Click a row, or drag over it';
  return `${first} (a finger rests first). Drag the dates to move; pinch or Ctrl+wheel to zoom.`;
}

/** How the keys are used. */
export function keysText(mayPick: boolean): string {
  const enter = mayPick ? 'Enter picks' : 'Enter says again what is free';
  return `Arrow keys move in time and between links, with Shift left and right change the length; plus and minus zoom; Page Up and Page Down turn pages; Home goes to now; ${enter}.`;
}
