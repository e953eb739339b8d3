import { Hono } from 'hono';
import { html } from 'hono/html';
import { loginWords } from '../../contract/addresses.ts';
import { KEY_SET_PATH } from '../../contract/routes.ts';
import { escapeText } from '../../contract/visible-text.ts';
import { jsonReply } from '../json-reply.ts';
import type { ServiceAddresses } from '../keys/service-issuer.ts';
import { firstProblem } from '../problem-error.ts';
import { acceptsHtml, addressOf } from '../request-reading.ts';
import { type Html, page, pageReply, pathOf, type Site } from './page.ts';

/** Options of {@link createServicePages}. */
export interface ServicePagesOptions {
  site: Site;
  addresses: ServiceAddresses;
  /** Whether portal and identity provider are on another server. */
  usesForeignIssuers: boolean;
}

/**
 * The base address, where there is no page on the network: for people who open it in a browser what to type, for programs the
 * addresses of everything.
 */
export function createServicePages(options: ServicePagesOptions): Hono {
  const app = new Hono({ strict: false });
  app.get('/', async ({ req }) =>
    acceptsHtml(req.raw)
      ? pageReply(home(options))
      : jsonReply(indexOf(options), { headers: { vary: 'accept' } }),
  );
  return app;
}

/** Where everything is, for programs that know the base address only. */
function indexOf({ site: { name }, addresses }: ServicePagesOptions) {
  const { connectivity, portal, identity } = addresses;
  return {
    name: name ?? null,
    base_url: connectivity,
    portal_url: portal,
    auth_url: identity,
    api_docs: `${connectivity}/api-docs`,
    api_spec: `${connectivity}/api-spec`,
    key_set: `${connectivity}${KEY_SET_PATH}`,
  };
}

function home(options: ServicePagesOptions): Html {
  return page(
    options.site,
    'Network links between research sites',
    html`<p>This server books links: bandwidth and VLANs between two sites, for a period, with a signed token as proof.</p>
${waysIn(options)}`,
  );
}

/** How to use the services without the page on the network: commands and the API. */
export function waysIn({ site, addresses, usesForeignIssuers }: ServicePagesOptions): Html {
  const at = pathOf(site);
  return html`<h2>From a terminal</h2>
<pre>${commands(addresses).map((line) => html`<code>${line}</code>`)}</pre>
${!usesForeignIssuers && html`<p>The login shows a code. <a href="${at}/auth/device">Enter the code here.</a></p>`}
<h2>From a program</h2>
<ul><li><a href="${at}/api-docs">Try the API</a> in this browser</li><li><a href="${at}/api-spec">Its description</a>, OpenAPI 3.1</li><li><a href="${at}${KEY_SET_PATH}">The public keys</a> that verify connectivity tokens</li></ul>`;
}

/** The commands for a login here. */
function commands(addresses: ServiceAddresses): string[] {
  const command = loginWords(addresses);
  if (command !== undefined) return [command];
  const { connectivity, portal, identity } = addresses;
  return [
    `slices-conn profile set here baseUrl=${connectivity} portalUrl=${portal} authUrl=${identity}`,
    'slices-conn profile use here',
    'slices-conn login',
  ];
}

const TITLES: Readonly<Record<number, string>> = {
  403: 'Not allowed',
  404: 'There is nothing here',
  405: 'This is not a page',
  421: 'This server has another address',
  429: 'Too many requests',
  503: 'Not available at the moment',
};

/**
 * A refusal for the one who asked: a browser gets a page in place of the problem body, with the same status and
 * headers; a program gets the reply as it is. Below `/apis` only programs ask, whatever they say that they accept: Java's
 * own client asks for `text/html` first.
 *
 * @param reply any; only refusals with a problem body are changed
 */
export async function refusalFor(request: Request, reply: Response, site: Site): Promise<Response> {
  if (reply.ok || !acceptsHtml(request) || !reply.headers.get('content-type')?.startsWith('application/json'))
    return reply;
  const below = addressOf(request).pathname.slice(pathOf(site).length);
  if (/^(?:\/portal)?\/apis(?:\/|$)/.test(below)) return reply;
  const { says = '' } = firstProblem(await reply.clone().text());
  const content = page(
    site,
    TITLES[reply.status] ?? 'This request was refused',
    html`<p>${escapeText(String(says))}</p><p>Go to <a href="${site.baseUrl}/">${site.baseUrl}</a>.</p>`,
  );
  const headers = new Headers(reply.headers);
  headers.delete('content-length');
  return pageReply(content, { status: reply.status, headers });
}
