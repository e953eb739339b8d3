import type { Link } from '../../src/contract/links.ts';

/** A small link between sites `a` and `b`, which refuses often: 1000 Mbps and tags 1 to 3 everywhere. */
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
