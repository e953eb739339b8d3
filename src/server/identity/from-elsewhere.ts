/**
 * Whether a browser sends a request because a page of another site, or another port of this host, made it: a form, an
 * image, a fetch whose answer it can't read, a link (Fetch Metadata; RFC 6454 §7). No program sends these headers, and
 * no browser lets a page change them. What a person has typed or opened from outside the browser is not from elsewhere.
 *
 * | Origin         | Sec-Fetch-Site           | from elsewhere |
 * |----------------|--------------------------|----------------|
 * | absent         | absent                   | no             |
 * | absent or ours | `none`, `same-origin`    | no             |
 * | absent or ours | `same-site`, `cross-site`| yes            |
 * | another, null  | any                      | yes            |
 *
 * @param header a header of the request by its name
 * @param origin our own
 */
export function isFromElsewhere(
  header: (name: 'origin' | 'sec-fetch-site') => string | null | undefined,
  origin: string,
): boolean {
  const site = header('sec-fetch-site') ?? 'none';
  return (header('origin') ?? origin) !== origin || !['none', 'same-origin'].includes(site);
}
