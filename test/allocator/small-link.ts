import type { Link } from '../../src/contract/links.ts';

/** A link between sites `a` and `b` on which little is enough to be refused: 1000 Mbps and tags 1 to 3 everywhere. */
export function smallLink(shape: Partial<Link> = {}): Link {
  return {
    site1: 'a',
    site2: 'b',
    bandwidth: 1000,
    site1_s_tags: [1, 3],
    site1_c_tags: [1, 3],
    site2_s_tags: [1, 3],
    site2_c_tags: [1, 3],
    ...shape,
  };
}
