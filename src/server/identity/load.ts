import type { createIdentityProvider } from './identity-provider.ts';

/** The start of the one line that the library prints where it runs on a release of Node that is not LTS yet. */
const UNSUPPORTED = 'oidc-provider WARNING: Unsupported runtime';

let loading: Promise<{ createIdentityProvider: typeof createIdentityProvider }> | undefined;

/**
 * Loads the identity provider: its library takes 200 ms, and only a server with a socket needs it. The library's warning
 * about new releases of Node and about Bun is not printed: `serve` is tested there, and its users can't act on it.
 */
export function loadIdentityProvider(): Promise<{ createIdentityProvider: typeof createIdentityProvider }> {
  loading ??= quietly(() => import('./identity-provider.ts'));
  return loading;
}

async function quietly<Answer>(load: () => Promise<Answer>): Promise<Answer> {
  const { warn } = console;
  console.warn = (...words: unknown[]) => {
    if (!String(words[0]).includes(UNSUPPORTED)) warn(...words);
  };
  try {
    return await load();
  } finally {
    console.warn = warn;
  }
}
