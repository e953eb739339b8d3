import { Hono } from 'hono';
import { html } from 'hono/html';
import { loginWords } from '../../contract/loopback.ts';
import { KEY_SET_PATH } from '../../contract/routes.ts';
import { escapeText } from '../../contract/visible-text.ts';
import { jsonReply } from '../json-reply.ts';
import type { ServiceAddresses } from '../keys/service-issuer.ts';
import { firstProblem } from '../problem-error.ts';
import { acceptsHtml, addressOf } from '../request-reading.ts';
import { type Html, page, pageReply, type Site } from './page.ts';

/** Options of {@link createServicePages}. */
export interface ServicePagesOptions {
  site: Site;
  addresses: ServiceAddresses;
  /** Whether portal and identity provider are on another server. */
  usesForeignIssuers: boolean;
}

/**
 * The pages at the services' own addresses, for people who open them in a browser. Programs get 404 there, and at the
 * base address the addresses of everything.
 */
export function createServicePages({ site, addresses, usesForeignIssuers }: ServicePagesOptions): Hono {
  const app = new Hono({ strict: false });
  const at = new URL(addresses.connectivity).pathname.replace(/\/$/, '');
  const pages: Readonly<Record<string, () => Html>> = {
    '/': () => home(site, addresses, usesForeignIssuers, at),
    '/portal': () => (usesForeignIssuers ? external(site, 'portal', addresses.portal, at) : portal(site, at)),
    '/auth': () =>
      usesForeignIssuers ? external(site, 'identity provider', addresses.identity, at) : identity(site, at),
  };
  for (const [path, content] of Object.entries(pages)) {
    app.get(path, async ({ req }, next) => (acceptsHtml(req.raw) ? pageReply(content()) : next()));
  }
  app.get('/', () => jsonReply(indexOf(site, addresses), { headers: { vary: 'accept' } }));
  return app;
}

/** Where everything is, for programs that know the base address only. */
function indexOf({ name }: Site, { connectivity, ...addresses }: ServiceAddresses) {
  return {
    name: name ?? null,
    base_url: connectivity,
    portal_url: addresses.portal,
    auth_url: addresses.identity,
    api_docs: `${connectivity}/api-docs`,
    api_spec: `${connectivity}/api-spec`,
    key_set: `${connectivity}${KEY_SET_PATH}`,
  };
}

function home(site: Site, addresses: ServiceAddresses, usesForeignIssuers: boolean, at: string): Html {
  return page(
    site,
    'Network links between research sites',
    html`<p>This server books links: bandwidth and VLANs between two sites, for a period, with a signed token as proof.</p>
${waysIn(addresses, usesForeignIssuers, at)}`,
  );
}

function portal(site: Site, at: string): Html {
  return page(
    site,
    'Portal',
    html`<p>The portal knows projects and experiments, and who has which role in them. It is for programs and has no pages.</p>
<h2>From a terminal</h2>
${typed('slices-conn project list', 'slices-conn experiment list')}
<p><a href="${at}/api-docs">Try its API</a>, or go to <a href="${at}/">the first page</a>.</p>`,
  );
}

function identity(site: Site, at: string): Html {
  return page(
    site,
    'Log in',
    html`<p>A login begins in a terminal, which then shows a code:</p>
${typed('slices-conn login')}
<p><a href="${at}/auth/device">Enter the code here</a>, or go to <a href="${at}/">the first page</a>.</p>`,
  );
}

function external(site: Site, service: string, address: string, at: string): Html {
  return page(
    site,
    `The ${service} is elsewhere`,
    html`<p>This server has no ${service} of its own. The ${service} is at <a href="${address}">${address}</a>.</p>
<p>Go to <a href="${at}/">the first page</a>.</p>`,
  );
}

/**
 * How to use the services without this page: commands and the API.
 *
 * @param at the path of the base address, without a slash at its end
 */
export function waysIn(addresses: ServiceAddresses, usesForeignIssuers: boolean, at: string): Html {
  return html`<h2>From a terminal</h2>
${typed(...commands(addresses))}
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

/** Commands, each on a line of its own. */
function typed(...lines: readonly string[]): Html {
  return html`<pre>${lines.map((line) => html`<code>${line}</code>`)}</pre>`;
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
  const below = addressOf(request).pathname.slice(new URL(site.baseUrl).pathname.replace(/\/$/, '').length);
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
