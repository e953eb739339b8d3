import type { Allocator, AllocatorOptions } from '../allocator/allocator.ts';

/** What a proof judges: the allocator, or a broken one that it must find out. */
export type Subject = Pick<Allocator, 'create' | 'update' | 'delete'>;

/** Makes one. */
export type MakeSubject = (options: AllocatorOptions) => Subject;
