import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { DOCS_FILES } from '../server/docs/files.ts';
import { drawLand } from './land.ts';
import { MANIFEST, noticesOf, packagesIn, packagesUsed, ROOT } from './packages.ts';
import { bundleProgram } from './program.ts';

/** The library: its dependencies stay the user's own, to share and to patch. */
async function bundleLibrary(dist: string, found: Set<string>): Promise<void> {
  const own = Object.keys(MANIFEST.dependencies ?? {});
  const bundle = await rolldown({
    input: { index: join(ROOT, 'src/index.ts') },
    platform: 'node',
    external: (id) => own.some((name) => id === name || id.startsWith(`${name}/`)),
    plugins: [packagesUsed(found)],
  });
  await bundle.write({ dir: join(dist, 'lib'), format: 'esm', chunkFileNames: '[name]-[hash].js' });
}

/**
 * Makes the entries for browsers and workers: one file each, which imports nothing, since not all of them resolve the names
 * of packages.
 */
async function bundleAlone(dist: string, name: 'clients' | 'verifier', found: Set<string>): Promise<void> {
  const bundle = await rolldown({
    input: { [name]: join(ROOT, `src/${name}.ts`) },
    platform: 'browser',
    plugins: [packagesUsed(found)],
  });
  await bundle.write({
    dir: join(dist, 'lib'),
    format: 'esm',
    minify: { compress: true, mangle: true, codegen: false },
  });
}

/** The page's style: its base, then a file for each view. */
const STYLES = [
  ...['page.css', 'session-bar.css', 'booking-form.css', 'reservation-list.css'],
  ...['map/map.css', 'timeline/timeline.css', 'print.css'],
];

/** The browser's application: a file of code, one of style and the map's land, beside each bundle that serves them (src/README.md, "The page"). */
async function bundlePage(dist: string): Promise<void> {
  const bundle = await rolldown({
    input: { page: join(ROOT, 'src/page/page.tsx') },
    platform: 'browser',
    tsconfig: join(ROOT, 'src/page/tsconfig.json'),
    // The page uses pure functions of contract/ beside schemas: without these words all schemas and valibot came with them.
    treeshake: {
      ...{ propertyReadSideEffects: false, moduleSideEffects: false },
      manualPureFunctions: [
        ...[
          'v',
          'extension',
          'requestInstant',
          'requestSite',
          'requestSites',
          'idOf',
          'countFrom',
          'describedText',
          'describedInstant',
        ],
        ...['fact', 'factAt', 'factSites', 'factCount'],
      ],
    },
  });
  const land = JSON.stringify(drawLand());
  for (const target of ['cli', 'lib']) {
    const dir = join(dist, target, 'ui');
    await bundle.write({ dir, format: 'esm', minify: true });
    const styles = STYLES.map((name) => readFileSync(join(ROOT, 'src/page', name), 'utf8'));
    writeFileSync(join(dir, 'page.css'), withoutComments(styles.join('')));
    writeFileSync(join(dir, 'land.json'), land);
  }
}

/** A style sheet as it is sent: without comments, and without the white space that means nothing. */
function withoutComments(style: string): string {
  return style
    .replaceAll(/\/\*.*?\*\//gs, '')
    .replaceAll(/\s*\n\s*/g, ' ')
    .replaceAll(/\s*([{};,])\s*/g, '$1')
    .replaceAll(';}', '}');
}

/** The interactive page's files, beside each bundle that serves them. */
function copyDocs(dist: string): void {
  const source = dirname(fileURLToPath(import.meta.resolve('swagger-ui-dist/swagger-ui.css')));
  for (const target of ['cli', 'lib']) {
    mkdirSync(join(dist, target, 'api-docs'), { recursive: true });
    for (const name of Object.keys(DOCS_FILES)) {
      const own = resolve(ROOT, 'src/server/docs', name);
      copyFileSync(existsSync(own) ? own : join(source, name), join(dist, target, 'api-docs', name));
    }
  }
}

/** Bundles the program, the library and the page into a folder. What `npm run package` has made there stays. */
export async function bundleInto(dist: string): Promise<void> {
  for (const made of ['cli', 'lib', 'types', 'built'])
    rmSync(join(dist, made), { recursive: true, force: true });
  const found = new Set<string>();
  await bundleProgram(join(dist, 'cli'), found);
  await bundleLibrary(dist, found);
  for (const name of ['clients', 'verifier'] as const) await bundleAlone(dist, name, found);
  await bundlePage(dist);
  copyDocs(dist);
  // For editors, which know the keys of a plan file by it.
  copyFileSync(join(ROOT, 'src/cli/plan/plan.schema.json'), join(dist, 'plan.schema.json'));
  // Also printed, by `slices-conn help licences`.
  const notices = noticesOf(packagesIn(found));
  mkdirSync(join(dist, 'cli/licences'));
  writeFileSync(join(dist, 'cli/licences/notices.txt'), notices);
}
