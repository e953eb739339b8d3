import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { DOCS_FILES } from '../server/docs/files.ts';
import { drawLand } from './land.ts';
import { MANIFEST, noticesOf, packagesIn, packagesUsed, ROOT } from './packages.ts';
import { bundleProgram } from './program.ts';

/** build.ts names another folder. */
const DIST = process.env['SLICES_CONN_DIST'] ?? join(ROOT, 'dist');

/** The library: its dependencies stay the user's own, to share and to patch. */
async function bundleLibrary(found: Set<string>): Promise<void> {
  const own = Object.keys(MANIFEST.dependencies ?? {});
  const bundle = await rolldown({
    input: { index: join(ROOT, 'src/index.ts') },
    platform: 'node',
    external: (id) => own.some((name) => id === name || id.startsWith(`${name}/`)),
    plugins: [packagesUsed(found)],
  });
  await bundle.write({ dir: join(DIST, 'lib'), format: 'esm', chunkFileNames: '[name]-[hash].js' });
}

/**
 * Makes the entries for browsers and workers: one file each, which imports nothing, since not all of them resolve the names
 * of packages.
 */
async function bundleAlone(name: 'clients' | 'verifier', found: Set<string>): Promise<void> {
  const bundle = await rolldown({
    input: { [name]: join(ROOT, `src/${name}.ts`) },
    platform: 'browser',
    plugins: [packagesUsed(found)],
  });
  await bundle.write({
    dir: join(DIST, 'lib'),
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
async function bundlePage(): Promise<void> {
  const bundle = await rolldown({
    input: { page: join(ROOT, 'src/page/page.ts') },
    platform: 'browser',
    tsconfig: join(ROOT, 'src/page/tsconfig.json'),
    // The page uses pure functions of contract/ beside schemas: without these words all schemas and valibot came with them.
    treeshake: {
      ...{ propertyReadSideEffects: false, moduleSideEffects: false },
      manualPureFunctions: ['v', 'extension', 'requestInstant', 'requestSite'],
    },
  });
  const land = JSON.stringify(drawLand());
  for (const target of ['cli', 'lib']) {
    const dir = join(DIST, target, 'ui');
    await bundle.write({ dir, format: 'esm', minify: true });
    const styles = STYLES.map((name) => readFileSync(join(ROOT, 'src/page', name), 'utf8'));
    writeFileSync(join(dir, 'page.css'), withoutComments(styles.join('')));
    writeFileSync(join(dir, 'land.json'), land);
  }
}

/** A style sheet without comments and indents, as it is sent. */
function withoutComments(style: string): string {
  return style.replaceAll(/\/\*.*?\*\//gs, '').replaceAll(/\n\s*/g, '\n');
}

/** The interactive page's files, beside each bundle that serves them. */
function copyDocs(): void {
  const source = dirname(fileURLToPath(import.meta.resolve('swagger-ui-dist/swagger-ui.css')));
  for (const target of ['cli', 'lib']) {
    mkdirSync(join(DIST, target, 'api-docs'), { recursive: true });
    for (const name of Object.keys(DOCS_FILES)) {
      const own = resolve(ROOT, 'src/server/docs', name);
      copyFileSync(existsSync(own) ? own : join(source, name), join(DIST, target, 'api-docs', name));
    }
  }
}

// What `npm run package` has made stays.
for (const made of ['cli', 'lib', 'types', 'built'])
  rmSync(join(DIST, made), { recursive: true, force: true });
const found = new Set<string>();
await bundleProgram(join(DIST, 'cli'), found);
await bundleLibrary(found);
for (const name of ['clients', 'verifier'] as const) await bundleAlone(name, found);
await bundlePage();
copyDocs();
// For editors, which know the keys of a plan file by it.
copyFileSync(join(ROOT, 'src/cli/plan/plan.schema.json'), join(DIST, 'plan.schema.json'));
// Also printed, by `slices-conn help licences`.
const notices = noticesOf(packagesIn(found));
mkdirSync(join(DIST, 'cli/licences'));
writeFileSync(join(DIST, 'cli/licences/notices.txt'), notices);
