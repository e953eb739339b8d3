import { Hono } from 'hono';
import { html } from 'hono/html';
import type { Network } from '../../allocator/network.ts';
import { formatBandwidth } from '../../contract/amounts.ts';
import { jsonReply } from '../json-reply.ts';
import { isCrossSite } from '../request-form.ts';
import { acceptsHtml } from '../request-reading.ts';
import { createPageFiles, type ReadPageFile } from './files.ts';
import { refusedHere } from './login.ts';
import { documentOf, type Html, PAGE_HEADERS, pageReply, pathOf } from './page.ts';
import { LOGGED_OUT } from './passed-requests.ts';
import { type ServicePagesOptions, waysIn } from './service-pages.ts';

/** Options of {@link createUi}. */
export interface UiOptions extends ServicePagesOptions {
  network: Network;
  readFile: ReadPageFile;
  /** The parts that logins to the page need; undefined where there are no logins. */
  access?: { login: Hono; requests: Hono } | undefined;
}

/** The header of every change that the page asks for: a form can't send it, nor another page without being asked first. */
const UI_HEADER = 'X-Slices-Conn';

/** Headers of the first page: it runs its own code only, which can't make markup of text, and can't be framed. */
const PAGE_POLICY = {
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

/** Headers of what the page asks for: no other page may read or frame it, and nothing is kept. */
const ANSWER_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

/** Why what this server's own page has not sent is refused. */
const FOREIGN = `This address is for this server's own page. A change needs the header ${UI_HEADER}: ui, and Sec-Fetch-Site: same-origin, which browsers send.`;

/**
 * The page and what it asks for, below the base address (src/README.md, "The page").
 *
 * | address                     | who may ask                                                                           |
 * |-----------------------------|---------------------------------------------------------------------------------------|
 * | `/`, `/ui/FILE`             | everyone                                                                              |
 * | `/ui/callback`              | everyone: it is the page again, which ends the login; see `login.ts`                  |
 * | GET `/ui/api/…`             | the page, and programs; no page of another site                                       |
 * | changes, login and logout   | the page alone: with {@link UI_HEADER}, and where the browser says that it is ours    |
 */
export function createUi(options: UiOptions): Hono {
  const { site, addresses, network, readFile, access } = options;
  const app = new Hono({ strict: false });
  const { origin } = new URL(site.baseUrl);
  const files = createPageFiles(readFile);
  const { sites } = network;
  const links = network.links.map(({ site1, site2, bandwidth }) => ({ site1, site2, bandwidth }));

  const first = () => pageReply(networkPage(options), {}, PAGE_POLICY);

  app.get('/', async ({ req }, next) => (acceptsHtml(req.raw) ? first() : next()));
  if (access) app.get('/ui/callback', first);

  const forOurPage = ['/ui/api/*', '/ui/login', '/ui/session', '/ui/logout'];
  app.on('ALL', forOurPage, async (context, next) => {
    const { req } = context;
    const isChange = req.method !== 'GET' && req.method !== 'HEAD';
    const isOurs = req.header('sec-fetch-site') === 'same-origin' && req.header(UI_HEADER) === 'ui';
    if (isCrossSite((name) => req.header(name), origin) || (isChange && !isOurs)) {
      context.res = refusedHere('cross_site', FOREIGN);
    } else await next();
    for (const [name, value] of Object.entries(ANSWER_HEADERS)) {
      // An answer with an ETag may be kept by the browser that asks again; a stream says more than that it is not to be kept.
      const isSaid = context.res.headers.has('etag') || context.res.headers.has('x-accel-buffering');
      if (name !== 'cache-control' || !isSaid) context.header(name, value);
    }
  });
  app.get('/ui/api/network', () =>
    jsonReply({
      name: site.name ?? null,
      base_url: addresses.connectivity,
      login: access !== undefined,
      sites: sites.map((name) => ({ name, place: network.placeOf(name) ?? null })),
      links,
    }),
  );
  if (access) {
    app.route('/ui', access.login);
    app.route('/ui/api', access.requests);
  } else {
    app.get('/ui/api/session', () => jsonReply(LOGGED_OUT));
  }
  app.get('/ui/:file', async ({ req }, next) => (await files(req.raw, req.param('file'))) ?? next());
  return app;
}

/**
 * The first page: the network and what is free in it (src/README.md, "The page"). As it is sent it lists sites, links and
 * capacities, which is all that a browser without JavaScript shows; `page.js` replaces the content of `main`. Code and
 * style come from addresses of their own, so that the page's policy can refuse everything inline.
 */
function networkPage(options: UiOptions): Html {
  const { site, network } = options;
  const { sites, links } = network;
  const { host } = new URL(site.baseUrl);
  const at = pathOf(site);
  const served = site.name ?? 'slices-conn';
  return documentOf(
    `Network links – ${served}`,
    html`<link rel="stylesheet" href="${at}/ui/page.css">
<script type="module" src="${at}/ui/page.js"></script>`,
    html`<body class="network">
<header><p class="brand"><strong>${served}</strong> at ${host}</p></header>
<main>
<h1>Book a link between two research sites</h1>
<noscript><p>With JavaScript this page shows what is free when, and books links. Without it, use the command line below.</p></noscript>
<table><caption>Links and their capacity</caption>
<thead><tr><th scope="col">Site</th><th scope="col">Site</th><th scope="col">Capacity</th></tr></thead>
<tbody>${links.map(({ site1, site2, bandwidth }) => html`<tr><td>${site1}</td><td>${site2}</td><td>${formatBandwidth(bandwidth)}</td></tr>`)}</tbody>
</table>
<p>Sites: ${sites.join(', ')}.</p>
</main>
<footer>${waysIn(options)}</footer>
</body>`,
  );
}
