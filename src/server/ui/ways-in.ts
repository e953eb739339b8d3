import { html } from 'hono/html';
import { loginWords } from '../../contract/loopback.ts';
import { KEY_SET_PATH } from '../../contract/routes.ts';
import type { ServiceAddresses } from '../keys/service-issuer.ts';
import type { Html } from './page.ts';

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
export function typed(...lines: readonly string[]): Html {
  return html`<pre>${lines.map((line) => html`<code>${line}</code>`)}</pre>`;
}
