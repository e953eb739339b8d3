import type { Network } from '../../allocator/network.ts';
import type { Link } from '../../contract/links.ts';
import type { Problem } from '../../contract/problems.ts';

/**
 * The rules of SPEC.md, "Errors" 2 (Site): both sites are known, they differ, and a link connects them. Each message
 * says which sites would do.
 */
export function siteProblems(site1: unknown, site2: unknown, network: Network): Problem[] {
  // The schema refuses a value that is not a text.
  if (typeof site1 !== 'string' || typeof site2 !== 'string') return [];
  const unknown = [...new Set([site1, site2])].filter((site) => !network.sites.includes(site));
  if (unknown.length > 0) {
    return unknown.map((site) => ({
      code: 'site_unknown',
      loc: 'Site',
      msg: `There is no site ${JSON.stringify(site.slice(0, 64))}. The sites are: ${network.sites.join(', ')}.`,
    }));
  }
  if (site1 === site2) {
    return [
      { code: 'sites_equal', loc: 'Site', msg: `site1 and site2 are both ${site1}; a link needs two.` },
    ];
  }
  if (network.between(site1, site2)) return [];
  return [
    {
      code: 'sites_not_connected',
      loc: 'Site',
      msg: `${site1} and ${site2} are not interconnected. ${connections(site1, network)} ${connections(site2, network)}`,
    },
  ];
}

/** A bandwidth that the link does not have at any time (SPEC.md, "Errors" 2); an absent bandwidth breaks no rule. */
export function capacityProblems(link: Link | undefined, bandwidth: number | undefined): Problem[] {
  if (!link || bandwidth === undefined || bandwidth <= link.bandwidth) return [];
  const { site1, site2 } = link;
  const msg = `bandwidth is ${bandwidth} Mbps; ${site1} and ${site2} have ${link.bandwidth} Mbps between them.`;
  return [{ code: 'bandwidth_unavailable', loc: 'Bandwidth', msg }];
}

function connections(site: string, network: Network): string {
  const neighbours = network.neighbours(site);
  return `${site} is connected with ${neighbours.length > 0 ? neighbours.join(', ') : 'no site'}.`;
}
