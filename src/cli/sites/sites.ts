import { formatBandwidth } from '../../contract/amounts.ts';
import { Failure, shellWord } from '../../contract/failure.ts';
import { type Link, SITES } from '../../contract/links.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context } from '../context.ts';
import { folded } from '../print/folded.ts';
import { withNearestSite } from '../reservation/alternatives.ts';
import { siteName } from '../values.ts';

/** `slices-conn sites [SITE1 SITE2]`: the names, and the links where the service tells; or the routes between two. */
export const command: CommandDeclaration = {
  args: {
    '[site1]': 'one end of a route; with the other, the routes that a reservation may take',
    '[site2]': 'the other end',
  },
  examples: [
    'slices-conn sites',
    'slices-conn sites be-gent1 gr-uth',
    "slices-conn sites --json | jq -r '.links[] | [.site1, .site2, .bandwidth] | @tsv'",
  ],
};

/** Lists the routes between two sites; without sites, what {@link allSites} does. */
export async function run(context: Context, [site1, site2]: readonly string[]): Promise<void> {
  if (site1 === undefined) return allSites(context);
  if (site2 === undefined) {
    const fix = `slices-conn availability ${shellWord(site1)}`;
    throw new Failure('usage', 'The other site is missing.', { why: 'A route has two ends.', fix });
  }
  const { session, output, typed } = context;
  const ends = { site1: siteName(site1), site2: siteName(site2) };
  const { connectivity } = await session();
  const items = await connectivity.routes(ends).catch((error: unknown) => {
    throw error instanceof Failure ? withNearestSite(error, [site1, site2], typed) : error;
  });
  await output.result({ items }, (print) => {
    const chosen = (isDefault: boolean): string => (isDefault ? 'by itself' : 'with --via');
    const width = (print.columns ?? Number.POSITIVE_INFINITY) - `bandwidth  ${chosen(false)}  `.length;
    const rows = items.flatMap(({ sites: passed, bandwidth, by_default: isDefault = true }) =>
      folded(passed.join(' – '), width).map((line, at) => [
        ...(at === 0 ? [formatBandwidth(bandwidth), chosen(isDefault)] : ['', '']),
        line,
      ]),
    );
    return print.table(['bandwidth', 'chosen', 'route'], rows);
  });
}

/** Lists the service's sites, and the links where it tells them; the built-in sites of a service that tells neither. */
async function allSites({ session, output }: Context): Promise<void> {
  const { connectivity } = await session();
  const [links = null, named] = [await connectivity.links(), await connectivity.sites()];
  const isTold = named !== undefined || links !== null;
  if (!isTold)
    output.notice('This service does not tell its sites. These are the sites of the built-in network.');
  const ends = links?.flatMap(({ site1, site2 }) => [site1, site2]) ?? [];
  const sites = isTold ? [...new Set([...(named ?? []), ...ends])] : SITES;
  const items = sites.map((site) => ({ site }));
  await output.result({ items, links, source: isTold ? 'service' : 'built-in' }, (print) => {
    if (!links) {
      const rows = sites.map((site) => [site]);
      return print.table(['site'], rows);
    }
    // A line for each site; on a terminal, more where its links need them.
    const first = Math.max(...['site', ...sites].map(({ length }) => length));
    const width = (print.columns ?? Number.POSITIVE_INFINITY) - first - 2;
    const rows = sites.flatMap((site) =>
      folded(connections(site, links), width, /[^,]+,?/g).map((line, at) => [at === 0 ? site : '', line]),
    );
    return print.table(['site', 'connected with'], rows);
  });
}

function connections(site: string, links: readonly Link[]): string {
  const found = links.flatMap(({ site1, site2, bandwidth }) => {
    if (site1 !== site && site2 !== site) return [];
    return `${site1 === site ? site2 : site1} (${formatBandwidth(bandwidth)})`;
  });
  return found.join(',') || '–';
}
