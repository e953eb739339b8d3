import * as v from 'valibot';
import { Failure } from '../contract/failure.ts';
import { ReservationId } from '../contract/ids.ts';
import { SITES } from '../contract/sites.ts';
import { nearest } from '../session/choice.ts';

/** The known site whose name is nearest to a mistyped one; undefined when the difference is too large. See {@link nearest}. */
export function nearestSite(name: string): string | undefined {
  return nearest(name, SITES);
}

/**
 * Checks the form of a site name. The service decides whether the site exists: a deployment can have other sites than
 * the twelve of the spec.
 *
 * @throws Failure `usage` with the nearest name
 */
export function siteName(text: string): string {
  if (/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text)) return text;
  const near = nearestSite(text);
  throw new Failure('usage', `${JSON.stringify(text)} is not a site name.`, {
    why: near === undefined ? `The sites are: ${SITES.join(', ')}.` : `Did you mean ${near}?`,
    fix: 'slices-conn sites',
  });
}

/** Checks the form of a reservation id. @throws Failure `usage` for another form */
export function reservationId(text: string): string {
  if (v.is(ReservationId, text)) return text;
  throw new Failure('usage', `${JSON.stringify(text)} is not a reservation id.`, {
    why: 'Ids look like con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q.',
    fix: 'slices-conn list',
  });
}
