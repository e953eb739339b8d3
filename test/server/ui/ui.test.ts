import { describe, expect, test } from 'vitest';
import { createReferenceServer } from '../../../src/reference-server.ts';
import { createPageFiles } from '../../../src/server/ui/files.ts';

const BROWSER = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };
const base = 'https://conn.example.org/lab';
const server = await createReferenceServer({ baseUrl: base, name: 'Ghent <lab>' });
const plain = await createReferenceServer({ baseUrl: base, ui: false });

const ask = (path: string, headers: Record<string, string> = {}, at = server) =>
  at.fetch(new Request(`${base}${path}`, { headers }));

describe('/', () => {
  test('is the page for a browser, which runs only its own code and can’t be framed', async () => {
    const reply = await ask('/', BROWSER);
    expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'text/html; charset=UTF-8']);
    expect(reply.headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    );
    expect(reply.headers.get('x-frame-options')).toBe('DENY');
    expect(reply.headers.get('cross-origin-opener-policy')).toBe('same-origin');
    const text = await reply.text();
    expect(text).not.toMatch(/<script>|\sstyle=|\son\w+=/);
    expect(text).toContain('Ghent &lt;lab&gt;');
    expect(text).toContain('gr-uth');
  });

  test('/ui/callback is the same page, whatever a browser comes back with', async () => {
    const [first, back] = [await ask('/', BROWSER), await ask('/ui/callback?code=x&state=y', BROWSER)];
    expect([...back.headers]).toEqual([...first.headers]);
    expect(await back.text()).toBe(await first.text());
  });

  test('is an index for a program', async () => {
    expect(await (await ask('/')).json()).toMatchObject({ base_url: base, api_spec: `${base}/api-spec` });
  });

  test('with ui: false is the plain home page, and /ui is nothing', async () => {
    expect(await (await ask('/', BROWSER, plain)).text()).toContain('From a terminal');
    expect((await ask('/', BROWSER, plain)).headers.get('content-security-policy')).not.toContain('script');
    for (const path of ['/ui/page.js', '/ui/api/network', '/ui/login', '/ui/api/session']) {
      expect((await ask(path, {}, plain)).status).toBe(404);
    }
  });
});

describe('what the page asks for', () => {
  test('the network is for everyone who is not a page of another site', async () => {
    const reply = await ask('/ui/api/network');
    expect(reply.headers.get('cross-origin-resource-policy')).toBe('same-origin');
    expect(await reply.json()).toMatchObject({ name: 'Ghent <lab>', base_url: base });
    for (const site of ['cross-site', 'same-site']) {
      expect((await ask('/ui/api/network', { 'sec-fetch-site': site })).ok).toBe(false);
    }
    expect((await ask('/ui/api/network', { origin: 'https://evil.example' })).ok).toBe(false);
    expect((await ask('/ui/api/network', { 'sec-fetch-site': 'same-origin' })).status).toBe(200);
  });

  test('a refusal has the headers of every answer', async () => {
    for (const path of ['/ui/api/links', '/ui/api/nothing']) {
      const { status, headers } = await ask(path, { 'sec-fetch-site': 'same-origin' });
      expect(status).toBe(path.endsWith('links') ? 403 : 404);
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
      expect(headers.get('cache-control')).toBe('no-store');
    }
  });

  test('logged out there is no user', async () => {
    expect(await (await ask('/ui/api/session')).json()).toEqual({ user: null, experiments: [] });
  });
});

describe('a file of the page', () => {
  const contents = new Map([['page.js', Buffer.from('export {};'.repeat(100))]]);
  let reads = 0;
  const files = createPageFiles(async (name) => {
    reads += 1;
    return contents.get(name);
  });
  const get = (name: string, headers: Record<string, string> = {}) =>
    files(new Request(`${base}/ui/${name}`, { headers }), name);

  test('is sent compressed where that is accepted, and not again to whoever has it', async () => {
    const reply = await get('page.js', { 'accept-encoding': 'gzip, deflate, br, zstd' });
    expect(reply?.headers.get('content-encoding')).toBe('br');
    const other = await get('page.js', { 'accept-encoding': 'gzip, br;q=0' });
    expect(other?.headers.get('content-encoding')).toBe('gzip');
    for (const one of [reply, other]) expect(Number(one?.headers.get('content-length'))).toBeLessThan(100);
    const whole = await get('page.js', { 'accept-encoding': 'deflate, gzip;q=0' });
    expect(await whole?.text()).toBe('export {};'.repeat(100));
    const known = await get('page.js', { 'if-none-match': reply?.headers.get('etag') ?? '' });
    expect([known?.status, await known?.text()]).toEqual([304, '']);
    expect(reads).toBe(1);
  });

  test.each(['nothing.js', '..%2fentry.js', '../entry.js', 'page.ts', 'page.js/', '.js', 'Page.js'])(
    '%s is none',
    async (name) => {
      expect(await get(name)).toBeUndefined();
    },
  );

  test('that can’t be read once can be read later', async () => {
    const answers = [Promise.reject(new Error('EMFILE')), Promise.resolve(Buffer.from('x'))];
    const later = createPageFiles(() => answers.shift() ?? Promise.resolve(undefined));
    const request = new Request(`${base}/ui/page.js`);
    await expect(later(request, 'page.js')).rejects.toThrow('EMFILE');
    expect((await later(request, 'page.js'))?.status).toBe(200);
  });
});
