import { formatBandwidth } from '../../contract/amounts.ts';
import { instantText } from '../../words/civil-time.ts';
import { linkName } from '../../words/links.ts';
import { type LiveView, pickMark } from './follow.ts';
import { columnsOf, linkOf } from './view.ts';
import { mineTexts, periodText } from './words.ts';

const HEADS = ['From', 'To', 'Free throughout', 'At best', 'VLANs', 'Yours'];

type TableProps = { view: LiveView; rows: readonly number[]; zone: string };

/** The facts of the drawing in words: a body for each link, a row for each line. */
export function TimelineTable({ view, rows, zone }: TableProps) {
  const heads = view.mayPick ? ['Book', ...HEADS] : HEADS;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keys
    <section class="timeline-lines" tabIndex={0} aria-label="What is free, as a table">
      <table>
        <caption>{`What is free: ${periodText(view.state.window, view)}, times in ${zone}`}</caption>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        {rows.map((row) => (
          <LinkLines key={row} {...{ view, row, span: heads.length }} />
        ))}
      </table>
    </section>
  );
}

/** The lines of a link. @param span how many columns there are */
function LinkLines({ view, row, span }: { view: LiveView; row: number; span: number }) {
  const link = linkOf(view, row);
  if (!link) return null;
  const isKnown = view.columns.has(link);
  const { window } = view.state;
  const lines = columnsOf(view, row).filter(({ start, end }) => end > window.start && start < window.end);
  return (
    <tbody>
      <tr>
        <th scope="rowgroup" colSpan={span}>
          <span>{`${linkName(link)}, ${formatBandwidth(link.bandwidth)}`}</span>
        </th>
      </tr>
      {lines.length === 0 && (
        <tr>
          <td colSpan={span}>{isKnown ? 'This time is over; its use is not kept.' : 'Not loaded yet.'}</td>
        </tr>
      )}
      {lines.map((line) => {
        const { start, end, free, freeMax, vlans } = line;
        const own = (view.own[row] ?? []).filter((one) => one.start < end && one.end > start);
        const [from, to] = [instantText(start, view), instantText(end, view)];
        const isBookable = free > 0 && vlans > 0 && end > view.now;
        const label = `Pick ${linkName(link)}, ${from} to ${to}`;
        const pick = () => pickMark(view, { row, start, end });
        return (
          <tr key={start} class={own.length > 0 ? 'mine' : undefined}>
            {view.mayPick && (
              <td>
                {isBookable && (
                  <button {...{ type: 'button', 'aria-label': label, onClick: pick }}>Pick</button>
                )}
              </td>
            )}
            <th scope="row">{from}</th>
            <td>{to}</td>
            <td>{formatBandwidth(free)}</td>
            <td>{formatBandwidth(freeMax)}</td>
            <td>{vlans}</td>
            <td>{mineTexts(own).join(', ')}</td>
          </tr>
        );
      })}
    </tbody>
  );
}
