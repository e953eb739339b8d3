import type { Colours } from './paint.ts';

/** The custom property of each colour (page.css), and the system's colour where it forces its own. */
const SOURCES: Readonly<Record<keyof Colours, readonly [property: string, forced: string]>> = {
  free: ['--timeline-free', 'Canvas'],
  used: ['--timeline-used', 'GrayText'],
  full: ['--timeline-full', 'CanvasText'],
  mine: ['--timeline-mine', 'Highlight'],
  none: ['--timeline-none', 'LinkText'],
  now: ['--timeline-now', 'Highlight'],
  grid: ['--timeline-grid', 'GrayText'],
  span: ['--timeline-span', 'CanvasText'],
  text: ['--text', 'CanvasText'],
  soft: ['--soft', 'CanvasText'],
  over: ['--timeline-over', 'transparent'],
  pick: ['--timeline-pick', 'Highlight'],
  focus: ['--timeline-focus', 'Highlight'],
};

/** Whether the system forces its own colours on pages. */
export const FORCED = '(forced-colors: active)';

/**
 * The colours of a drawing as they are now: of the custom properties at an element, whatever colour syntax they have.
 *
 * @param probe an element that is not seen; its colour is set to each
 */
export function readColours(probe: HTMLElement): Colours {
  const isForced = matchMedia(FORCED).matches;
  const read = (name: keyof Colours): string => {
    const [property, forced] = SOURCES[name];
    if (isForced) return forced;
    probe.style.color = `var(${property})`;
    return getComputedStyle(probe).color;
  };
  return {
    ...{ free: read('free'), used: read('used'), full: read('full'), mine: read('mine') },
    ...{ now: read('now'), grid: read('grid'), span: read('span'), text: read('text'), soft: read('soft') },
    ...{ none: read('none'), over: read('over'), pick: read('pick'), focus: read('focus') },
  };
}
