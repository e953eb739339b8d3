/** Whether an address leads to this machine alone. */
export function isLoopback({ hostname }: URL): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    /^(?:127(?:\.\d+){3}|\[::1\])$/.test(hostname)
  );
}

/**
 * Whether what is sent to an address may be sent at all (HOSTILE.md 5): over https, or over http on this machine. With
 * `insecure`, which a profile may say, over http anywhere.
 */
export function isProtected(url: URL, insecure = false): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && (insecure || isLoopback(url)));
}

/** Why an address that is not {@link isProtected} is refused. */
export const UNPROTECTED = 'Over http anyone on the way could read and change what is sent.';
