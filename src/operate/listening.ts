import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Failure } from '../contract/failure.ts';
import { loopbackAddress } from '../contract/loopback.ts';

/** Where to listen; port 0 is any that is free. */
export interface ListeningPlace {
  host: string;
  port: number;
}

/** The address of a place; its host may be an IPv6 address. */
export function addressOf(scheme: 'http' | 'https', { host, port }: ListeningPlace): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Opens a server's socket. @returns the port @throws what the system says */
export function listen(server: Server, { host, port }: ListeningPlace): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    // A name below localhost is this machine's own, whatever DNS says (RFC 6761 §6.3).
    server.listen(port, loopbackAddress(host) ?? host, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** What it means that a place can't be listened on. @param fix what to type when the port is taken */
export function listeningFailure(cause: unknown, { host, port }: ListeningPlace, fix: string): Failure {
  const taken = cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE';
  const message = taken ? `Port ${port} is taken.` : `${host}:${port} can't be listened on.`;
  const said = cause instanceof Error ? cause.message : String(cause);
  return new Failure('network', message, {
    why: taken ? 'Another program listens there.' : said,
    fix,
    cause,
  });
}
