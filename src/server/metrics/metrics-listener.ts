import type { RequestListener } from 'node:http';
import { requestFault } from '../request-form.ts';
import { EXPOSITION_TYPE } from './instruments.ts';

/** Options of the metrics listener. */
export interface MetricsListenerOptions {
  /** See `ServerMetrics.text`. */
  text: () => string;
  /** Whether requests with this host name, without a port, are answered. */
  hostAllowed: (host: string) => boolean;
}

/**
 * Answers `GET /metrics` on a socket of its own: metrics are for the operator, not for users. The Host is checked, so that
 * a web page in a browser on this machine can't read them through a domain name of its own.
 */
export function createMetricsListener({ text, hostAllowed }: MetricsListenerOptions): RequestListener {
  return (request, response) => {
    const refuse = (status: number, words: string, headers: Readonly<Record<string, string>> = {}): void => {
      response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers });
      response.end(`${words}\n`);
    };
    const { headers, method, url = '' } = request;
    const fault = requestFault(request);
    if (fault !== undefined) return refuse(400, fault);
    if (!hostAllowed(hostName(headers.host ?? '')))
      return refuse(421, 'This server does not answer for that host.');
    if (url.split('?')[0] !== '/metrics') return refuse(404, 'There is only /metrics.');
    if (method !== 'GET' && method !== 'HEAD') return refuse(405, 'Use GET.', { allow: 'GET, HEAD' });
    response.writeHead(200, { 'content-type': EXPOSITION_TYPE, 'cache-control': 'no-store' });
    response.end(text());
  };
}

/** A Host header without its port; brackets stay off an IPv6 address. */
function hostName(host: string): string {
  return host
    .toLowerCase()
    .replace(/:\d+$/, '')
    .replace(/^\[(.*)\]$/, '$1');
}
