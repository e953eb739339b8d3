import { element } from '../elements.ts';

/** The lengths that have a button. */
export const UNITS = ['day', 'week', 'month', 'year'] as const;
/** See {@link UNITS}. */
export type Unit = (typeof UNITS)[number];

/** What the buttons do. */
export interface ToolbarHandlers {
  onUnit(unit: Unit): void;
  /** Earlier or later by a whole window. */
  onTurn(times: 1 | -1): void;
  onNow(): void;
  /** Below 1 shows less. */
  onZoom(factor: number): void;
  /** The drawing or the table. */
  onTable(isTable: boolean): void;
}

/** The buttons above the timeline. */
export interface Toolbar {
  element: HTMLElement;
  /** Marks the button of the unit that is shown; undefined for none. */
  press(unit: Unit | undefined): void;
}

/** Makes the buttons. */
export function createToolbar({ onUnit, onTurn, onNow, onZoom, onTable }: ToolbarHandlers): Toolbar {
  const button = (text: string, onclick: () => void, label?: string): HTMLButtonElement =>
    element('button', { type: 'button', 'aria-label': label, onclick }, text);
  const units = UNITS.map((unit) => button(`${unit[0]?.toUpperCase()}${unit.slice(1)}`, () => onUnit(unit)));
  const table = button('Table', () => {
    const isTable = table.ariaPressed !== 'true';
    table.ariaPressed = `${isTable}`;
    onTable(isTable);
  });
  table.ariaPressed = 'false';
  const groups = [
    units,
    [button('‹', () => onTurn(-1), 'Earlier'), button('Now', onNow), button('›', () => onTurn(1), 'Later')],
    [button('−', () => onZoom(2), 'Zoom out'), button('+', () => onZoom(0.5), 'Zoom in')],
    [table],
  ];
  return {
    element: element(
      'div',
      { class: 'timeline-toolbar', role: 'group', 'aria-label': 'Time shown' },
      ...groups.map((group) => element('span', {}, ...group)),
    ),
    press(shown) {
      for (const [index, one] of units.entries()) one.ariaPressed = `${UNITS[index] === shown}`;
    },
  };
}
