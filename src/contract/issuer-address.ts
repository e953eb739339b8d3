import { isProtected, UNPROTECTED } from './loopback.ts';

/**
 * What is wrong with the address of an issuer whose keys are fetched: it must be `https:`, or `http:` on this machine,
 * without a user, a query or a fragment (HOSTILE.md 5; RFC 8414 §2).
 *
 * @returns a sentence; undefined when it will do
 */
export function issuerProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) return 'It must be an https address.';
  if (!isProtected(url)) return `It must be an https address. ${UNPROTECTED}`;
  // An empty query or fragment is one too, and leaves no trace in what was parsed.
  if (url.username || url.password || /[?#]/.test(text)) {
    return 'It must be an address without a user, a query or a fragment.';
  }
  return undefined;
}
