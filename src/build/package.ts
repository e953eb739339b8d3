import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CompletionShell, SHELLS, scriptOf } from '../cli/completion/scripts.ts';
import { type Packed, writeArchive } from './archives.ts';
import { manualPage } from './command-reference.ts';
import { fileName, makeExecutables, NODE_PROGRAMS, ownPlatform, type Platform } from './executables.ts';
import { MANIFEST, ROOT, sha256Of } from './packages.ts';

/**
 * `npm run package` makes what people install, in dist/packages/: the package for npm; an executable for this machine with its
 * archive; SHA256SUMS. With `--all` it makes those of all platforms, on a Node.js that it fetches from the package registry.
 *
 * A release does it in two steps, since those for macOS are signed between them, on a Mac:
 * `node src/build/package.ts executables --all`, and `node src/build/package.ts archives` for the executables that are there.
 */
const PACKAGES = join(ROOT, 'dist/packages');
const WORK = join(PACKAGES, 'work');
const EXECUTABLES = join(PACKAGES, 'executables');
const { version } = MANIFEST;
const platforms = Object.keys(NODE_PROGRAMS) as Platform[];

/** The file of completions of each shell, by the shell's habit. */
const COMPLETIONS: Readonly<Record<CompletionShell, string>> = {
  bash: 'slices-conn',
  zsh: '_slices-conn',
  fish: 'slices-conn.fish',
};

const [step = 'all'] = process.argv.slice(2).filter((word) => !word.startsWith('--'));
try {
  if (step !== 'archives') await executables();
  if (step !== 'executables') await archives();
} finally {
  rmSync(WORK, { recursive: true, force: true });
}

async function executables(): Promise<void> {
  rmSync(PACKAGES, { recursive: true, force: true });
  await makeExecutables(process.argv.includes('--all') ? platforms : [ownPlatform()], EXECUTABLES);
}

async function archives(): Promise<void> {
  mkdirSync(WORK, { recursive: true });
  npmPackage();
  const manual = await manualPage(version);
  const made = platforms.filter((platform) => existsSync(join(EXECUTABLES, platform)));
  for (const platform of made) {
    const extension = platform.startsWith('win32') ? 'zip' : 'tar.gz';
    const path = join(PACKAGES, `slices-conn-${version}-${platform}.${extension}`);
    writeArchive(path, WORK, archived(platform, manual));
  }
  const files = readdirSync(PACKAGES, { withFileTypes: true }).filter((entry) => entry.isFile());
  const names = files
    .map(({ name }) => name)
    .filter((name) => name !== 'SHA256SUMS')
    .toSorted();
  const lines = names.map((name) => `${sha256Of(join(PACKAGES, name))}  ${name}\n`);
  writeFileSync(join(PACKAGES, 'SHA256SUMS'), lines.join(''));
  names.push('SHA256SUMS');
  process.stdout.write(names.map((name) => `dist/packages/${name}\n`).join(''));
}

/** The package for npm: what `files` names, and a package.json without what only a checkout needs. */
function npmPackage(): void {
  const folder = join(WORK, 'npm');
  const { scripts: _scripts, devDependencies: _dev, allowScripts: _allowed, ...published } = MANIFEST;
  for (const name of MANIFEST.files) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(published, null, 2)}\n`);
  execFileSync('npm', ['pack', '--ignore-scripts', '--pack-destination', PACKAGES], {
    cwd: folder,
    stdio: 'pipe',
    shell: process.platform === 'win32',
  });
}

/** The files of an archive, below its folder. */
function archived(platform: Platform, manual: string): Packed[] {
  const program = fileName(platform);
  return [
    { path: program, content: readFileSync(join(EXECUTABLES, platform, program)), runs: true },
    { path: 'LICENSE', content: readFileSync(join(ROOT, 'LICENSE')) },
    { path: 'THIRD-PARTY-NOTICES.txt', content: readFileSync(join(EXECUTABLES, 'notices.txt')) },
    { path: 'slices-conn.1', content: manual },
    ...SHELLS.map((shell) => ({
      path: `completions/${COMPLETIONS[shell]}`,
      content: `${scriptOf(shell)}\n`,
    })),
  ];
}
