import type { Server } from 'node:http';
import { Failure } from './contract/failure.ts';

/** Whether a host to listen on is this machine's own and nobody else's. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** An http address of a host, which may be an IPv6 address. */
export function httpAddress(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * Opens a server's socket.
 *
 * @param place port 0: any that is free
 * @param fix what to type when the port is taken
 * @throws Failure `network`
 */
export function listen(server: Server, place: { host: string; port: number }, fix: string): Promise<void> {
  const { host, port } = place;
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const taken = cause.code === 'EADDRINUSE';
      const message = taken ? `Port ${port} is taken.` : `${host}:${port} can't be listened on.`;
      reject(
        new Failure('network', message, {
          why: taken ? 'Another program listens there.' : cause.message,
          fix,
          cause,
        }),
      );
    });
    server.listen(port, host, resolve);
  });
}
