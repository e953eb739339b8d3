import { execFileSync } from 'node:child_process';
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
import { checked, fetchNode, NODE_PROGRAMS, type Platform } from './node-programs.ts';
import { noticesOf, packagesIn, ROOT, RULE } from './packages.ts';
import { bundleProgram } from './program.ts';

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
    for (const name of ['api-docs', 'ui']) copyFolder(name, work);
    mkdirSync(join(work, 'licences'));
    writeFileSync(
      join(work, NOTICES),
      `${noticesOf(packagesIn(found))}${RULE}Node.js\n\n${nodeLicence(work)}`,
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

/** The files that the program reads when it runs, as `npm run build` has made them. */
function copyFolder(name: string, work: string): void {
  const from = join(ROOT, 'dist/cli', name);
  mkdirSync(join(work, name), { recursive: true });
  for (const file of globSync('*', { cwd: from })) copyFileSync(join(from, file), join(work, name, file));
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

/** The licence of Node.js and of what is inside it: as installed, else from the registry. */
function nodeLicence(work: string): string {
  const [installed] = globSync('node_modules/node/node_modules/*/LICENSE', { cwd: ROOT });
  if (installed !== undefined) return readFileSync(join(ROOT, installed), 'utf8');
  return readFileSync(join(fetchNode('linux-x64', work), '../../LICENSE'), 'utf8');
}
