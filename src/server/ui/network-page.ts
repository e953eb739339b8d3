import { html } from 'hono/html';
import { formatBandwidth } from '../../contract/bandwidth.ts';
import type { Link } from '../../contract/links.ts';
import type { ServiceAddresses } from '../keys/service-issuer.ts';
import type { Html, Site } from './page.ts';
import { waysIn } from './ways-in.ts';

/** The content of the first page. */
export interface NetworkPageOptions {
  site: Site;
  addresses: ServiceAddresses;
  /** Whether portal and identity provider are on another server. */
  usesForeignIssuers: boolean;
  sites: readonly string[];
  links: readonly Pick<Link, 'site1' | 'site2' | 'bandwidth'>[];
}

/**
 * The first page: the network and what is free in it (src/README.md, "The page"). As it is sent it lists sites, links and
 * capacities, which is all that a browser without JavaScript shows; `page.js` replaces the content of `main`. Code and
 * style come from addresses of their own, so that the page's policy can refuse everything inline.
 */
export function networkPage({ site, addresses, usesForeignIssuers, sites, links }: NetworkPageOptions): Html {
  const { host, pathname } = new URL(site.baseUrl);
  const at = pathname.replace(/\/$/, '');
  const served = site.name ?? 'slices-conn';
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Network links – ${served}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${at}/ui/page.css">
<script type="module" src="${at}/ui/page.js"></script>
</head>
<body class="network">
<header><p class="brand"><strong>${served}</strong> at ${host}</p></header>
<main>
<h1>Network links between research sites</h1>
<noscript><p>With JavaScript this page shows what is free when, and books links. Without it, use the command line below.</p></noscript>
<table><caption>Links and their capacity</caption>
<thead><tr><th scope="col">Site</th><th scope="col">Site</th><th scope="col">Capacity</th></tr></thead>
<tbody>${links.map(({ site1, site2, bandwidth }) => html`<tr><td>${site1}</td><td>${site2}</td><td>${formatBandwidth(bandwidth)}</td></tr>`)}</tbody>
</table>
<p>Sites: ${sites.join(', ')}.</p>
</main>
<footer>${waysIn(addresses, usesForeignIssuers, at)}</footer>
</body>
</html>
`;
}
