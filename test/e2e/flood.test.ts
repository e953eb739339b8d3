import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { CONNECTIVITY } from '../fixtures/service.ts';
import { serveInProcess } from './served.ts';

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** The median time of so many GETs, one after the other, in milliseconds. */
async function medianOfGets(base: string, count: number): Promise<number> {
  const agent = new Agent({ keepAlive: true });
  const times: number[] = [];
  for (let made = 0; made < count; made += 1) {
    const began = performance.now();
    const asked = request(`${base}/.well-known/jwks.json`, { agent }).end();
    const [reply] = await once(asked, 'response');
    expect(reply.statusCode).toBe(200);
    await once(reply.resume(), 'end');
    times.push(performance.now() - began);
  }
  agent.destroy();
  return times.toSorted((one, other) => one - other)[count >> 1] ?? 0;
}

/** Sends one request after the other on a connection, each as soon as the one before is answered; opens it again when closed. */
function attack({ hostname, port }: URL, message: Buffer, onReply: (status: string) => void): void {
  const socket = connect(Number(port), hostname, () => socket.write(message));
  sockets.push(socket);
  socket.setEncoding('latin1').on('data', (text: string) => {
    for (const [, status = ''] of text.matchAll(/HTTP\/1\.1 (\d{3})/g)) {
      onReply(status);
      socket.write(message);
    }
  });
  socket.on('error', () => undefined);
  socket.once(
    'close',
    () => sockets.includes(socket) && attack(new URL(`http://${hostname}:${port}`), message, onReply),
  );
}

test('row 47: 50 connections of 256 KiB of nesting with a bad token: a GET takes less than 5 times as long', async () => {
  const { addresses } = await serveInProcess();
  const base = addresses.base_url;
  const body = '['.repeat(262_144);
  const head = [`POST ${CONNECTIVITY} HTTP/1.1`, `Host: ${new URL(base).host}`, 'Authorization: Bearer bad'];
  const rest = ['Content-Type: application/json', `Content-Length: ${body.length}`, '', body];
  const message = Buffer.from([...head, ...rest].join('\r\n'));
  await medianOfGets(base, 100);
  const before = await medianOfGets(base, 100);
  const statuses = new Map<string, number>();
  const everyone = Promise.withResolvers<void>();
  for (let made = 0; made < 50; made += 1) {
    attack(new URL(base), message, (status) => {
      const count = (statuses.get(status) ?? 0) + 1;
      statuses.set(status, count);
      if (count === 100) everyone.resolve();
    });
  }
  await everyone.promise;
  // Other programs of this machine come and go: the least of many measurements is the server's own.
  const attacked = [await medianOfGets(base, 100)];
  while (Math.min(...attacked) >= 5 * Math.max(before, 0.5) && attacked.length < 40) {
    attacked.push(await medianOfGets(base, 100));
  }
  for (const socket of sockets.splice(0)) socket.destroy();
  const after = await medianOfGets(base, 100);
  expect([...statuses.keys()]).toEqual(['403']);
  expect(Math.min(...attacked)).toBeLessThan(5 * Math.max(before, after, 0.5));
});

test('row 48: --max-connections-per-address is how many connections of one address are served', async () => {
  const { addresses } = await serveInProcess('--max-connections-per-address', '3');
  const { hostname, port } = new URL(addresses.base_url);
  const open = async (): Promise<Socket> => {
    const socket = connect(Number(port), hostname);
    sockets.push(socket);
    await once(socket, 'connect');
    return socket;
  };
  const statusOn = async (socket: Socket): Promise<string> => {
    socket.write(`GET /healthz HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`);
    const [reply] = await once(socket.setEncoding('latin1'), 'data');
    return String(reply).slice(9, 12);
  };
  const served = [await open(), await open(), await open()];
  expect(await statusOn(await open())).toBe('503');
  for (const socket of served) expect(await statusOn(socket)).toBe('200');
});
