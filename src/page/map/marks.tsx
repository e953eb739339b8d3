import { linkName } from '../../words/links.ts';
import type { Link } from '../service.ts';
import { DOT, type Dot, GROUP, LINE_HEIGHT, type Line, type Rect } from './layout.ts';
import { dotText, levelOf, linkText, type Use } from './map-words.ts';

/** How far from a dot it is meant, in pixels. */
const REACH = 12;

/** The attributes of a drawing that readers of the screen pass over. */
export const HIDDEN = { 'aria-hidden': true } as const;

/** What a link or a dot shows and does, beside its place. */
export interface MarkProps<Target extends Link | Dot> {
  /** Whether it is on the route that is chosen, and chosen itself. */
  isSelected: boolean;
  isPressed: boolean;
  isPointed: boolean;
  /** It is clicked, or chosen by a key. */
  choose(target: Target): void;
  /** The pointer or the keyboard comes to it, or leaves it. */
  point(target: Target, isThere: boolean): void;
}

/** The attributes that make a drawing a button, for pointers, keys and readers of the screen. */
function buttonOf<Target extends Link | Dot>(target: Target, label: string, props: MarkProps<Target>) {
  const { isSelected, isPressed, isPointed, choose, point } = props;
  const [enter, leave] = [() => point(target, true), () => point(target, false)];
  return {
    ...({ role: 'button', tabindex: 0, 'aria-label': label, 'aria-pressed': isPressed } as const),
    onClick: () => choose(target),
    ...{ onPointerEnter: enter, onPointerLeave: leave, onFocus: enter, onBlur: leave },
    onKeyDown(event: KeyboardEvent): void {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      choose(target);
    },
    state: `${isSelected ? ' selected' : ''}${isPointed ? ' pointed' : ''}`,
  };
}

const endsOf = ({ from, to }: Line) => ({ x1: from.x, y1: from.y, x2: to.x, y2: to.y });

/** The drawing of a link: a wide line to point at, and its use. */
export function LinkMark({ line, share, ...props }: MarkProps<Link> & { line: Line; share: number | null }) {
  const { state, ...button } = buttonOf(line.link, linkText(line.link, share), props);
  return (
    <g {...button} class={`map-link${state}`} data-use={levelOf(share)}>
      <line class="hit" {...endsOf(line)} />
      <line class="mark" {...endsOf(line)} />
      <line class="use" {...endsOf(line)} />
    </g>
  );
}

type RouteProps = { lines: readonly Line[]; links: ReadonlySet<Link>; use: Use; kind: 'chosen' | 'hinted' };

/** A route, over all links: the chosen one, or the one that the pointer shows; as far as it is on the map. */
export function RouteMark({ lines, links, use, kind }: RouteProps) {
  const some = lines.filter(({ link }) => links.has(link));
  return (
    <g {...HIDDEN} class={`map-route ${kind}`}>
      {some.map((line) => (
        <g key={linkName(line.link)} class="map-link" data-use={levelOf(use.get(line.link) ?? null)}>
          <line class="mark" {...endsOf(line)} />
          <line class="use" {...endsOf(line)} />
        </g>
      ))}
    </g>
  );
}

/** The dot of a site, or of several with their number; with its names where there is room. */
export function DotMark({ dot, label, ...props }: MarkProps<Dot> & { dot: Dot; label: Rect | undefined }) {
  const { x: cx, y: cy, sites } = dot;
  const isGroup = sites.length > 1;
  const name = dotText(dot);
  const { state, ...button } = buttonOf(dot, isGroup ? `${name}. Enlarge the map.` : name, props);
  const names =
    label &&
    sites.map((site, index) => (
      <text key={site} x={label.x + label.width / 2} y={label.y + LINE_HEIGHT * (index + 0.5)} dy=".35em">
        {site}
      </text>
    ));
  return (
    <>
      <g {...button} class={`map-site${state}${props.isPressed ? ' end' : ''}`} data-site={sites[0]}>
        <title>{name}</title>
        <circle class="hit" cx={cx} cy={cy} r={REACH} />
        {label && <rect class="hit" {...reachOf(dot, label)} />}
        <circle cx={cx} cy={cy} r={isGroup ? GROUP : DOT} />
        {!isGroup && names}
      </g>
      {isGroup && (
        // Apart from the button, whose name has the same words in a sentence.
        <g {...HIDDEN} class="map-names">
          <text class="number" x={cx} y={cy} dy=".35em">
            {sites.length}
          </text>
          {names}
        </g>
      )}
    </>
  );
}

/** From the dot to all of its name: its middle too, which some programs click in place of a person. */
function reachOf({ x: cx, y: cy }: Dot, label: Rect) {
  const [x, y] = [Math.min(cx, label.x), Math.min(cy, label.y)];
  const width = Math.max(cx, label.x + label.width) - x;
  return { x, y, width, height: Math.max(cy, label.y + label.height) - y };
}
