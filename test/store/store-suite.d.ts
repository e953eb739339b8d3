import type { OpenedStore } from './opened-store.ts';
/**
 * What every store keeps to (`src/allocator/store.ts`), whatever the engine.
 *
 * @param open opens a store on a database of its own, which is new
 */
export declare function describeStore(name: string, open: () => Promise<OpenedStore>): void;
