/**
 * Whether a browser sends a request because a page of another site, or another port of this host, made it: a form, an
 * image, a fetch whose answer it can't read, a link (Fetch Metadata; RFC 6454 §7). Programs don't send these headers, and
 * browsers don't let a page change them. An address that a person typed, or opened from another program, is not cross-site.
 *
 * | Origin         | Sec-Fetch-Site           | cross-site |
 * |----------------|--------------------------|------------|
 * | absent         | absent                   | no         |
 * | absent or ours | `none`, `same-origin`    | no         |
 * | absent or ours | `same-site`, `cross-site`| yes        |
 * | another, null  | any                      | yes        |
 *
 * @param header a header of the request by its name
 * @param origin our own
 */
export function isCrossSite(
  header: (name: 'origin' | 'sec-fetch-site') => string | null | undefined,
  origin: string,
): boolean {
  const site = header('sec-fetch-site') ?? 'none';
  return (header('origin') ?? origin) !== origin || !['none', 'same-origin'].includes(site);
}
