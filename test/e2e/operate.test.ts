import { expect, test, vi } from 'vitest';
import { parseExposition, sampleOf } from '../fixtures/exposition.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { sendOverWire } from '../fixtures/wire.ts';
import { newMachine } from './command.ts';
import { serveHere, serveInProcess } from './served.ts';

/** One request under a Host of its own. */
async function ask(url: string, { method = 'GET', host }: { method?: string; host?: string } = {}) {
  const { port, origin, pathname } = new URL(url);
  const headers = host === undefined ? {} : { host };
  const reply = await sendOverWire({ port: Number(port), base: origin }, method, pathname, { headers });
  return { ...reply, type: reply.headers.get('content-type') ?? '' };
}

test('serve --metrics serves them on loopback, beside the services, and refuses other host names', async () => {
  const server = await serveHere('--metrics', '0');
  const { base_url: base, metrics_url: url = '' } = server.addresses;
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
  // It is told after the ready file is there.
  await vi.waitFor(() => expect(server.output.stdout).toContain(url), PATIENCE);
  await ask(`${base}/healthz`);
  const reply = await ask(url);
  expect(reply).toMatchObject({ status: 200, type: 'text/plain; version=0.0.4; charset=utf-8' });
  const found = parseExposition(reply.text);
  const labels = { route: '/healthz', method: 'GET', status: '2xx' };
  expect(sampleOf(found, 'slices_conn_http_requests_total', labels)).toBe(1);
  expect(sampleOf(found, 'process_resident_memory_bytes')).toBeGreaterThan(1e7);
  // The process is the test's own, within the seconds that a clock may be set by.
  const since = Number(sampleOf(found, 'process_start_time_seconds'));
  expect(Math.abs(since - (Date.now() / 1000 - process.uptime()))).toBeLessThan(60);
  expect(sampleOf(found, 'nodejs_eventloop_lag_max_seconds')).toBeGreaterThanOrEqual(0);

  expect((await ask(`${base}/metrics`)).status).toBe(404);
  const { port } = new URL(url);
  for (const host of ['evil.example', `evil.example:${port}`, '127.0.0.1.evil.example']) {
    expect((await ask(url, { host })).status).toBe(421);
  }
  for (const host of ['localhost', `localhost:${port}`, `[::1]:${port}`]) {
    expect((await ask(url, { host })).status).toBe(200);
  }
  expect((await ask(url, { method: 'POST' })).status).toBe(405);
  expect((await ask(`${url}/x`)).status).toBe(404);
  // Another server can't have its port, and leaves nothing behind.
  const ended = await newMachine().run(['serve', '--memory', '--port', '0', '--metrics', port]);
  expect(ended).toMatchObject({ exitCode: 7, stderr: expect.stringContaining(`Port ${port} is taken.`) });
});

test('serve --drain: told to stop, it is not ready any more, takes requests for so long, and ends', async () => {
  const server = await serveInProcess('--drain', '3');
  const { base_url: base } = server.addresses;
  expect((await ask(`${base}/readyz`)).status).toBe(200);
  server.process.signal('SIGTERM');
  await vi.waitFor(async () => expect((await ask(`${base}/readyz`)).status).toBe(503), {
    timeout: PATIENCE,
    interval: 20,
  });
  expect((await ask(`${base}/healthz`)).status).toBe(200);
  expect((await ask(`${base}/.well-known/jwks.json`)).status).toBe(200);
  expect(server.process.output.exitCode).toBe(null);
  expect((await server.process.ended).exitCode).toBe(0);
});
