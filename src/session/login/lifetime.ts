const MINUTE = 60_000;

/**
 * Whether a token is to be replaced before it is used: less than a minute or a tenth of its lifetime is left,
 * whichever is less.
 *
 * | lifetime | replaced when there is left less than |
 * |---|---|
 * | 1 h | 1 min |
 * | 5 min | 30 s |
 * | unknown | never |
 *
 * @param token when it was had and until when it is valid, in milliseconds
 * @param now milliseconds
 */
export function isAlmostOver(
  { issuedAt, expiresAt }: { issuedAt: number; expiresAt?: number | undefined },
  now: number,
): boolean {
  if (expiresAt === undefined) return false;
  return expiresAt - now < Math.min(MINUTE, (expiresAt - issuedAt) / 10);
}
