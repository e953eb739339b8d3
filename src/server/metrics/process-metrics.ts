import type { monitorEventLoopDelay } from 'node:perf_hooks';
import { type Family, familyOf } from './instruments.ts';

const NANOSECONDS = 1e9;
const MICROSECONDS = 1e6;

/**
 * The process's memory, processor time, age, and event-loop delay, under the names that dashboards for Node.js know.
 *
 * @param loopDelay in nanoseconds, since the last reading
 */
export function processFamilies(
  loopDelay: Pick<ReturnType<typeof monitorEventLoopDelay>, 'mean' | 'max' | 'percentile' | 'reset'>,
): Family[] {
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  const delays = { mean: loopDelay.mean, max: loopDelay.max };
  const percentiles = [50, 90, 99].map((percent) => [`p${percent}`, loopDelay.percentile(percent)] as const);
  loopDelay.reset();
  return [
    one('process_resident_memory_bytes', 'Resident memory.', rss),
    one('nodejs_heap_size_used_bytes', 'Heap in use.', heapUsed),
    one('nodejs_heap_size_total_bytes', 'Heap reserved.', heapTotal),
    one('nodejs_external_memory_bytes', 'Memory of objects outside the heap.', external),
    one('process_cpu_seconds_total', 'Processor time so far.', (user + system) / MICROSECONDS),
    one(
      'process_start_time_seconds',
      'When the process began, since the Unix epoch.',
      performance.timeOrigin / 1000,
    ),
    ...[...Object.entries(delays), ...percentiles].map(([name, nanoseconds]) =>
      one(
        `nodejs_eventloop_lag_${name}_seconds`,
        `Delay of the event loop since the last reading: ${name}.`,
        Number.isFinite(nanoseconds) ? nanoseconds / NANOSECONDS : 0,
      ),
    ),
  ];
}

const one = (name: string, help: string, value: number): Family =>
  familyOf(name, help, [{ labels: {}, value }]);
