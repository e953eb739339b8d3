import { useEffect, useState } from 'preact/hooks';
import { formatBandwidth } from '../contract/amounts.ts';
import { stateAt } from '../contract/instants.ts';
import { CopyButton } from './copy-button.tsx';
import { Notice } from './notice.tsx';
import type { Page } from './page-props.ts';
import { entriesFor, type OpenMenu } from './reservation-menu.tsx';
import { isEnding, lastChange, nextText, whenText } from './reservation-rows.ts';
import { ServerCommands } from './server-commands.tsx';
import type { OwnReservation } from './service.ts';
import { rowId } from './sights.ts';
import { useShown } from './signals.ts';
import { calendarOf } from './state.ts';
import { periodText } from './timeline/words.ts';
import { endsText, tagFacts, tagsText, titleOf } from './words.ts';

type RowProps = { page: Page; own: OwnReservation; openMenu(menu: OpenMenu): void };

/** A reservation in the list. Opened, it shows all of it, and the commands for the servers at both ends. */
export function ReservationRow({ page, own, openMenu }: RowProps) {
  const { id } = own;
  const { now, zone, isBusy, isMarked, chosen } = useShown(page, (state) => ({
    ...{ now: lastChange([own], state.now), zone: state.zone, chosen: state.chosen },
    ...{ isBusy: state.busy.has(id), isMarked: state.marked === id },
  }));
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (isMarked) setOpen(true);
  }, [isMarked]);
  const title = titleOf(own);
  const ends = endsText(own);
  const stage = stateAt(now, own);
  const entries = isEnding(own, now) ? [] : entriesFor(stage, { chosen });
  const next = nextText(own, now);
  return (
    <li class={stage} data-id={id} aria-current={isMarked ? 'true' : undefined} aria-busy={isBusy}>
      <div class="row">
        <span class="state">{isEnding(own, now) ? 'ending' : stage}</span>
        <button
          type="button"
          id={rowId(id)}
          class="name"
          aria-expanded={isOpen}
          title={`${title}, ${ends}`}
          onClick={() => setOpen(!isOpen)}
        >
          <strong>{own.name ?? ends}</strong>
          {own.name !== undefined && <span>{ends}</span>}
        </button>
        <span class="when">
          {whenText(own, calendarOf({ zone, now }))}
          {next !== '' && <small> {next}</small>}
        </span>
        <span class="bandwidth">{formatBandwidth(own.bandwidth)}</span>
        <span class="tags" title={tagsText(own)}>
          <span>
            S {own.site1_s_tag} C {own.site1_c_tag} – S {own.site2_s_tag} C {own.site2_c_tag}
          </span>
          <CopyButton text={`${tagsText(own)}\n`} label={`Copy tags: ${title}`} />
        </span>
        <button
          type="button"
          class="quiet more"
          aria-haspopup="menu"
          aria-label={`Actions: ${title}`}
          aria-disabled={isBusy || entries.length === 0}
          onClick={({ currentTarget: button }) => {
            if (!isBusy && entries.length > 0) openMenu({ own, title, entries, button });
          }}
        >
          ⋯
        </button>
      </div>
      <Notice page={page} at={{ id }} />
      {isOpen && (
        <Rest own={own} when={periodText(own, calendarOf({ zone, now }))} isOver={stage === 'ended'} />
      )}
    </li>
  );
}

function Rest({ own, when, isOver }: { own: OwnReservation; when: string; isOver: boolean }) {
  const facts = [['Link', endsText(own)], ['When', when], ...tagFacts(own), ['Id', own.id]] as const;
  return (
    <div class="rest">
      <dl>
        {facts.map(([term, fact]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{fact}</dd>
          </div>
        ))}
      </dl>
      {!isOver && <ServerCommands own={own} />}
    </div>
  );
}
