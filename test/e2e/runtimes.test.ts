import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';
import { describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { type Ended, reportOf } from './command.ts';
import { LAUNCHER } from './served.ts';

const lib = new URL('../../dist/lib/', import.meta.url);

/** Runs Node with `before` as its first module. */
function node(before: string, ...args: string[]): Ended {
  const first = `data:text/javascript,${encodeURIComponent(before)}`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', first, ...args], {
    env: { PATH: '' },
    encoding: 'utf8',
  });
  return { exitCode: status, stdout, stderr };
}

const script = (text: string): string[] => ['--input-type=module', '--eval', text];

describe('the launcher', () => {
  /** Without Node's own way to start a process, since an older Node must not start another one for these. */
  const OLD = "Object.defineProperty(process.versions, 'node', { value: '20.20.2' });";

  test('answers the official client on an older Node, without starting another one', () => {
    const answered = { exitCode: 0, stdout: `v${manifest.version}\n`, stderr: '' };
    expect(node(OLD, LAUNCHER, '--version')).toEqual(answered);
    const { exitCode, stdout, stderr } = node(OLD, LAUNCHER, '--cli-manifest');
    expect(JSON.parse(stdout)).toEqual({
      ...{
        '@type': 'slices-cli:subcommand-metadata',
        version: '1.0',
        short_help: expect.stringMatching(/\S/),
      },
      ...{ tab_completion_supported: true, tab_completion_install_option: '--install-completion' },
      ...{ visible_aliases: [], hidden_aliases: [] },
    });
    expect([exitCode, stderr]).toEqual([0, '']);
  });

  test('runs as the official client runs it: as npm installs it, a link on a PATH with blanks', () => {
    const bin = join(temporaryFolder(), 'a folder of programs');
    mkdirSync(bin);
    // Its first line looks for node on the PATH.
    symlinkSync(LAUNCHER, join(bin, 'slices-conn'));
    symlinkSync(process.execPath, join(bin, 'node'));
    const env = { PATH: `${bin}:/usr/bin:/bin`, HOME: bin };
    const run = (...args: string[]) => spawnSync('slices-conn', args, { env, cwd: bin, encoding: 'utf8' });
    expect(run('--version')).toMatchObject({ status: 0, stdout: `v${manifest.version}\n`, stderr: '' });
    const refused = run('--offline', '--json', 'verify', 'a link.jwt');
    const report = reportOf({ ...refused, exitCode: refused.status });
    expect(report).toMatchObject({ exitCode: 2, message: "The file a link.jwt can't be read." });
  });

  test('says in one line that it does not run on Deno', () => {
    const { exitCode, stdout, stderr } = node('globalThis.Deno = {};', LAUNCHER, 'list');
    expect(stderr).toMatch(/^error: slices-conn does not run on Deno\. [^\n]*Node\.js 22\.19[^\n]*\n$/);
    expect([exitCode, stdout]).toEqual([2, '']);
  });
});

/** Prints every file that is loaded. */
const LOADED = `
  import { registerHooks } from 'node:module';
  registerHooks({ load: (url, context, next) => { console.log(url); return next(url, context); } });
`;

test('importing the package loads neither the server nor its libraries', () => {
  const { stdout, stderr } = node(LOADED, ...script(`await import(${JSON.stringify(`${lib}index.js`)})`));
  expect(stderr).toBe('');
  expect(stdout).toContain('node_modules/jose/');
  expect(stdout).not.toMatch(/oidc-provider|hono|reference-server|node_modules\/pg\//);
});

test('a server on a release of Node that is not LTS loads the identity provider without its warning', () => {
  const provider = new URL('../../node_modules/oidc-provider/lib/index.js', import.meta.url);
  expect(readFileSync(provider, 'utf8')).toContain("attention.warn('Unsupported runtime");
  const { exitCode, stdout, stderr } = node(
    `delete process.release.lts; ${LOADED}`,
    ...script(`
      import { createServer } from 'node:http';
      const { createReferenceServer } = await import(${JSON.stringify(`${lib}index.js`)});
      const socket = createServer((...asked) => server.listener(...asked)).listen(0, '127.0.0.1');
      await new Promise((resolve) => socket.once('listening', resolve));
      const server = await createReferenceServer({ baseUrl: 'http://127.0.0.1:' + socket.address().port });
      const reply = await fetch(server.addresses.identity + '/.well-known/openid-configuration');
      console.log(reply.status, (await reply.json()).issuer === server.addresses.identity);
      console.warn('other warnings');
      socket.close().closeAllConnections();
      await server.close();
    `),
  );
  expect(stderr).toBe('other warnings\n');
  expect(stdout).toContain('node_modules/oidc-provider/lib/index.js\n');
  expect(stdout).toContain('\n200 true\n');
  expect(exitCode).toBe(0);
});

describe.each(['verifier', 'clients'] as const)('slices-conn/%s', (name) => {
  const path = new URL(`${name}.js`, lib);

  test('is what package.json names, and imports nothing', () => {
    expect(manifest.exports[`./${name}`].default).toBe(`./dist/lib/${name}.js`);
    const { module } = parseSync(`${name}.js`, readFileSync(path, 'utf8'));
    expect(module.staticExports.length).toBeGreaterThan(0);
    expect([...module.staticImports, ...module.dynamicImports]).toEqual([]);
  });

  test('has no names that the main entry lacks', async () => {
    const [alone, whole] = [await import(path.href), await import(`${lib}index.js`)];
    expect(Object.keys(whole)).toEqual(expect.arrayContaining(Object.keys(alone)));
  });
});

test('where there is nothing of Node, no process, no Buffer, no require, the clients book and the verifier verifies', () => {
  const { stdout, stderr } = node(
    '',
    '--experimental-vm-modules',
    '--no-warnings',
    ...script(`
      import { readFileSync } from 'node:fs';
      import { createContext, SourceTextModule } from 'node:vm';
      const lib = ${JSON.stringify(lib.pathname)};
      const { createReferenceServer } = await import(lib + 'index.js');
      const server = await createReferenceServer();
      // Stands in for the network: a browser has its own.
      const fetch = (request) => server.fetch(request);
      const given = { ...server.addresses, userToken: await server.signIn('lead') };
      const names = ['crypto', 'TextEncoder', 'TextDecoder', 'URL', 'URLSearchParams', 'Headers', 'Request', 'Response', 'AbortController', 'AbortSignal', 'atob', 'btoa', 'setTimeout', 'clearTimeout', 'structuredClone', 'Uint8Array'];
      const context = createContext({ ...Object.fromEntries(names.map((name) => [name, globalThis[name]])), fetch, given });
      const loaded = async (text, modules) => {
        const made = new SourceTextModule(text, { context });
        await made.link((name) => modules[name] ?? Promise.reject(new Error('it imports ' + name)));
        await made.evaluate();
        return made;
      };
      const [clients, verifier] = await Promise.all(['clients', 'verifier'].map((name) => loaded(readFileSync(lib + name + '.js', 'utf8'), {})));
      const test = await loaded(\`
        import { createConnectivityClient, createPortalClient } from 'slices-conn/clients';
        import { createVerifier, remoteKeySet, TokenError } from 'slices-conn/verifier';
        const { connectivity: baseUrl, portal: portalUrl, identity, userToken } = given;
        const portal = createPortalClient({ fetch, portalUrl, userToken });
        const [experiment] = await portal.experiments();
        const keys = remoteKeySet({ url: baseUrl + '/.well-known/jwks.json' });
        const client = createConnectivityClient({ fetch, baseUrl, userToken, experimentToken: () => portal.experimentToken(experiment.id), trust: { issuers: new Map([[baseUrl, keys]]) } });
        const request = { site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 1000, start: 'now', end: Date.now() + 7_200_000 };
        const [booked] = await client.change([{ action: 'create', request }]);
        export const { verified } = booked;
        const checks = createVerifier({ issuers: { [identity]: true } });
        export const { kind } = await checks.verify(userToken);
        const changed = userToken.replace(/.(?=.{5}$)/, (found) => (found === 'A' ? 'B' : 'A'));
        export const fault = await checks.verify(changed).catch((error) => [error instanceof TokenError, error.code]);
        export const { status } = (await checks.authenticate(new Request(baseUrl))).response;
        export const names = [typeof process, typeof Buffer, typeof require];
      \`, { 'slices-conn/clients': clients, 'slices-conn/verifier': verifier });
      console.log(JSON.stringify(test.namespace));
      await server.close();
    `),
  );
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual({
    verified: true,
    kind: 'user',
    fault: [true, 'signature'],
    status: 403,
    names: ['undefined', 'undefined', 'undefined'],
  });
});
