import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { httpAddress, isLoopback, listen } from './listening.ts';
import { createMetricsListener } from './server/metrics/metrics-listener.ts';
import { processFamilies } from './server/metrics/process-metrics.ts';
import { createServerMetrics, type ServerMetrics } from './server/metrics/server-metrics.ts';

/** Metrics that can be read. */
export interface Watched {
  readonly metrics: ServerMetrics;
  /** Their address. */
  readonly url: string;
  close(): Promise<void>;
}

/** How closely the event loop is watched, in milliseconds. */
const RESOLUTION = 20;
/** A scraper asks for one small page at a time. */
const LIMITS = {
  headersTimeout: 5000,
  requestTimeout: 5000,
  keepAliveTimeout: 5000,
  maxHeaderSize: 8192,
} as const;

/**
 * Serves metrics on a socket of their own, beside the services: whatever stands before those, such as a load balancer
 * that is open to the world, does not reach it. On loopback it answers to loopback's names only.
 *
 * @throws Failure `network` when the port is taken
 */
export async function openMetrics(place: { host: string; port: number }): Promise<Watched> {
  const loopDelay = monitorEventLoopDelay({ resolution: RESOLUTION });
  const metrics = createServerMetrics({
    more: () =>
      processFamilies({
        memory: process.memoryUsage,
        cpu: process.cpuUsage,
        uptime: process.uptime,
        now: Date.now,
        loopDelay,
      }),
  });
  const { host } = place;
  const hostAllowed = isLoopback(host) ? isLoopback : () => true;
  const server = createServer(LIMITS, createMetricsListener({ text: metrics.text, hostAllowed }));
  await listen(server, place, 'slices-conn serve --metrics 0');
  loopDelay.enable();
  const { port } = server.address() as AddressInfo;
  return {
    metrics,
    url: `${httpAddress(host, port)}/metrics`,
    async close() {
      loopDelay.disable();
      server.close();
      server.closeAllConnections();
    },
  };
}
