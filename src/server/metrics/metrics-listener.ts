import type { RequestListener } from 'node:http';
import { requestFault } from '../request-form.ts';
import { EXPOSITION_TYPE } from './instruments.ts';

/** Options of the metrics listener. */
export interface MetricsListenerOptions {
  /** See `ServerMetrics.text`. */
  text: () => string;
  /** Whether a host name, without a port, is one to answer under. */
  hostAllowed: (host: string) => boolean;
}

/**
 * `GET /metrics` and nothing else, for a socket of its own: what a server's operator may know is not for those whom it
 * serves. The Host is looked at so that no page in a browser on this machine can read it under a name of its own.
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
      return refuse(421, 'This address answers for itself only.');
    if (url.split('?')[0] !== '/metrics') return refuse(404, 'There is only /metrics.');
    if (method !== 'GET' && method !== 'HEAD') return refuse(405, 'Ask with GET.', { allow: 'GET, HEAD' });
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
