import { distance } from 'fastest-levenshtein';
import { Failure } from '../contract/failure.ts';
import { SITES } from '../contract/sites.ts';

/** Further off than this, a name is not a slip of the keyboard. */
const MAX_DISTANCE = 3;

/**
 * The known site that a name was probably meant to be; undefined when none is near. A part of a name is near its
 * whole, so that `poznan` finds `pl-poznan1`.
 */
export function nearestSite(name: string): string | undefined {
  const wanted = name.toLowerCase();
  if (SITES.some((site) => site === name)) return undefined;
  const containing = SITES.filter((site) => wanted.length >= 3 && site.includes(wanted));
  const [only, another] = containing;
  if (only && !another) return only;
  const [best] = SITES.map((site) => ({ site, far: distance(wanted, site) })).sort((a, b) => a.far - b.far);
  return best && best.far <= MAX_DISTANCE && best.far > 0 ? best.site : undefined;
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
