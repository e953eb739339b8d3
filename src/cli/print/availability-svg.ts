import { formatBandwidth } from '../../contract/amounts.ts';
import type { AvailablePart } from '../../contract/availability.ts';
import { instantOf } from '../../contract/reservation-request.ts';
import { createClock } from '../../words/civil-time.ts';
import { linkName } from '../../words/links.ts';
import { oneLineTicks } from '../../words/time-axis.ts';
import { shortTime } from '../times.ts';
import { type AvailabilityView, type LinkAvailability, routesText } from './availability-chart.ts';
import { escapeText } from './output.ts';

/** How many columns of time to ask the service for (`points`): finer than print shows. */
export const SVG_COLUMNS = 1600;

/** Sizes, in the picture's own units: a pixel each where it is 800 wide. */
const [WIDTH, LEFT, RIGHT, PLOT_HEIGHT] = [800, 84, 16, 150];
const PLOT_WIDTH = WIDTH - LEFT - RIGHT;
/** From the top of one link to that of the next: title, plot, and its axis. */
const PANEL_HEIGHT = PLOT_HEIGHT + 72;
/** The width of a character of the labels, at most for most system fonts. */
const CHARACTER = 7;

/**
 * The colours, in both schemes. No custom properties: programs that make PDF of SVG do not know them, and
 * take the light scheme. The parts that are free for some of the time are hatched too, for print without
 * colours.
 */
const STYLE = `
text { font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif; font-size: 12px; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 }
.link { font-size: 13px; font-weight: 600 }
.aside { fill: #59636e }
.back { fill: #ffffff }
.free { fill: #1a7f37 }
.partly { fill: #d2ead8 }
.hatch { stroke: #1a7f37; stroke-width: 1; opacity: 0.55 }
.grid { stroke: #d1d9e0; stroke-width: 1 }
.axis { stroke: #59636e; stroke-width: 1 }
.now { stroke: #1f2328; stroke-width: 1; stroke-dasharray: 4 3 }
.none { fill: #cf222e }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.aside { fill: #9198a1 }
.back { fill: #0d1117 }
.free { fill: #3fb950 }
.partly { fill: #16351f }
.hatch { stroke: #3fb950 }
.grid { stroke: #2f353d }
.axis { stroke: #9198a1 }
.now { stroke: #e6edf3 }
.none { fill: #f85149 }
}`;

/** What is free for some of the time. */
const HATCHED = 'fill="url(#availability-hatch)"';

/** The position of an instant, and of a bandwidth in a plot, from its upper left corner. */
interface Scale {
  x: (instant: number) => number;
  y: (mbps: number) => number;
}

/**
 * A picture of what is free of each link over time, as an SVG file for a paper or a page: light or dark as
 * the reader prefers, with the reader's own fonts, without scripts and without anything from elsewhere. It
 * says in its description what it shows.
 *
 * @returns a whole XML document
 */
export function availabilitySvg(view: AvailabilityView): string {
  const { links, window, zone } = view;
  const [only, another] = links;
  const names = links.map(({ link }) => linkName(link));
  const title = `Free bandwidth, ${another ? `${links.length} links` : (names[0] ?? '')}`;
  // The year is named, whatever this year is: a picture is kept.
  const [from, until] = [window.start, window.end].map((at) => shortTime(at, { now: 0, zone }));
  const period = `${from} – ${until}, ${zone}`;
  const top = 64;
  const legendTop = top + links.length * PANEL_HEIGHT - (another ? 0 : 24);
  const routes = routesText(links);
  const height = legendTop + 28 + routes.length * 18;
  const hasNone = links.some(({ items }) => items.some(({ vlans }) => vlans === 0));
  const legend = [
    ['class="free"', 'free throughout'],
    [HATCHED, 'free for part of the time'],
    ...(hasNone ? [['class="none"', 'no VLAN free']] : []),
  ];
  const body = [
    `<rect class="back" width="${WIDTH}" height="${height}"/>`,
    `<text class="title" x="16" y="28"${fitted(title, WIDTH - 32, 9)}>${xml(title)}</text>`,
    `<text class="aside" x="16" y="48">${xml(only && !another ? `${period}; ${vlansText(only.items)}` : period)}</text>`,
    ...links.map((one, at) => panel(one, view, top + at * PANEL_HEIGHT - (another ? 0 : 24), !another)),
    ...legend.map(
      ([fill, text], at) =>
        `<g transform="translate(${LEFT + at * 180} ${legendTop})"><rect ${fill} width="14" height="14"/><text x="20" y="11">${text}</text></g>`,
    ),
    ...routes.map(
      (text, at) =>
        `<text class="aside" x="${LEFT}" y="${legendTop + 29 + at * 18}"${fitted(text, PLOT_WIDTH, CHARACTER)}>${xml(text)}</text>`,
    ),
  ];
  const described = [
    ...links.map(({ link, items }, at) => description(names[at] ?? '', link.bandwidth, items)),
    ...routes.map((text) => `${text}.`),
  ];
  return `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" style="max-width:100%;height:auto" role="img" aria-labelledby="availability-title availability-description">
<title id="availability-title">${xml(title)}</title>
<desc id="availability-description">${xml(`${period}. ${described.join(' ')}`)}</desc>
<style>${STYLE}
</style>
<defs><pattern id="availability-hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="partly" width="5" height="5"/><line class="hatch" y2="5"/></pattern></defs>
${body.join('\n')}
</svg>
`;
}

/** One link: its name where there are several, its plot, and the axes. */
function panel(
  { link, items }: LinkAvailability,
  view: AvailabilityView,
  top: number,
  isAlone: boolean,
): string {
  const { window, now } = view;
  const scale: Scale = {
    x: (instant) => round(((instant - window.start) / (window.end - window.start)) * PLOT_WIDTH),
    y: (mbps) => round(PLOT_HEIGHT * (1 - Math.min(1, mbps / link.bandwidth))),
  };
  const name = linkName(link);
  const heading = `<text class="link" x="16" y="14"${fitted(name, WIDTH - 200, 7.5)}>${xml(name)}</text><text class="aside" x="${WIDTH - RIGHT}" y="14" text-anchor="end">${xml(vlansText(items))}</text>`;
  const levels = [link.bandwidth, link.bandwidth / 2, 0].map((mbps) => {
    const label = mbps === 0 ? '0' : formatBandwidth(mbps);
    const y = scale.y(mbps);
    return `<line class="${mbps === 0 ? 'axis' : 'grid'}" x1="0" x2="${PLOT_WIDTH}" y1="${y}" y2="${y}"/><text x="-8" y="${y + 4}" text-anchor="end">${xml(label)}</text>`;
  });
  const ticks = oneLineTicks(
    window,
    { clock: createClock(view.zone), now },
    {
      width: PLOT_WIDTH + RIGHT - 4,
      place: scale.x,
      measure: (label) => label.length * CHARACTER + 4,
      gap: 14,
    },
  ).map(({ at, label }) => {
    const x = scale.x(at);
    return `<line class="axis" x1="${x}" x2="${x}" y1="${PLOT_HEIGHT}" y2="${PLOT_HEIGHT + 16}"/><text x="${x + 4}" y="${PLOT_HEIGHT + 16}">${xml(label)}</text>`;
  });
  const isInside = now > window.start && now < window.end;
  const current = isInside
    ? `<line class="now" x1="${scale.x(now)}" x2="${scale.x(now)}" y1="-4" y2="${PLOT_HEIGHT}"/><text class="aside" x="${scale.x(now)}" y="-7" text-anchor="middle">now</text>`
    : '';
  const [grid, base] = [levels.slice(0, 2), levels.slice(2)];
  return [
    `<g transform="translate(0 ${top})">${isAlone ? '' : heading}<g transform="translate(${LEFT} 32)">`,
    ...grid,
    `<path ${HATCHED} d="${area(items, 'bandwidth_max', scale)}"/>`,
    `<path class="free" d="${area(items, 'bandwidth', scale)}"/>`,
    ...base,
    ...withoutVlans(items, scale),
    ...ticks,
    `${current}</g></g>`,
  ].join('\n');
}

/** The outline of what is free, as one path: parts drawn one by one would show seams. */
function area(
  items: readonly AvailablePart[],
  member: 'bandwidth' | 'bandwidth_max',
  { x, y }: Scale,
): string {
  const [first] = items;
  if (!first) return '';
  let path = `M${x(instantOf(first.start_date))} ${y(0)}`;
  for (const [index, item] of items.entries()) {
    if (item[member] !== items[index - 1]?.[member]) path += `V${y(item[member])}`;
    if (item[member] !== items[index + 1]?.[member]) path += `H${x(instantOf(item.end_date))}`;
  }
  return `${path}V${y(0)}Z`;
}

/** Marks below the plot where no VLAN is free, whatever bandwidth is. */
function withoutVlans(items: readonly AvailablePart[], { x }: Scale): string[] {
  return items.flatMap(({ vlans, start_date, end_date }) => {
    if (vlans > 0) return [];
    const [from, until] = [x(instantOf(start_date)), x(instantOf(end_date))];
    return [
      `<rect class="none" x="${from}" y="${PLOT_HEIGHT - 2}" width="${round(until - from)}" height="5"/>`,
    ];
  });
}

/** The picture of a link in words. */
function description(name: string, capacity: number, items: readonly AvailablePart[]): string {
  const least = Math.min(...items.map(({ bandwidth }) => bandwidth));
  const most = Math.max(...items.map(({ bandwidth_max }) => bandwidth_max));
  return `${name}: of ${formatBandwidth(capacity)}, between ${formatBandwidth(least)} and ${formatBandwidth(most)} are free; ${vlansText(items)}.`;
}

function vlansText(items: readonly AvailablePart[]): string {
  const vlans = Math.min(...items.map((item) => item.vlans));
  return vlans === 0 ? 'at times no VLAN free' : `${vlans} or more VLANs free at any time`;
}

/** A length that a long text is pressed into. */
function fitted(text: string, width: number, character: number): string {
  return text.length * character > width ? ` textLength="${width}" lengthAdjust="spacingAndGlyphs"` : '';
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

/** Any text as character data of XML, which can't hold control characters and halves of characters. */
function xml(text: string): string {
  return escapeText(text.toWellFormed())
    .replace(/[&<>"']/g, (found) => `&#${found.charCodeAt(0)};`)
    .replace(/[\ufffe\uffff]/g, '\ufffd');
}
