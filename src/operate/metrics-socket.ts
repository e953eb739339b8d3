import { createServer, type RequestListener } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { loopbackAddress } from '../contract/addresses.ts';
import { EXPOSITION_TYPE } from '../server/metrics/instruments.ts';
import { processFamilies } from '../server/metrics/process-metrics.ts';
import { createServerMetrics } from '../server/metrics/server-metrics.ts';
import { requestFault } from '../server/request-form.ts';
import { addressOf, listen, listeningFailure } from './http-server.ts';
import type { ListeningPlace } from './options.ts';

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
 * it.
 *
 * @returns the metrics, and where they are read
 * @throws Failure `network` when the port is taken
 */
export async function openMetrics(place: ListeningPlace) {
  const loopDelay = monitorEventLoopDelay({ resolution: RESOLUTION });
  const metrics = createServerMetrics({ more: () => processFamilies(loopDelay) });
  const { host } = place;
  const server = createServer(SCRAPE_LIMITS, metricsListener(metrics.text, host));
  const port = await listen(server, place).catch((cause: unknown) => {
    throw listeningFailure(cause, place, { metrics: '0' });
  });
  loopDelay.enable();
  return {
    metrics,
    url: `${addressOf('http', { host, port })}/metrics`,
    async close(): Promise<void> {
      loopDelay.disable();
      server.close();
      server.closeAllConnections();
    },
  };
}

/**
 * Answers `GET /metrics`. On loopback, Host must be a name of loopback, so that a web page in a browser on this machine can't
 * read them through a domain name of its own.
 */
function metricsListener(text: () => string, listening: string): RequestListener {
  const isOwn = (name: string): boolean => loopbackAddress(name) !== undefined;
  const isHidden = isOwn(listening);
  return (request, response) => {
    const refuse = (status: number, words: string, headers: Readonly<Record<string, string>> = {}): void => {
      response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers });
      response.end(`${words}\n`);
    };
    const { headers, method, url = '' } = request;
    const fault = requestFault(request);
    if (fault !== undefined) return refuse(400, fault);
    // Without its port; brackets stay off an IPv6 address.
    const host = (headers.host ?? '')
      .toLowerCase()
      .replace(/:\d+$/, '')
      .replace(/^\[(.*)\]$/, '$1');
    if (isHidden && !isOwn(host)) return refuse(421, 'This server does not answer for that host.');
    if (url.split('?')[0] !== '/metrics') return refuse(404, 'There is only /metrics.');
    if (method !== 'GET' && method !== 'HEAD') return refuse(405, 'Use GET.', { allow: 'GET, HEAD' });
    response.writeHead(200, { 'content-type': EXPOSITION_TYPE, 'cache-control': 'no-store' });
    response.end(text());
  };
}
