import { text } from 'node:stream/consumers';
import type { Demand } from '../../src/allocator/demand.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import type { Link } from '../../src/contract/links.ts';
import { openEither } from '../store/opened-store.ts';
import { Allocator } from './allocator.ts';

/** The requests of a racing process. It sends them at once when it gets the signal. */
export interface RaceOrder {
  /** The SQLite file, or the address of a PostgreSQL database. */
  path: string;
  link: Link;
  /** Prefix of the ids of this process's reservations. */
  name: string;
  /** Reservations to create. */
  book: readonly Demand[];
  /** The idempotency key of all of them, for one user. */
  key?: string;
}

/** The outcome of a request, or its error. */
export type RaceAnswer = { ok: true; id: string } | { ok: false; why: string };

// Run as a process of its own: the order as JSON in argv; `ready` once the database is open; then it waits for stdin to
// end, so that several start together, and prints its answers as JSON.
const { path, link, name, book, key }: RaceOrder = JSON.parse(process.argv[2] ?? '');
const { store, close } = await openEither(path);
let ids = 0;
const allocator = new Allocator({
  network: createNetwork({ sites: [link.site1, link.site2], links: [link] }),
  store,
  now: () => 0,
  newId: () => `${name}${ids++}`,
});
const sites = { site1: link.site1, site2: link.site2 };
const who = { experiment: 'exp', createdBy: key === undefined ? name : 'user', expiry: 1_000_000 };
process.stdout.write('ready');
await text(process.stdin);
const requests = book.map((demand) => {
  const request = { ...sites, ...demand, ...who };
  if (key === undefined) return allocator.create(request);
  return allocator.create({ ...request, key, fingerprint: JSON.stringify(demand) });
});
const answers = requests.map(async (asked): Promise<RaceAnswer> => {
  try {
    const outcome = await asked;
    if (outcome?.ok) return { ok: true, id: outcome.record.id };
    if (outcome?.reason !== 'refused') return { ok: false, why: outcome?.reason ?? 'gone' };
    return { ok: false, why: outcome.refusals.map(({ limit }) => limit).join(' ') };
  } catch (error) {
    return { ok: false, why: String(error) };
  }
});
process.stdout.write(JSON.stringify(await Promise.all(answers)));
await close();
