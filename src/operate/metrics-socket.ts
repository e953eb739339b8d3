import { createServer } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { loopbackAddress } from '../contract/loopback.ts';
import { createMetricsListener } from '../server/metrics/metrics-listener.ts';
import { processFamilies } from '../server/metrics/process-metrics.ts';
import { createServerMetrics, type ServerMetrics } from '../server/metrics/server-metrics.ts';
import { addressOf, listen, listeningFailure } from './http-server.ts';
import type { ListeningPlace } from './options.ts';

/** Metrics on a socket of their own. */
interface OpenMetrics {
  readonly metrics: ServerMetrics;
  /** Where they are read. */
  readonly url: string;
  close(): Promise<void>;
}

/** How closely the event loop is watched, in milliseconds. */
const RESOLUTION = 20;
/** A scraper asks for one small page at a time. */
const SCRAPE_LIMITS = {
  headersTimeout: 5000,
  requestTimeout: 5000,
  keepAliveTimeout: 5000,
  maxHeaderSize: 8192,
} as const;

/**
 * Serves metrics on a socket of their own, beside the services: a load balancer in front of the services does not expose
 * it. On loopback it answers only requests whose Host is a name of loopback.
 *
 * @throws Failure `network` when the port is taken
 */
export async function openMetrics(place: ListeningPlace): Promise<OpenMetrics> {
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
  const isOwn = (name: string): boolean => loopbackAddress(name) !== undefined;
  const hostAllowed = isOwn(host) ? isOwn : () => true;
  const server = createServer(SCRAPE_LIMITS, createMetricsListener({ text: metrics.text, hostAllowed }));
  const port = await listen(server, place).catch((cause: unknown) => {
    throw listeningFailure(cause, place, { metrics: '0' });
  });
  loopDelay.enable();
  return {
    metrics,
    url: `${addressOf('http', { host, port })}/metrics`,
    async close() {
      loopDelay.disable();
      server.close();
      server.closeAllConnections();
    },
  };
}
