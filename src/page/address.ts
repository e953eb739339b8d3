import type { Period } from '../contract/instants.ts';
import type { Ends } from './service.ts';
import type { State } from './state.ts';
import { type TimelineState, UNITS, type Unit } from './timeline/model.ts';

/** The view in the page's address: it outlasts a reload and a login, and can be sent to others. */
export interface View {
  /** The id of the experiment that is worked in. */
  experiment?: string;
  /** The sites between which the route is marked. */
  link?: Ends;
  /** The window of the timeline; absent where it begins an hour before now. */
  window?: Period;
  /** The unit that it is; absent for the one it opens with. */
  unit?: Unit;
}

/** The view of a state. */
export function viewOf({
  chosen,
  selected,
  timeline,
}: Pick<State, 'chosen' | 'selected' | 'timeline'>): View {
  const { isToday, window, unit }: TimelineState = timeline;
  const link = selected?.site2 ? selected : undefined;
  // What begins with the present goes on with it.
  const isFixed = !(isToday && unit);
  return {
    experiment: chosen?.id,
    link,
    window: isFixed ? window : undefined,
    unit: isFixed || unit !== 'week' ? unit : undefined,
  };
}

/** A view as the query of an address. Members that are absent are taken out of `query`, unless it is not known who looks. */
export function withView(query: string, { experiment, link, window, unit }: View): string {
  const parameters = new URLSearchParams(query);
  const set = (name: string, value: string | undefined): void => {
    if (value === undefined) parameters.delete(name);
    else parameters.set(name, value);
  };
  const text = (instant: number): string => new Date(Math.round(instant)).toISOString();
  if (experiment !== undefined) set('experiment', experiment);
  set('link', link && `${link.site1},${link.site2}`);
  set('from', window && text(window.start));
  set('until', window && text(window.end));
  set('unit', unit);
  const all = parameters.toString();
  return all === '' ? '' : `?${all.replaceAll('%3A', ':').replaceAll('%2C', ',')}`;
}

/** The reverse of {@link withView}; what can't be read is left out. */
export function readView(query: string): View {
  const parameters = new URLSearchParams(query);
  const [site1, site2] = parameters.get('link')?.split(',') ?? [];
  const [start, end] = ['from', 'until'].map((name) => Date.parse(parameters.get(name) ?? ''));
  const isWindow = start !== undefined && end !== undefined && start < end;
  return {
    experiment: parameters.get('experiment') ?? undefined,
    link: site1 && site2 ? { site1, site2 } : undefined,
    window: isWindow ? { start, end } : undefined,
    unit: UNITS.find((unit) => unit === parameters.get('unit')),
  };
}
