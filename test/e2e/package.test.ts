import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

/** The packed package, installed by someone who has only the tarball and runs no install scripts. */
const root = new URL('../..', import.meta.url).pathname;
const folder = temporaryFolder();
/** The oldest Node that package.json allows, as the binary that its own package brings. */
const OLDEST = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
const oldest = join(folder, 'node_modules', OLDEST, 'bin', 'node');

beforeAll(() => {
  writeFileSync(join(folder, 'package.json'), '{"name":"stranger","version":"1.0.0","type":"module"}');
  const npm = (...args: string[]) =>
    execFileSync('npm', [...args, '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'], {
      ...{ cwd: folder, stdio: 'pipe' },
    });
  npm('pack', root);
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '';
  npm('install', join(folder, tarball), `${OLDEST}@22.19.0`);
});

describe('the packed tarball, installed with --ignore-scripts', () => {
  it('books offline under the oldest Node that is allowed, 22.19, without a warning', () => {
    const link = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '2h'];
    const program = join(folder, 'node_modules', 'slices-conn', 'bin', 'slices-conn.js');
    const env = { HOME: join(folder, 'home'), PATH: '' };
    const { status, stdout, stderr } = spawnSync(oldest, [program, '--offline', 'reserve', ...link], {
      ...{ env, encoding: 'utf8' },
    });
    expect(stderr).toBe('');
    expect(stdout.match(/[SC]-tag \d+/g)).toHaveLength(4);
    expect(stdout).toContain('verified: signed by http://offline.localhost');
    expect(status).toBe(0);
  });

  describe('a user’s own program, which passes tokens as strings', () => {
    /** Plain JavaScript that a strict compiler takes as it is. */
    const PROGRAM = `
import { asRequest, createConnectivityClient, createPortalClient, createReferenceServer, Failure } from 'slices-conn';
import { createIssuer, createVerifier, generateSigningKey, importSigningKey, remoteKeySet } from 'slices-conn';

const server = await createReferenceServer();
const { fetch, addresses } = server;
const userToken = await server.signIn('lead');
const portal = createPortalClient({ fetch, portalUrl: addresses.portal, userToken });
const [project] = await portal.projects();
const [experiment] = await portal.experiments();
if (!project || !experiment) throw new Error('no demo');
const experimentToken = await portal.experimentToken(experiment.id);
const keys = remoteKeySet({ url: addresses.connectivity + '/.well-known/jwks.json', fetch });
const client = createConnectivityClient({
  fetch,
  baseUrl: addresses.connectivity,
  userToken,
  experimentToken: () => portal.experimentToken(experiment.id),
  trust: { issuers: new Map([[addresses.connectivity, keys]]) },
});
const start = Date.now() + 3_600_000;
const link = { site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 1000, start, end: start + 3_600_000 };
const [{ reservation, token }] = await client.change([{ action: 'create', request: link }]);
const shown = await client.show(reservation.id);
const faster = { ...asRequest(reservation), bandwidth: 2000 };
const [updated] = await client.change([{ action: 'update', id: reservation.id, request: faster }]);

const key = await importSigningKey(await generateSigningKey());
const issuer = createIssuer({ issuer: 'https://own.example.org', key });
const verifier = createVerifier({
  issuers: {
    [addresses.connectivity]: true,
    [addresses.portal]: true,
    'https://own.example.org': issuer.keySet,
  },
  fetch,
});
const kinds = [];
for (const one of [token ?? '', experimentToken, await portal.projectToken(project.id), await issuer.issue({ sub: 'robot' })]) {
  kinds.push((await verifier.verify(one)).kind);
}
await client.change([{ action: 'delete', id: reservation.id }]);
const gone = await client.show(reservation.id).catch((error) => (error instanceof Failure ? error.code : 'lost'));
await server.close();
console.log(JSON.stringify([typeof experimentToken, shown.verified, updated.reservation.bandwidth, kinds, gone]));
`;
    it('books, shows, updates, deletes, verifies and issues under the oldest Node', () => {
      const file = join(folder, 'own.js');
      writeFileSync(file, PROGRAM);
      const { status, stdout, stderr } = spawnSync(oldest, [file], { cwd: folder, encoding: 'utf8' });
      // node:sqlite is an experiment of Node 22, and says so once.
      expect(stderr.replace(/^\(node:\d+\) ExperimentalWarning: SQLite .*\n\(Use .*\n/, '')).toBe('');
      const kinds = ['connectivity', 'experiment', 'project', 'service'];
      expect(JSON.parse(stdout)).toEqual(['string', true, 2000, kinds, 'not_found']);
      expect(status).toBe(0);
    });

    it('is a strict program as it stands, as are those of the page on programs of your own', () => {
      const page = readFileSync(join(root, 'src/client/README.md'), 'utf8');
      const programs = [...page.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, program = '']) => program);
      expect(programs).toHaveLength(5);
      expect(compile([PROGRAM, ...programs]).stdout).toBe('');
    });
  });

  it('has clients and a verifier whose types need nothing of Node', () => {
    const source = `
import { createConnectivityClient } from 'slices-conn/clients';
import { createVerifier } from 'slices-conn/verifier';
export const names = [createConnectivityClient, createVerifier];
export const environment = process.env;
`;
    const { stdout } = compile([source], ['--types', '', '--lib', 'es2024,dom']);
    // There is no process, and all else is as it should be.
    expect(stdout.match(/^\S+\(\d+/gm)).toEqual(['program0.ts(5']);
  });

  function compile(sources: readonly string[], environment: readonly string[] = ['--types', 'node']) {
    const programs = sources.map((_, index) => join(folder, `program${index}.ts`));
    for (const [index, program] of programs.entries()) writeFileSync(program, sources[index] ?? '');
    const flags = [
      // Of the libraries only TypeScript's own are taken as they are.
      ...['--noEmit', '--skipDefaultLibCheck', '--singleThreaded', '--strict'],
      ...['--module', 'nodenext', '--target', 'es2024', ...environment],
      ...['--typeRoots', join(root, 'node_modules', '@types'), ...programs],
    ];
    // It ends soon: with room for what it throws away it does a third less work.
    const env = { ...process.env, GOGC: '400' };
    return spawnSync(join(root, 'node_modules/.bin/tsc'), flags, { cwd: folder, encoding: 'utf8', env });
  }

  it('runs no script and brings no native code', () => {
    const modules = join(folder, 'node_modules');
    const manifests = globSync(['*/package.json', '@*/*/package.json'], { cwd: modules });
    expect(manifests.length).toBeGreaterThan(10);
    const hooks = ['preinstall', 'install', 'postinstall'];
    const withScripts = manifests.filter((manifest) => {
      const { scripts = {} } = JSON.parse(readFileSync(join(modules, manifest), 'utf8'));
      return hooks.some((hook) => hook in scripts);
    });
    expect(withScripts).toEqual([]);
    expect(globSync('**/*.node', { cwd: modules })).toEqual([]);
  });
});
