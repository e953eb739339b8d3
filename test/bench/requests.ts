import { randomBytes } from 'node:crypto';
import type { CreateRequest } from '../../src/allocator/decide.ts';
import { builtInTopology, createNetwork } from '../../src/allocator/network.ts';
import type { ReservationStore } from '../../src/allocator/store.ts';
import { MINUTE } from '../../src/contract/durations.ts';
import { newId } from '../../src/contract/fields.ts';
import type { Link } from '../../src/contract/links.ts';
import { Allocator } from '../allocator/allocator.ts';
import type { Random } from './seeded.ts';

/** An allocator over the built-in links. */
export function allocatorOn(store: ReservationStore): Allocator {
  const id = (): string => newId('reservation', 'conn.example.org', Date.now(), randomBytes(10));
  return new Allocator({ network: createNetwork(builtInTopology()), store, now: Date.now, newId: id });
}

/** When something is asked for, at random: in `[from, from + horizon)`, in milliseconds. */
export interface Horizon {
  from: number;
  horizon: number;
}

/** A request for 1 to 9 Mbps over 15 to 90 minutes, which every wide link has room for. */
export function requestFor(
  { site1, site2 }: Pick<Link, 'site1' | 'site2'>,
  { from, horizon }: Horizon,
  random: Random,
): CreateRequest & { search?: undefined } {
  const start = from + Math.floor(random() * horizon);
  return {
    site1,
    site2,
    start,
    end: start + 15 * MINUTE + Math.floor(random() * 75 * MINUTE),
    bandwidth: 1 + Math.floor(random() * 9),
    experiment: 'exp_bench.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
    createdBy: 'user_bench.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
    expiry: Number.MAX_SAFE_INTEGER,
  };
}

/** Books; a benchmark counts what was had only. @returns the id @throws Error when it is refused */
export async function booked(allocator: Allocator, request: CreateRequest): Promise<string> {
  const outcome = await allocator.create(request);
  if (!outcome.ok) throw new Error(`refused: ${JSON.stringify(outcome)}`);
  return outcome.record.id;
}
