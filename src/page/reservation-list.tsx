import { useMemo, useRef, useState } from 'preact/hooks';
import { Notice } from './notice.tsx';
import type { Page } from './page-props.ts';
import { type OpenMenu, ReservationMenu } from './reservation-menu.tsx';
import { ReservationRow } from './reservation-row.tsx';
import { lastChange, type Placed, placed } from './reservation-rows.ts';
import type { OwnReservation } from './service.ts';
import { LIST_HEADING, sought } from './sights.ts';
import { useShown } from './signals.ts';
import { SkipLink } from './skip-link.tsx';
import { calendarOf } from './state.ts';
import { foundIn } from './words.ts';

/** From how many reservations on some are looked for. */
const FINDABLE = 6;
/** How many reservations are shown at first, and how many more at each click. */
const SHOWN = 50;

const TITLES = { now: 'Now', today: 'Today', later: 'Later', ended: 'Ended' };
const numberText = (count: number): string => count.toLocaleString('en');

/** The reservations of the chosen experiment, in groups of rows. */
export function ReservationList({ page }: { page: Page }) {
  const parts = useShown(page, ({ login, chosen, live, ended, filter, hidden, zone, now, notice }) => ({
    ...{ isUser: login?.user != null, chosen, live, ended, filter, hidden, zone },
    ...{ now: lastChange([...(live ?? []), ...(ended ?? [])], now) },
    noticed: typeof notice?.at === 'object' ? notice.at.id : undefined,
  }));
  const { isUser, chosen, live, ended, filter, hidden, noticed } = parts;
  const [most, setMost] = useState(SHOWN);
  const [menu, setMenu] = useState<OpenMenu>();
  const [isPast, setPast] = useState(false);
  const [, again] = useState({});
  const place = useRef<HTMLDivElement>(null);
  const kept = useRef<readonly Placed<OwnReservation>[]>([]);
  const calendar = calendarOf(parts);
  // What ended since the list was asked for is not lost.
  const all = useMemo(
    () => [...new Map([...(ended ?? []), ...(live ?? [])].map((one) => [one.id, one])).values()],
    [ended, live],
  );
  const sorted = useMemo(() => placed(all, calendar), [all, calendar.clock, calendar.now]);
  if (!isUser || !chosen) return null;

  const wanted = sought.value?.id;
  const { current } = place;
  // Where someone is at it, no row takes the place of another.
  const isHeld = current?.matches(':hover') || current?.contains(document.activeElement);
  const rows = isHeld ? placed(all, calendar, kept.current) : sorted;
  kept.current = rows;
  const found = new Set(foundIn(all, filter, calendar.now));
  const isShown = ({ own }: Placed<OwnReservation>): boolean => found.has(own) || own.id === wanted;
  const isOver = ({ group }: Placed<OwnReservation>): boolean => group === 'ended';
  const now = hidden === undefined ? rows.filter((one) => !isOver(one)) : [];
  const over = rows.filter((one) => isOver(one) && isShown(one));
  const isPastOpen = isPast || over.some(({ own }) => own.id === wanted);
  const matching = now.filter(isShown);
  const first = matching.filter(({ own }, index) => index < most || own.id === wanted);
  const none = now.length === 0 ? 'None now or later.' : matching.length === 0 ? 'None like that.' : '';
  const note = hidden ?? (live === undefined ? 'Loading…' : none);
  const isStray = noticed !== undefined && ![...first, ...over].some(({ own }) => own.id === noticed);

  const row = ({ own }: Placed<OwnReservation>) => (
    <ReservationRow key={own.id} page={page} own={own} openMenu={setMenu} />
  );
  return (
    <section class="list" aria-labelledby={LIST_HEADING}>
      <div class="list-head">
        <h2 id={LIST_HEADING} tabIndex={-1}>
          Reservations of {chosen.name}
        </h2>
        {(filter !== '' || now.length >= FINDABLE) && (
          <div class="find">
            <span class="soft" role="status">
              {filter !== '' && `${numberText(matching.length)} of ${numberText(now.length)}`}
            </span>
            <input
              {...{ type: 'search', id: 'filter', autocomplete: 'off', value: filter }}
              placeholder="Name, id, site or state…"
              aria-label="Find reservations"
              onInput={({ currentTarget }) =>
                page.store.dispatch({ type: 'learnt', facts: { filter: currentTarget.value } })
              }
            />
          </div>
        )}
      </div>
      <SkipLink to="after-list">Skip the list</SkipLink>
      {isStray && <Notice page={page} at={{ id: noticed }} />}
      {note !== '' && <p class="soft">{note}</p>}
      <div
        ref={place}
        onPointerLeave={() => again({})}
        onFocusOut={({ relatedTarget, currentTarget }) => {
          // Later: it may go since its row does, which is shown right now.
          if (!(relatedTarget instanceof Node && currentTarget.contains(relatedTarget)))
            setTimeout(() => again({}));
        }}
      >
        {first.length > 0 && (
          <ul class="reservations" aria-labelledby={LIST_HEADING}>
            {first.flatMap((one, index) => [
              // One list, so that a row stays what it is where its group is another one.
              one.group !== first[index - 1]?.group && (
                <li key={one.group} class="group">
                  <h3>{TITLES[one.group]}</h3>
                </li>
              ),
              row(one),
            ])}
          </ul>
        )}
        {matching.length > most && (
          <button type="button" class="quiet" onClick={() => setMost(most + SHOWN)}>
            Show {SHOWN} more of {matching.length}
          </button>
        )}
        {hidden === undefined && live !== undefined && (
          <details
            open={isPastOpen}
            onToggle={({ currentTarget }) => {
              setPast(currentTarget.open);
              if (currentTarget.open) page.loadEnded();
            }}
          >
            <summary>{TITLES.ended}</summary>
            <p class="soft">
              {ended === undefined
                ? 'Loading…'
                : `${over.length === 0 ? 'None. ' : ''}The service does not list deleted ones.`}
            </p>
            <ul class="reservations" aria-label="Ended reservations">
              {over.slice(0, most).map(row)}
            </ul>
          </details>
        )}
        <ReservationMenu {...{ page, menu }} close={() => setMenu(undefined)} />
      </div>
      <span id="after-list" />
    </section>
  );
}
