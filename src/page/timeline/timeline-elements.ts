import { linkName } from '../../words/links.ts';
import { element } from '../elements.ts';
import type { Link } from '../service.ts';
import { HINTS } from './words.ts';

/** The elements of a timeline, between its buttons and its table. The last label is of two sites without a link. */
export function timelineElements(links: readonly Link[]) {
  const canvas = element('canvas', {
    ...{ tabindex: '0', role: 'application', 'aria-roledescription': 'timeline' },
    ...{ 'aria-label': 'Use of the links over time', 'aria-describedby': 'timeline-keys' },
  });
  const labels = [
    ...links.map((link) => element('li', {}, linkName(link))),
    element('li', { class: 'pair' }),
  ];
  const shortKeys = element('p', { class: 'timeline-keys', 'aria-hidden': 'true' });
  const drawing = element(
    'div',
    { class: 'timeline-drawing' },
    element(
      'ol',
      { class: 'timeline-labels', 'aria-hidden': 'true' },
      ...labels.slice(-1),
      ...labels.slice(0, -1),
    ),
    canvas,
    shortKeys,
  );
  const readout = element('p', { class: 'timeline-readout' });
  const keys = element('p', { id: 'timeline-keys', hidden: true });
  return {
    ...{ canvas, labels, shortKeys, drawing, readout, keys },
    chart: element('div', {}, drawing, readout, legend(), keys),
    title: element('p', { class: 'timeline-period' }),
    live: element('p', { class: 'spoken', role: 'status' }),
    probe: element('span', { hidden: true }),
    hints: HINTS[matchMedia('(pointer: coarse)').matches ? 'touch' : 'pointer'],
  };
}

/** The meaning of the colours. */
function legend(): HTMLElement {
  const entries = [
    ['free', 'free'],
    ['used', 'in use'],
    ['part', 'in use for part of it'],
    ['full', 'nothing left'],
    ['mine', 'yours'],
    ['none', 'no VLAN left'],
    ['over', 'over'],
    ['now', 'now'],
  ] as const;
  return element(
    'ul',
    { class: 'timeline-legend', 'aria-hidden': 'true' },
    ...entries.map(([name, text]) => element('li', {}, element('i', { class: name }), text)),
  );
}
