/**
 * Four generators of clients, each with the whole job: a client is generated from a running server's `/api-spec`, checked
 * by this repository's TypeScript, and books a link with it. The generators are installed into a temporary folder, since
 * this repository does not need them; so this is a script to run by hand, with a network:
 *
 *     node test/e2e/generated-clients.ts
 */
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { createReferenceServer } from '../../src/reference-server.ts';
import { endFile } from '../fixtures/end-of-file.ts';
import { listenOnLoopback } from '../fixtures/loopback.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

interface Generator {
  /** What is installed; the first one is the generator. Most need a TypeScript with a compiler's interface. */
  packages: readonly string[];
  /** Runs in the folder with `openapi.json`. */
  command: readonly [program: string, ...args: string[]];
  /** Files that the command needs. */
  files?: Readonly<Record<string, string>>;
  /** A module with `listExperiments`, `experimentToken`, `create` and `remove` over the generated client. */
  client: string;
}

const AUTHORIZATION = 'const headers = { authorization: "Bearer " + process.env.TOKEN };';
const BASE = 'const baseUrl = String(process.env.BASE);';

const GENERATORS: Readonly<Record<string, Generator>> = {
  'openapi-typescript': {
    packages: ['openapi-typescript@7.13.0', 'openapi-fetch', 'typescript@5'],
    command: ['openapi-typescript', 'openapi.json', '-o', 'client.ts'],
    client: `
      import createClient from 'openapi-fetch';
      import type { components, paths } from './client';
      ${AUTHORIZATION}
      ${BASE}
      const api = createClient<paths>({ baseUrl, headers });
      export const listExperiments = async () =>
        (await api.GET('/portal/apis/experiments/v1alpha1/experiments')).data?.experiments ?? [];
      export const experimentToken = async (id: string) =>
        (await api.GET('/portal/apis/experiments/v1alpha1/experiments/{id}', {
          params: { path: { id } }, headers: { accept: 'application/jwt' }, parseAs: 'text',
        })).data;
      export const create = async (body: components['schemas']['ReservationRequest'], token: string) =>
        (await api.POST('/apis/v1alpha1/connectivity', { body, headers: { 'Slices-Experiment-Token': token } })).data;
      export const remove = async (id: string, token: string) =>
        (await api.DELETE('/apis/v1alpha1/connectivity/{id}', {
          params: { path: { id } }, headers: { 'Slices-Experiment-Token': token },
        })).response.status;`,
  },
  'hey-api': {
    packages: ['@hey-api/openapi-ts@0.99.0', 'typescript@5'],
    command: ['openapi-ts', '-i', 'openapi.json', '-o', 'client'],
    client: `
      import { createReservation, deleteReservation, experimentToken as getToken, listExperiments as list } from './client';
      import type { ReservationRequest } from './client';
      import { client } from './client/client.gen';
      ${AUTHORIZATION}
      ${BASE}
      client.setConfig({ baseUrl, headers });
      const withToken = (token: string) => ({ headers: { 'Slices-Experiment-Token': token } });
      export const listExperiments = async () => (await list()).data?.experiments ?? [];
      export const experimentToken = async (id: string) =>
        (await getToken({ path: { id }, headers: { accept: 'application/jwt' }, parseAs: 'text' })).data;
      export const create = async (body: ReservationRequest, token: string) =>
        (await createReservation({ body, ...withToken(token) })).data;
      export const remove = async (id: string, token: string) =>
        (await deleteReservation({ path: { id }, ...withToken(token) })).response?.status;`,
  },
  'swagger-typescript-api': {
    packages: ['swagger-typescript-api@13.13.0'],
    command: ['swagger-typescript-api', 'generate', '-p', 'openapi.json', '-o', '.', '-n', 'client.ts'],
    client: `
      import { Api, type ReservationRequest } from './client';
      ${AUTHORIZATION}
      ${BASE}
      const api = new Api({ baseUrl, baseApiParams: { headers } });
      const withToken = (token: string) => ({ headers: { ...headers, 'Slices-Experiment-Token': token } });
      export const listExperiments = async () => (await api.portal.listExperiments()).data.experiments;
      export const experimentToken = async (id: string) =>
        (await api.portal.experimentToken(id, { headers: { ...headers, accept: 'application/jwt' }, format: 'text' })).data;
      export const create = async (body: ReservationRequest, token: string) =>
        (await api.apis.createReservation(body, undefined, withToken(token))).data;
      export const remove = async (id: string, token: string) =>
        (await api.apis.deleteReservation(id, undefined, withToken(token))).status;`,
  },
  orval: {
    packages: ['orval@8.30.0', 'typescript@5'],
    command: ['orval', '--config', 'orval.config.mjs'],
    files: {
      'orval.config.mjs': `export default { api: { input: './openapi.json', output: {
        target: './client.ts', client: 'fetch', baseUrl: { runtime: 'String(process.env.BASE)' } } } };`,
    },
    client: `
      import { createReservation, deleteReservation, experimentToken as getToken, listExperiments as list } from './client';
      import type { ReservationRequest } from './client';
      ${AUTHORIZATION}
      const withToken = (token: string) => ({ headers: { ...headers, 'Slices-Experiment-Token': token } });
      export const listExperiments = async () => {
        const { data, status } = await list({ headers });
        return status === 200 ? data.experiments : [];
      };
      export const experimentToken = async (id: string) =>
        (await getToken(id, { headers: { ...headers, accept: 'application/jwt' } })).data;
      export const create = async (body: ReservationRequest, token: string) => {
        const { data, status } = await createReservation(body, undefined, withToken(token));
        return status === 201 ? data : undefined;
      };
      export const remove = async (id: string, token: string) =>
        (await deleteReservation(id, undefined, withToken(token))).status;`,
  },
};

/** Books the example of the description as it stands there, and releases it. */
const JOB = `
  import { create, experimentToken, listExperiments, remove } from './calls';
  import { paths } from './openapi.json';
  const { examples } = paths['/apis/v1alpha1/connectivity'].post.requestBody.content['application/json'];
  const [experiment] = await listExperiments();
  const token = String(await experimentToken(String(experiment?.id)));
  const made = await create(examples.period.value, token);
  if (!made || typeof made === 'string') throw new Error('nothing was booked');
  if (made.bandwidth !== 1000 || made.site2 !== 'pl-poznan1') throw new Error(JSON.stringify(made));
  const status = await remove(made.id, token);
  if (status !== 204) throw new Error(\`not released: \${status}\`);
  console.log(\`booked \${made.id}, and released it\`);`;

const TSC = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url));
const TYPES = fileURLToPath(new URL('../../node_modules/@types', import.meta.url));
const OPTIONS = {
  compilerOptions: {
    ...{ strict: true, noEmit: true, skipLibCheck: true, resolveJsonModule: true, target: 'es2024' },
    ...{ lib: ['es2024', 'dom', 'dom.iterable'], module: 'preserve', moduleResolution: 'bundler' },
    ...{ types: ['node'], typeRoots: [TYPES] },
  },
  files: ['job.ts'],
};

const socket = createServer();
const baseUrl = `http://127.0.0.1:${await listenOnLoopback(socket)}`;
const server = await createReferenceServer({ baseUrl });
socket.on('request', server.listener);
const description = await (await fetch(`${baseUrl}/api-spec`)).text();
const env = { ...process.env, BASE: baseUrl, TOKEN: await server.signIn('lead') };
const root = temporaryFolder();

/** The whole job of one generator. @throws when a step fails, with what it printed */
async function tryOut({ packages, command, files = {}, client }: Generator, folder: string): Promise<string> {
  mkdirSync(folder, { recursive: true });
  const all = { 'package.json': '{"private":true,"type":"module"}', 'openapi.json': description, ...files };
  const own = { 'calls.ts': client, 'job.ts': JOB, 'tsconfig.json': JSON.stringify(OPTIONS) };
  for (const [name, text] of Object.entries({ ...all, ...own })) writeFileSync(path.join(folder, name), text);
  const run = async (program: string, ...args: readonly string[]): Promise<string> => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    execFile(program, args, { cwd: folder, env, encoding: 'utf8' }, (error, stdout, stderr) =>
      error ? reject(new Error(`${program} ${args.join(' ')}\n${stdout}${stderr}`)) : resolve(stdout),
    );
    return promise;
  };
  await run('npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund', ...packages);
  const [program, ...args] = command;
  await run(path.join('node_modules', '.bin', program), ...args);
  await run(process.execPath, TSC, '-p', '.');
  const bundle = await rolldown({ input: path.join(folder, 'job.ts'), platform: 'node' });
  await bundle.write({ file: path.join(folder, 'job.js'), format: 'esm' });
  return run(process.execPath, 'job.js');
}

try {
  for (const [name, generator] of Object.entries(GENERATORS)) {
    const said = await tryOut(generator, path.join(root, name)).catch((error: unknown) => {
      process.exitCode = 1;
      return `FAILED: ${String(error)}\n`;
    });
    process.stdout.write(`${name}: ${said}`);
  }
} finally {
  socket.close();
  socket.closeAllConnections();
  await server.close();
  await endFile();
}
