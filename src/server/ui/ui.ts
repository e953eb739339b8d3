import { Hono } from 'hono';
import type { Network } from '../../allocator/network.ts';
import { refusal } from '../problem-error.ts';
import { isCrossSite } from '../request-form.ts';
import { acceptsHtml } from '../request-reading.ts';
import { createPageFiles, type ReadPageFile } from './files.ts';
import { networkPage } from './network-page.ts';
import { PAGE_HEADERS, pageReply, type Site } from './page.ts';
import type { ServiceAddresses } from './ways-in.ts';

/** Options of {@link createUi}. */
export interface UiOptions {
  site: Site;
  addresses: ServiceAddresses;
  /** Whether portal and identity provider are on another server. */
  elsewhere: boolean;
  network: Network;
  readFile: ReadPageFile;
}

/** Headers of the first page: it runs its own code only, which can't make markup of text, and can't be framed. */
const POLICY = {
  ...PAGE_HEADERS,
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/** Headers of what the page asks for: no other page may read, frame or keep it. */
const ANSWER_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

/** The page and what it asks for, below the base address (ANSWERS.md, "The page"). */
export function createUi({ site, addresses, elsewhere, network, readFile }: UiOptions): Hono {
  const app = new Hono({ strict: false });
  const { origin } = new URL(site.baseUrl);
  const files = createPageFiles(readFile);
  const { sites } = network;
  const links = network.links.map(({ site1, site2, bandwidth }) => ({ site1, site2, bandwidth }));

  app.get('/', async ({ req }, next) =>
    acceptsHtml(req.raw)
      ? pageReply(networkPage({ site, addresses, elsewhere, sites, links }), {}, POLICY)
      : next(),
  );

  app.use('/ui/api/*', async (context, next) => {
    if (isCrossSite((name) => context.req.header(name), origin)) {
      throw refusal(
        'request_invalid',
        'A page of another site sent this request, which is not allowed here.',
      );
    }
    await next();
    for (const [name, value] of Object.entries(ANSWER_HEADERS)) {
      if (!context.res.headers.has(name)) context.header(name, value);
    }
  });
  app.get('/ui/api/network', () =>
    Response.json({
      name: site.name ?? null,
      base_url: addresses.connectivity,
      login: false,
      sites: sites.map((name) => ({ name, place: network.placeOf(name) ?? null })),
      links,
    }),
  );
  app.get('/ui/api/session', () => Response.json({ user: null, experiments: [] }));
  app.get('/ui/:file', async ({ req }, next) => (await files(req.raw, req.param('file'))) ?? next());
  return app;
}
