import { describe, expect, test } from 'vitest';
import { createReferenceServer } from '../../../src/reference-server.ts';
import { createPageFiles } from '../../../src/server/ui/files.ts';
import { PAGE_HEADERS } from '../../../src/server/ui/page.ts';
import { send, startIdentity } from '../../fixtures/identity.ts';

const BROWSER = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };
const base = 'https://conn.example.org/lab';
const server = await createReferenceServer({ baseUrl: base, name: 'Ghent <lab>' });

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

  test('with ui: false is the plain home page, and /ui is nothing', async () => {
    expect(await (await ask('/', BROWSER, here)).text()).toContain('From a terminal');
    expect((await ask('/', BROWSER, here)).headers.get('content-security-policy')).not.toContain('script');
    for (const path of ['/ui/page.js', '/ui/api/network', '/ui/login', '/ui/api/session']) {
      expect((await ask(path, {}, here)).status).toBe(404);
    }
  });
});

describe('what the page asks for', () => {
  test('the network is for everyone, also without a login', async () => {
    const reply = await ask('/ui/api/network');
    expect(reply.headers.get('cross-origin-resource-policy')).toBe('same-origin');
    expect(await reply.json()).toMatchObject({ name: 'Ghent <lab>', base_url: base });
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

const PROGRAMS = ['*/*', 'application/json, text/html;q=0.5', 'text/html;q=0'];

const here = await createReferenceServer({ baseUrl: base, name: 'Ghent <lab>', ui: false });
const trusting = await createReferenceServer({
  baseUrl: 'https://conn.example.org',
  ui: false,
  trust: {
    issuers: ['https://login.example.org', 'https://portal.example.org'].map((issuer) => ({ issuer })),
    audience: 'x',
  },
});

async function read(server: typeof here, path: string, accept = BROWSER.accept) {
  const headers = { accept };
  const reply = await server.fetch(new Request(`${server.addresses.connectivity}${path}`, { headers }));
  return { status: reply.status, headers: reply.headers, text: await reply.text() };
}

describe('the base address without the page on the network', () => {
  test('is a page for a browser, which says who serves it', async () => {
    for (const at of ['/', '']) {
      const { status, headers, text } = await read(here, at);
      expect(status).toBe(200);
      expect(headers.get('content-type')).toBe('text/html; charset=UTF-8');
      expect(headers.get('vary')).toBe('accept');
      for (const [name, value] of Object.entries(PAGE_HEADERS)) expect(headers.get(name)).toBe(value);
      expect(text).toContain('<strong>Ghent &lt;lab&gt;</strong> at conn.example.org');
      expect(text).not.toMatch(/<script|\sstyle=|\son\w+=/);
    }
  });

  test.each(PROGRAMS)('is an index for a program that accepts %s', async (accept) => {
    const { status, headers, text } = await read(here, '/', accept);
    const at = 'https://conn.example.org/lab';
    expect(JSON.parse(text)).toEqual({
      name: 'Ghent <lab>',
      base_url: at,
      portal_url: `${at}/portal`,
      auth_url: `${at}/auth`,
      api_docs: `${at}/api-docs`,
      api_spec: `${at}/api-spec`,
      key_set: `${at}/.well-known/jwks.json`,
    });
    expect([status, headers.get('vary')]).toEqual([200, 'accept']);
  });

  test('has links that lead somewhere', async () => {
    const { text } = await read(here, '/');
    const links = [...text.matchAll(/href="([^"]+)"/g)]
      .map(([, link = '']) => link)
      .filter((link) => link !== 'data:,');
    expect(links.length).toBeGreaterThan(1);
    for (const link of links.filter((each) => !each.endsWith('/device'))) {
      expect(link).toMatch(/^\/lab\//);
      expect((await read(here, link.slice('/lab'.length))).status).toBe(200);
    }
  });
});

/** What the first page says to type in a terminal. */
async function commandsOn(service: typeof here): Promise<(string | undefined)[]> {
  const { text } = await read(service, '/');
  return [...text.matchAll(/<pre>(.*?)<\/pre>/gs)].flatMap(([, block = '']) =>
    [...block.matchAll(/<code>(.*?)<\/code>/g)].map(([, command]) => command),
  );
}

test('the first page has the command for a login here, or where that takes no address with a path the commands', async () => {
  const at = 'https://conn.example.org/lab';
  expect(await commandsOn(trusting)).toEqual([`slices-conn login ${trusting.addresses.connectivity}`]);
  expect(await commandsOn(here)).toEqual([
    `slices-conn profile set here baseUrl=${at} portalUrl=${at}/portal authUrl=${at}/auth`,
    'slices-conn profile use here',
    'slices-conn login',
  ]);
});

describe('a refusal', () => {
  test.each(['/nowhere', '/portal/nowhere'])(
    'at %s is a page for a browser, with the same status',
    async (path) => {
      const { status, headers, text } = await read(here, path);
      expect([status, headers.get('content-type')]).toEqual([404, 'text/html; charset=UTF-8']);
      expect(headers.get('content-security-policy')).toBe(PAGE_HEADERS['content-security-policy']);
      expect(text).toContain(`<p>There is nothing at ${path}.</p>`);
    },
  );

  test.each([BROWSER.accept, 'text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2'])(
    'below /apis is JSON for one that accepts %s',
    async (accept) => {
      const paths = ['/apis/v1alpha1/links', '/apis/nowhere', '/portal/apis/projects/v1alpha1/projects/'];
      for (const path of paths) {
        const { status, headers, text } = await read(here, path, accept);
        expect([path, headers.get('content-type')]).toEqual([path, 'application/json']);
        expect(JSON.parse(text)).toMatchObject({ code: status === 404 ? 'not_found' : 'token_missing' });
      }
    },
  );

  test('keeps its headers, and escapes what was asked for', async () => {
    const reply = await here.fetch(
      new Request(`${here.addresses.connectivity}/api-spec`, { method: 'DELETE', headers: BROWSER }),
    );
    expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    expect((await read(here, "/'onload='x(1)")).text).not.toContain("'onload='");
  });

  test('under another name, on a socket, leads to the right one', async () => {
    const server = await startIdentity();
    const host = `localhost:${server.port}`;
    const reply = await send(server, 'GET', '/', { headers: { host, ...BROWSER } });
    expect(reply.status).toBe(421);
    expect(reply.headers.get('content-security-policy')).toBe(PAGE_HEADERS['content-security-policy']);
    expect(reply.text).toContain(`<a href="${server.base}/">${server.base}</a>`);
    const below = await send(server, 'GET', '/apis/v1alpha1/links?x=/', { headers: { host, ...BROWSER } });
    expect([below.status, below.headers.get('content-type')]).toEqual([421, 'application/json']);
    const program = await send(server, 'GET', '/', { headers: { host } });
    expect([program.status, program.headers.get('content-type')]).toEqual([421, 'application/json']);
  });
});
