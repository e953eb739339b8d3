import type { Link } from '../../src/contract/links.ts';
import type { OpenedStore } from '../store/opened-store.ts';
/**
 * Looks at a link's rows, not at the allocator: names every overlap of a tag, every instant above the capacity, and
 * every row of `tag_hold` that is missing or too many. Empty when all is well.
 */
export declare function sweep({ rows }: Pick<OpenedStore, 'rows'>, id: string, link: Link): Promise<string[]>;
