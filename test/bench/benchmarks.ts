import type { Benchmark } from './benchmark.ts';

/** Every benchmark by its name, loaded when it runs: each is a process of its own, and pays for nothing of the others. */
export const BENCHMARKS: Readonly<Record<string, () => Promise<Benchmark>>> = {
  'start-up': async () => (await import('./start-up.ts')).startUp,
  'calendar-growth': async () => (await import('./calendar-growth.ts')).calendarGrowth,
  tags: async () => (await import('./tags.ts')).tags,
  searches: async () => (await import('./searches.ts')).searches,
  'route-searches': async () => (await import('./route-searches.ts')).routeSearches,
  'durable-bookings': async () => (await import('./durable-bookings.ts')).durableBookings,
  hops: async () => (await import('./hops.ts')).hops,
  'http-bookings': async () => (await import('./http-bookings.ts')).httpBookings,
  'http-reads': async () => (await import('./http-reads.ts')).httpReads,
  postgres: async () => (await import('./postgres.ts')).postgres,
  batches: async () => (await import('./batches.ts')).batches,
  verify: async () => (await import('./verify.ts')).verify,
  events: async () => (await import('./events.ts')).events,
  'event-loop': async () => (await import('./event-loop.ts')).eventLoop,
  load: async () => (await import('./load.ts')).load,
  optimum: async () => (await import('./optimum.ts')).optimumOf,
  detours: async () => (await import('./detours.ts')).detours,
  memory: async () => (await import('./memory.ts')).memory,
  'own-reservations': async () => (await import('./own-reservations.ts')).ownReservations,
  timeline: async () => (await import('./timeline.ts')).timeline,
};
