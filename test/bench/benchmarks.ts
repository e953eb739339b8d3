import type { Benchmark } from './benchmark.ts';

/** Every benchmark by its name, loaded when it runs: each is a process of its own, and pays for nothing of the others. */
export const BENCHMARKS: Readonly<Record<string, () => Promise<Benchmark>>> = {
  'start-up': async () => (await import('./start-up.ts')).startUp,
  rows: async () => (await import('./rows.ts')).rows,
  'http-bookings': async () => (await import('./http-bookings.ts')).httpBookings,
  'http-reads': async () => (await import('./http-reads.ts')).httpReads,
  postgres: async () => (await import('./postgres.ts')).postgres,
  verify: async () => (await import('./verify.ts')).verify,
  'event-loop': async () => (await import('./event-loop.ts')).eventLoop,
  optimum: async () => (await import('./optimum.ts')).optimumOf,
};
