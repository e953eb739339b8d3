import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Page } from '../page-props.ts';
import { isSamePair } from '../route.ts';
import type { NetworkFacts } from '../service.ts';
import { useShown } from '../signals.ts';
import { type Selected, timelineTerms } from '../state.ts';
import { ownByRow } from './blocks.ts';
import { Drawing, type Place } from './drawing.tsx';
import { periodSentence } from './facts.ts';
import type { LiveView } from './follow.ts';
import { layoutFor } from './layout.ts';
import { rowsOf } from './model.ts';
import { TimelineTable } from './table.tsx';
import { Toolbar } from './toolbar.tsx';
import { createUse } from './use.ts';
import { linkOf, type View } from './view.ts';
import { hintText, periodText } from './words.ts';

/** Milliseconds. */
const LOAD_DELAY = 60;
const SAY_DELAY = 500;
/** How often the time goes on, for what is drawn. */
const TICK = 15_000;
const FAULT = ' · Not all could be loaded; it is tried again.';
/** The most links of the table, and its columns as if it was so wide: some 60 of each link. */
const TABLED = 40;
const TABLE_WIDTH = 90;

/** Every link's use over time: a drawing that is moved and zoomed, a table of the same facts, and the same in words. */
export function Timeline({ page, network: { links } }: { page: Page; network: NetworkFacts }) {
  const { zone, user, stale, ...parts } = useShown(page, (state) => ({
    ...{ ...timelineTerms(state), now: Math.floor(state.now / TICK) * TICK, zone: state.zone },
    ...{ state: state.timeline, live: state.live, ended: state.ended, marked: state.marked },
    ...{ user: state.login?.user?.id, stale: state.stale },
  }));
  const { state, pair, selectedRows, mayPick, clock, live, ended } = parts;
  const { window, filter, first, isNarrow, isAll, isTable } = state;
  const use = useMemo(() => createUse(page), []);
  const { columns, isLoading, hasFailed } = use.known.value;
  const [place, setPlace] = useState<Place>({ width: 0, first: 0, last: 0 });
  const rows = useMemo(
    () => rowsOf({ filter, first: isTable ? selectedRows : first, isNarrow, isAll }, parts),
    [filter, first, isTable, isNarrow, isAll, pair, selectedRows],
  );
  const own = useMemo(() => ownByRow([...(ended ?? []), ...(live ?? [])], links, pair), [ended, live, pair]);
  const looked = isTable ? rows.slice(0, TABLED) : rows.slice(place.first, place.last);

  const width = isTable ? TABLE_WIDTH : place.width;
  useEffect(use.forget, [user]);
  useEffect(() => {
    if (user === undefined || width === 0) return undefined;
    // Once nothing has moved for a moment.
    const some = looked.flatMap((row) => links[row] ?? []);
    const two = looked.includes(links.length) ? pair : undefined;
    const timer = setTimeout(() => use.look({ links: some, pair: two, window, width, clock }), LOAD_DELAY);
    return () => clearTimeout(timer);
  }, [user, `${looked}`, pair, window, width, clock]);
  useEffect(() => use.refresh(stale), [stale]);

  // The links of a route that was chosen elsewhere stand first; a row that is picked here stays where it is.
  const picked = useRef<Selected | undefined>(undefined);
  const picking: Page = {
    ...page,
    pick(selected, draft) {
      picked.current = selected;
      page.pick(selected, draft);
    },
  };
  useEffect(() => {
    const { selected } = page.store.state;
    if (selected && picked.current && isSamePair(selected, picked.current)) return;
    picked.current = undefined;
    page.move({ type: 'set', parts: { first: selectedRows } });
  }, [`${selectedRows}`]);

  const view: LiveView = {
    ...parts,
    ...place,
    page: picking,
    rows,
    own,
    columns,
    layout: layoutFor(isNarrow),
  };
  return (
    <div class="timeline">
      <Toolbar {...{ page, state, links, selectedRows }}>
        <strong>{periodText(window, parts) + (hasFailed ? FAULT : '')}</strong>
      </Toolbar>
      {isTable ? (
        <TimelineTable {...{ view, rows: looked, zone }} />
      ) : (
        <>
          <Drawing {...{ view, isLoading, setPlace }} />
          <p class="soft">{hintText(mayPick)}</p>
          <Legend />
        </>
      )}
      <Spoken text={saidText(view)} />
    </div>
  );
}

/** What the live region says. */
function saidText(view: View): string {
  const { said } = view.state;
  if (!said || !('row' in said)) return said ? periodText(said, view) : '';
  const link = linkOf(view, said.row);
  return link ? periodSentence(view, said, link) : '';
}

/** Says a text to readers of the screen, once it stays for a moment. */
function Spoken({ text }: { text: string }) {
  const [spoken, setSpoken] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setSpoken(text), SAY_DELAY);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <p class="spoken" role="status">
      {spoken}
    </p>
  );
}

/** The colours of the legend, and their meaning. */
const COLOURS = {
  ...{ used: 'in use', part: 'for part of the time', full: 'nothing left', none: 'no VLAN left' },
  mine: 'yours',
};

function Legend() {
  return (
    <ul class="timeline-legend" aria-hidden="true">
      {Object.entries(COLOURS).map(([name, text]) => (
        <li key={name}>
          <i data-name={name} style={{ background: name === 'none' ? '' : `var(--timeline-${name})` }} />
          {text}
        </li>
      ))}
    </ul>
  );
}
