import type { Benchmark } from './benchmark.ts';

/** Every benchmark by its name, loaded when it runs: each is a process of its own, and pays for nothing of the others. */
export const BENCHMARKS: Readonly<Record<string, () => Promise<Benchmark>>> = {
  'start-up': async () => (await import('./start-up.ts')).startUp,
  rows: async () => (await import('./rows.ts')).rows,
  routes: async () => (await import('./routes.ts')).routes,
  plain: async () => (await import('./plain.ts')).plain,
  postgres: async () => (await import('./postgres.ts')).postgres,
  optimum: async () => (await import('./optimum.ts')).optimumOf,
};
