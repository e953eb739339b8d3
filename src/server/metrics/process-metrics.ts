import type { Family } from './instruments.ts';

/** Readings of a process, as `process` and `perf_hooks` give them. */
export interface ProcessFacts {
  /** Bytes. */
  memory(): { rss: number; heapUsed: number; heapTotal: number; external: number };
  /** Microseconds of processor time so far. */
  cpu(): { user: number; system: number };
  /** Seconds since the process began. */
  uptime(): number;
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** The delay of the event loop since the last reset, in nanoseconds. */
  loopDelay: { mean: number; max: number; percentile(percent: number): number; reset(): void };
}

const NANOSECONDS = 1e9;
const MICROSECONDS = 1e6;

/**
 * The process's memory, processor time, age, and event-loop delay, under the names that dashboards for Node.js know.
 * The delay is measured since the last reading.
 */
export function processFamilies(facts: ProcessFacts): Family[] {
  const { rss, heapUsed, heapTotal, external } = facts.memory();
  const { user, system } = facts.cpu();
  const { loopDelay } = facts;
  const { mean, max } = loopDelay;
  const percentiles = [50, 90, 99].map((percent) => [`p${percent}`, loopDelay.percentile(percent)] as const);
  loopDelay.reset();
  return [
    gauge('process_resident_memory_bytes', 'Resident memory.', rss),
    gauge('nodejs_heap_size_used_bytes', 'Heap in use.', heapUsed),
    gauge('nodejs_heap_size_total_bytes', 'Heap reserved.', heapTotal),
    gauge('nodejs_external_memory_bytes', 'Memory of objects outside the heap.', external),
    {
      ...gauge('process_cpu_seconds_total', 'Processor time so far.', (user + system) / MICROSECONDS),
      type: 'counter',
    },
    gauge(
      'process_start_time_seconds',
      'When the process began, since the Unix epoch.',
      facts.now() / 1000 - facts.uptime(),
    ),
    ...[['mean', mean] as const, ['max', max] as const, ...percentiles].map(([name, nanoseconds]) =>
      gauge(
        `nodejs_eventloop_lag_${name}_seconds`,
        `Delay of the event loop since the last reading: ${name}.`,
        Number.isFinite(nanoseconds) ? nanoseconds / NANOSECONDS : 0,
      ),
    ),
  ];
}

function gauge(name: string, help: string, value: number): Family {
  return { name, type: 'gauge', help, samples: [{ labels: {}, value }] };
}
