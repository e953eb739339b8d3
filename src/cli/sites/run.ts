import type { Link } from '../../contract/links.ts';
import { SITES } from '../../contract/sites.ts';
import type { Invocation } from '../invocation.ts';
import { formatBandwidth } from '../values.ts';

/** Lists the sites, and the links where the service tells. */
export async function sites({ session, output }: Invocation): Promise<void> {
  const { connectivity } = await session();
  const links = (await connectivity.links()) ?? null;
  const names = new Set<string>(SITES);
  for (const { site1, site2 } of links ?? []) names.add(site1).add(site2);
  const items = [...names].map((site) => ({ site }));
  await output.result({ items, links }, (print) =>
    print.table(
      links ? ['site', 'connected with'] : ['site'],
      items.map(({ site }) => (links ? [site, connections(site, links)] : [site])),
    ),
  );
}

function connections(site: string, links: readonly Link[]): string {
  const found = links.flatMap(({ site1, site2, bandwidth }) => {
    if (site1 !== site && site2 !== site) return [];
    return `${site1 === site ? site2 : site1} (${formatBandwidth(bandwidth)})`;
  });
  return found.length > 0 ? found.join(', ') : '–';
}
