import { linkName } from '../../words/links.ts';
import { element } from '../elements.ts';
import type { Link } from '../service.ts';
import { type TimelineAction, UNITS, type Unit } from './model.ts';

/** The buttons above the timeline. */
export interface Toolbar {
  element: HTMLElement;
  /** Marks the buttons of what is shown; `unit` undefined for none. */
  show(unit: Unit | undefined, isTable: boolean): void;
}

/** Makes the buttons, and the field that filters the links. */
export function createToolbar(links: readonly Link[], dispatch: (action: TimelineAction) => void): Toolbar {
  const button = (text: string, onclick: () => void, label?: string): HTMLButtonElement =>
    element('button', { type: 'button', 'aria-label': label, onclick }, text);
  const turn = (times: 1 | -1) => () => dispatch({ type: 'turn', times });
  const zoom = (factor: number) => () => dispatch({ type: 'zoom', factor });
  const units = UNITS.map((unit) =>
    button(`${unit[0]?.toUpperCase()}${unit.slice(1)}`, () => dispatch({ type: 'unit', unit })),
  );
  const table = button('Table', () => dispatch({ type: 'table', isTable: table.ariaPressed !== 'true' }));
  const now = button('Now', () => dispatch({ type: 'now' }));
  const filter = element('input', {
    ...{ type: 'search', placeholder: 'Site…', 'aria-label': 'Show links of' },
    oninput: () => {
      const text = filter.value.trim().toLowerCase();
      const rows = links.flatMap((link, row) => (linkName(link).includes(text) ? [row] : []));
      dispatch({ type: 'filtered', rows: text === '' ? undefined : rows });
    },
  });
  const groups = [
    units,
    [button('‹', turn(-1), 'Earlier'), now, button('›', turn(1), 'Later')],
    [button('−', zoom(2), 'Zoom out'), button('+', zoom(0.5), 'Zoom in')],
    [table],
    [filter],
  ];
  return {
    element: element(
      'div',
      { class: 'timeline-toolbar', role: 'group', 'aria-label': 'Time shown' },
      ...groups.map((group) => element('span', {}, ...group)),
    ),
    show(shown, isTable) {
      for (const [index, one] of units.entries()) one.ariaPressed = `${UNITS[index] === shown}`;
      table.ariaPressed = `${isTable}`;
    },
  };
}
