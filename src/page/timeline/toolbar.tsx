import type { ComponentChildren } from 'preact';
import type { LiveView } from './follow.ts';
import { type TimelineAction, UNITS } from './model.ts';

/** From how many links on a field finds them by their sites. */
const MANY = 20;

type Props = Pick<LiveView, 'page' | 'state' | 'links' | 'selectedRows'> & { children: ComponentChildren };

/** The buttons above the timeline, and the field that finds links. */
export function Toolbar({ page, state, links, selectedRows, children }: Props) {
  const { unit, isTable, isNarrow, isAll, filter } = state;
  const set = (parts: Partial<LiveView['state']>): TimelineAction => ({ type: 'set', parts });
  const button = (
    text: string,
    action: TimelineAction,
    { label, isOn }: { label?: string; isOn?: boolean } = {},
  ) => (
    <button key={text} type="button" aria-label={label} aria-pressed={isOn} onClick={() => page.move(action)}>
      {text}
    </button>
  );
  return (
    <fieldset class="timeline-toolbar" aria-label="Time shown">
      <span>
        {UNITS.map((one) => {
          const text = `${one[0]?.toUpperCase()}${one.slice(1)}`;
          return button(text, { type: 'unit', unit: one }, { isOn: one === unit });
        })}
      </span>
      <span>
        {button('‹', { type: 'turn', times: -1 }, { label: 'Earlier' })}
        {button('Now', { type: 'now' })}
        {button('›', { type: 'turn', times: 1 }, { label: 'Later' })}
      </span>
      <span>
        {button('−', { type: 'zoom', factor: 2 }, { label: 'Zoom out' })}
        {button('+', { type: 'zoom', factor: 0.5 }, { label: 'Zoom in' })}
      </span>
      <span>{button('Table', set({ isTable: !isTable }), { isOn: isTable })}</span>
      {isNarrow && selectedRows.length > 0 && (
        <span>{button('All links', set({ isAll: !isAll }), { isOn: isAll })}</span>
      )}
      {links.length > MANY && (
        <input
          {...{ type: 'search', placeholder: 'Site…', 'aria-label': 'Show links of', value: filter }}
          onInput={({ currentTarget }) => page.move(set({ filter: currentTarget.value }))}
        />
      )}
      {children}
    </fieldset>
  );
}
