import { formatInstant } from '../contract/instants.ts';
import { sitesOfLink } from '../contract/links.ts';
import { type Reservation, type RouteHop, textsOf } from '../contract/reservation.ts';
import type { Tags } from './demand.ts';
import { sitesOf } from './routes.ts';
import type { Hop, ReservationRecord } from './store.ts';

/** A reservation as the service answers it: the tags are those of its ends, the others are the provider's. */
export function answerOf(record: ReservationRecord): Reservation {
  const { id, site1, site2, bandwidth, hops } = record;
  const [first] = hops;
  return {
    id,
    site1,
    site2,
    bandwidth,
    start_date: formatInstant(record.start),
    end_date: formatInstant(record.end),
    experiment_id: record.experiment,
    created_at: formatInstant(record.createdAt),
    created_by: record.createdBy,
    ...tagsOf({ site1, site2 }, first, hops.at(-1)),
    via: hops.length > 1 ? sitesAlong(record).slice(1, -1) : undefined,
    ...textsOf(record),
  };
}

/** The links of a reservation's route in order, each with its four tags: for administrators. */
export function hopsOf(record: ReservationRecord): RouteHop[] {
  const sites = sitesAlong(record);
  return record.hops.map((hop, at) => {
    const [site1 = '', site2 = ''] = sites.slice(at, at + 2);
    return { site1, site2, ...tagsOf({ site1, site2 }, hop) };
  });
}

/** All sites of a reservation's route, from its first end to its second. */
function sitesAlong({ site1: from, hops }: ReservationRecord): string[] {
  const links = hops.map(({ link }) => {
    const [site1, site2] = sitesOfLink(link);
    return { site1, site2 };
  });
  return sitesOf(links, from);
}

/** The tags at two sites, each at the end of a hop. */
function tagsOf({ site1, site2 }: Pick<RouteHop, 'site1' | 'site2'>, first: Hop, last = first): Tags {
  const [s1, c1] = tagsAt(site1, first);
  const [s2, c2] = tagsAt(site2, last);
  return { site1_s_tag: s1, site1_c_tag: c1, site2_s_tag: s2, site2_c_tag: c2 };
}

/** The S-tag and the C-tag of a hop at one of its sites. */
function tagsAt(site: string, { link, tags }: Hop): [number, number] {
  return link.startsWith(`${site}~`)
    ? [tags.site1_s_tag, tags.site1_c_tag]
    : [tags.site2_s_tag, tags.site2_c_tag];
}
