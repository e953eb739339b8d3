import { join } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';
import { packagesUsed, ROOT } from './packages.ts';

/** The packages that stay outside of the program as npm installs it, and of a single executable. */
const OUTSIDE = {
  // The first uses the names of its classes as data, which a bundle would change; the second looks for its native
  // twin, and is loaded by `serve --database` only.
  installed: ['oidc-provider', 'pg'],
  // pg does without them.
  embedded: ['pg-native', 'pg-cloudflare'],
};

/**
 * Bundles the command line: everything in it, split so that a command loads only what it needs. It is CommonJS, and
 * `entry.cjs` starts it.
 *
 * @param dir where its files land
 * @param found gathers the folders of the packages whose code is in it
 * @param kind `embedded` for a single executable: all is in `entry.cjs`
 */
export async function bundleProgram(
  dir: string,
  found: Set<string>,
  kind: 'installed' | 'embedded' = 'installed',
): Promise<void> {
  const isEmbedded = kind === 'embedded';
  const program = await rolldown({
    input: { entry: join(ROOT, 'src/main/entry.ts') },
    platform: 'node',
    external: OUTSIDE[kind],
    // What is imported later and is in a file that every command loads comes with it.
    checks: { eval: false, ineffectiveDynamicImport: false },
    plugins: [standIns, packagesUsed(found)],
  });
  await program.write({
    dir,
    format: 'cjs',
    dynamicImportInCjs: false,
    comments: { legal: true, annotation: false, jsdoc: false },
    // With it, oidc-provider finds the names of its classes.
    keepNames: isEmbedded,
    minify: { compress: true, mangle: isEmbedded ? { keepNames: true } : true, codegen: false },
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name]-[hash].cjs',
    // A file costs about half a millisecond to find and read, whatever its size. So one file holds what every command loads.
    codeSplitting: !isEmbedded && {
      groups: [
        // Loaded before the others, so that their compiled code is found.
        { name: 'compiled', test: /src[\\/]main[\\/]compiled\.ts$/, priority: 3 },
        { name: 'start', test: /src[\\/]main[\\/]main\.ts$/, priority: 2 },
        {
          name: 'session',
          test: /src[\\/](?:session[\\/]session|session[\\/]profiles[\\/]profiles|cli[\\/]reservation[\\/]reserve|store[\\/]sqlite[\\/]database)\.ts$|[\\/]chalk[\\/]source[\\/]index\.js$/,
          priority: 1,
        },
        { name: 'network', test: /src[\\/]session[\\/]login[\\/]connection\.ts$/ },
      ],
    },
  });
}

const IN_UNDICI = /[\\/]undici[\\/]lib[\\/](?!web[\\/])/;

/** Modules that replace others, which take long to load and whose work this program does not need. Only imports by `importer` are replaced. */
const STAND_INS: readonly [source: RegExp, importer: RegExp, code: string][] = [
  // For sub-commands that are programs of their own: this program has none.
  [/^node:child_process$/, /[\\/]commander[\\/]/, 'export default {};'],
  // Of undici, what the transport uses: its index loads a `fetch`, web sockets, caches and mocks too.
  [
    /^undici$/,
    /[\\/]src[\\/]client[\\/]transport\.ts$/,
    `import Agent from 'undici/lib/dispatcher/agent.js';
      import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
      import EnvHttpProxyAgent from 'undici/lib/dispatcher/env-http-proxy-agent.js';
      import connect from 'undici/lib/api/api-connect.js';
      import request from 'undici/lib/api/api-request.js';
      import retry from 'undici/lib/interceptor/retry.js';
      Object.assign(Dispatcher.prototype, { connect, request });
      const interceptors = { retry };
      export { Agent, EnvHttpProxyAgent, interceptors };`,
  ],
  // Bodies are text or bytes.
  [/[\\/]web[\\/](?:fetch|webidl)\b/, IN_UNDICI, 'module.exports = {};'],
  // Node's default, and the class of a body that is not sent here.
  [/^node:http$/, IN_UNDICI, 'module.exports = { maxHeaderSize: 16_384, IncomingMessage: class {} };'],
  // The transport speaks HTTP/1.1.
  [/^node:http2$/, IN_UNDICI, 'module.exports = { constants: {} };'],
];

/** Lets a program start sooner: puts {@link STAND_INS} into its bundle. */
const standIns: Plugin = {
  name: 'stand-ins',
  resolveId(source, importer = '') {
    const index = STAND_INS.findIndex(([from, by]) => from.test(source) && by.test(importer));
    if (index >= 0) return `\0stand-in-${index}`;
    return importer.startsWith('\0stand-in-') ? join(ROOT, 'node_modules', source) : null;
  },
  load(id) {
    const [, index] = /^\0stand-in-(\d+)$/.exec(id) ?? [];
    return index === undefined ? null : (STAND_INS[Number(index)]?.[2] ?? null);
  },
};
