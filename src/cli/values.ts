import * as v from 'valibot';
import { Failure } from '../contract/failure.ts';
import { EXAMPLE_IDS, RESERVATION_NAME, ReservationId, SiteName } from '../contract/fields.ts';
import { SITES } from '../contract/links.ts';
import { nearest } from '../session/choice.ts';

/**
 * The known site with the name {@link nearest} to a mistyped one; undefined where none is near.
 *
 * @param options `others`: those named beside it, which are not meant twice; `sites`: those of the service, where it
 *   tells them, in place of the built-in ones
 */
export function nearestSite(
  name: string,
  { others = [], sites = SITES }: { others?: readonly string[]; sites?: readonly string[] } = {},
): string | undefined {
  const possible = sites.filter((site) => !others.includes(site));
  // The official client names infrastructures after their sites: be-gent1-bi-vm1.
  return possible.find((site) => name.startsWith(`${site}-`)) ?? nearest(name, possible);
}

/**
 * Checks the form of a site name. The service decides whether the site exists: a deployment can have other
 * sites than the twelve of the spec.
 *
 * @throws Failure `usage`, with the name that is meant where only its letters differ
 */
export function siteName(text: string): string {
  if (isSiteName(text)) return text;
  const meant = text.toLowerCase().replaceAll(/[\s._]+/g, '-');
  const hint = isSiteName(meant) ? ` Did you mean ${meant}?` : '';
  throw new Failure('usage', `${JSON.stringify(text)} is not a site name.${hint}`, {
    why: 'It has lower-case letters, digits and dashes only.',
    fix: 'slices-conn sites',
  });
}

const isSiteName = (text: string): boolean => v.is(SiteName, text);

/** The sites that a service names where it refuses one; undefined where it names none. */
export function sitesNamed(details: Failure['facts']['details'] = []): readonly string[] | undefined {
  const sites = details.find(({ code }) => code === 'site_unknown')?.facts?.['sites'];
  return Array.isArray(sites) ? sites.filter((site) => typeof site === 'string') : undefined;
}

/** Checks the form of a reservation id. @throws Failure `usage` for another form */
export function reservationId(text: string): string {
  if (v.is(ReservationId, text)) return text;
  throw notAnId(text, '');
}

function notAnId(text: string, more: string): Failure {
  return new Failure('usage', `${JSON.stringify(text)} is not a reservation id.`, {
    why: `Ids look like ${EXAMPLE_IDS.reservation}.${more}`,
    fix: 'slices-conn list',
  });
}

/**
 * Checks the form of an ID argument: a reservation's id, its name, four characters or more of the id's last section, or its
 * end as a shortened id has it, such as `con_…q7qy` or `...q7qy`. Only the service's own ids tell capitals apart.
 *
 * @returns the argument; the end of an id as `…q7qy`
 * @throws Failure `usage` for another form
 */
export function reservationWord(text: string): string {
  const [, end] = /^(?:con_)?(?:…|\.{3})([a-z0-9_-]{4,128})$/i.exec(text) ?? [];
  if (end !== undefined) return `…${end}`;
  const id = text.replace(/^con_.+$/i, (whole) => (whole.startsWith('con_') ? whole : whole.toLowerCase()));
  if (/^[A-Za-z0-9_-]{4,128}$/.test(text)) return id;
  if (RESERVATION_NAME.test(text) || v.is(ReservationId, id)) return id;
  throw notAnId(text, ' Four characters or more of the last part are enough, or its name.');
}
