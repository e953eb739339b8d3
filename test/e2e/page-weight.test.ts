import { expect, test } from 'vitest';
import { serveInProcess } from './served.ts';

/** What Chromium takes over TLS, and from this machine. */
const CHROMIUM = 'gzip, deflate, br, zstd';
/** What the page weighs at most, in bytes as they are sent. */
const MOST = 63_800;

test('the page with its code, style and map weighs 63,800 bytes at most, as browsers are sent it', async () => {
  const { addresses } = await serveInProcess();
  const page = await fetch(`${addresses.base_url}/`, { headers: { accept: 'text/html' } });
  const html = await page.text();
  const named = [...html.matchAll(/(?:src|href)="\/(ui\/[a-z.]+)"/g)].map(([, path]) => path);
  expect(named.toSorted()).toEqual(['ui/page.css', 'ui/page.js']);
  let sum = Buffer.byteLength(html);
  // Land is what the code asks for itself.
  for (const path of [...named, 'ui/land.json']) {
    const reply = await fetch(`${addresses.base_url}/${path}`, { headers: { 'accept-encoding': CHROMIUM } });
    expect([path, reply.status, reply.headers.get('content-encoding')]).toEqual([path, 200, 'br']);
    sum += Number(reply.headers.get('content-length'));
  }
  expect(sum).toBeGreaterThan(20_000);
  expect(sum).toBeLessThanOrEqual(MOST);
});
