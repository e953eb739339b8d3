import type { Link } from '../../src/contract/links.ts';
/** A link between sites `a` and `b` on which little is enough to be refused: 1000 Mbps and tags 1 to 3 everywhere. */
export declare function smallLink(shape?: Partial<Link>): Link;
