import * as v from 'valibot';
import { Failure } from '../contract/failure.ts';
import { ReservationId } from '../contract/ids.ts';
import { SITES } from '../contract/sites.ts';
import { nearest } from '../session/choice.ts';

/** The known site that a name was probably meant to be; see {@link nearest}. */
export function nearestSite(name: string): string | undefined {
  return nearest(name, SITES);
}

/**
 * A site's name as typed, when it has the form of one. Whether it exists is the service's to say: a deployment may
 * have others than the twelve of the spec.
 *
 * @throws Failure `usage` with the nearest name
 */
export function siteName(text: string): string {
  if (/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text)) return text;
  const near = nearestSite(text);
  throw new Failure('usage', `${JSON.stringify(text)} is no name of a site.`, {
    why: near === undefined ? `The sites are: ${SITES.join(', ')}.` : `Did you mean ${near}?`,
    fix: 'slices-conn sites',
  });
}

/** A reservation's id as typed. @throws Failure `usage` when it does not have the form of one */
export function reservationId(text: string): string {
  if (v.is(ReservationId, text)) return text;
  throw new Failure('usage', `${JSON.stringify(text)} is no id of a reservation.`, {
    why: 'Ids look like con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q.',
    fix: 'slices-conn list',
  });
}
