import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type CompletionShell, SHELLS, scriptOf } from '../cli/completion/scripts.ts';
import { type Packed, writeArchive, writeDebianPackage } from './archives.ts';
import { billOfMaterials } from './bill-of-materials.ts';
import { manualPage } from './command-reference.ts';
import { fileName, makeExecutables, ownPlatform } from './executables.ts';
import { formula, scoopManifest } from './installers.ts';
import { NODE_PROGRAMS, type Platform } from './node-programs.ts';
import { MANIFEST, packageFacts, packagesIn, ROOT, sha256Of } from './packages.ts';

/**
 * `npm run package` makes what people install, in dist/packages/: the package for npm; an executable for this machine with its
 * archive; packages for Debian, Homebrew and Scoop; a bill of materials; SHA256SUMS. With `--all` it makes those of all
 * platforms, on a Node.js that it fetches from the package registry.
 *
 * A release does it in two steps, since those for macOS are signed between them, on a Mac:
 * `node src/build/package.ts executables --all`, and `node src/build/package.ts archives` for the executables that are there.
 */
const PACKAGES = join(ROOT, 'dist/packages');
const WORK = join(PACKAGES, 'work');
const EXECUTABLES = join(PACKAGES, 'executables');
const BILL = join(EXECUTABLES, 'bill-of-materials.json');
const { version } = MANIFEST;
/** The purpose of the program in a line, for package managers that cut the rest. */
const SUMMARY = 'Book network links between research sites';
const platforms = Object.keys(NODE_PROGRAMS) as Platform[];

/** The folders of completions that each shell reads, by Debian's and Homebrew's habit. */
const COMPLETIONS: Readonly<Record<CompletionShell, string>> = {
  bash: 'bash-completion/completions/slices-conn',
  zsh: 'zsh/vendor-completions/_slices-conn',
  fish: 'fish/vendor_completions.d/slices-conn.fish',
};

const [step = 'all'] = process.argv.slice(2).filter((word) => !word.startsWith('--'));
try {
  if (step !== 'archives') await executables();
  if (step !== 'executables') archives();
} finally {
  rmSync(WORK, { recursive: true, force: true });
}

async function executables(): Promise<void> {
  rmSync(PACKAGES, { recursive: true, force: true });
  const found = new Set<string>();
  await makeExecutables(process.argv.includes('--all') ? platforms : [ownPlatform()], EXECUTABLES, found);
  const bill = billOfMaterials(packageFacts(ROOT), packagesIn(found).map(packageFacts), [process.versions]);
  writeFileSync(BILL, `${JSON.stringify(bill, null, 2)}\n`);
}

function archives(): void {
  mkdirSync(WORK, { recursive: true });
  npmPackage();
  const made = platforms.filter((platform) => existsSync(join(EXECUTABLES, platform)));
  for (const platform of made) {
    const extension = platform.startsWith('win32') ? 'zip' : 'tar.gz';
    const path = join(PACKAGES, `slices-conn-${version}-${platform}.${extension}`);
    writeArchive(path, WORK, archived(platform));
    if (platform.startsWith('linux')) debianPackage(platform);
  }
  cpSync(BILL, join(PACKAGES, `slices-conn-${version}.cdx.json`));
  if (made.length === platforms.length) {
    const facts = { ...MANIFEST, version, summary: SUMMARY, sums: sumsOfFiles() };
    writeFileSync(join(PACKAGES, 'slices-conn.rb'), formula(facts));
    writeFileSync(join(PACKAGES, 'slices-conn.json'), scoopManifest(facts));
  }
  const sums = sumsOfFiles();
  const lines = [...sums].toSorted().map(([name, sum]) => `${sum}  ${name}\n`);
  writeFileSync(join(PACKAGES, 'SHA256SUMS'), lines.join(''));
  const names = [...sums.keys(), 'SHA256SUMS'].toSorted();
  process.stdout.write(names.map((name) => `dist/packages/${name}\n`).join(''));
}

/** The SHA-256 of each file that was made, by its name. */
function sumsOfFiles(): ReadonlyMap<string, string> {
  const files = readdirSync(PACKAGES, { withFileTypes: true }).filter((entry) => entry.isFile());
  const made = files.filter(({ name }) => name !== 'SHA256SUMS');
  return new Map(made.map(({ name }) => [name, sha256Of(join(PACKAGES, name))]));
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
function archived(platform: Platform): Packed[] {
  const program = fileName(platform);
  return [
    { path: program, content: { file: join(EXECUTABLES, platform, program) }, runs: true },
    { path: 'LICENSE', content: { file: join(ROOT, 'LICENSE') } },
    { path: 'THIRD-PARTY-NOTICES.txt', content: { file: join(EXECUTABLES, 'notices.txt') } },
    { path: 'slices-conn.1', content: manualPage(version) },
    ...SHELLS.map((shell) => ({
      path: `completions/${basename(COMPLETIONS[shell])}`,
      content: `${scriptOf(shell)}\n`,
    })),
  ];
}

/** Where Debian has each file of an archive, and the unit of the server. */
function debianPackage(platform: Platform): void {
  const architecture = platform === 'linux-x64' ? 'amd64' : 'arm64';
  const share = 'usr/share';
  const places: Readonly<Record<string, string>> = {
    'slices-conn': 'usr/bin/slices-conn',
    LICENSE: `${share}/doc/slices-conn/copyright`,
    'THIRD-PARTY-NOTICES.txt': `${share}/doc/slices-conn/THIRD-PARTY-NOTICES.txt`,
    'slices-conn.1': `${share}/man/man1/slices-conn.1`,
    ...Object.fromEntries(
      Object.values(COMPLETIONS).map((path) => [`completions/${basename(path)}`, `${share}/${path}`]),
    ),
  };
  const unit = readFileSync(join(ROOT, 'src/packaging/systemd/slices-conn.service'), 'utf8');
  const isMade = writeDebianPackage(
    join(PACKAGES, `slices-conn_${version}_${architecture}.deb`),
    WORK,
    {
      version,
      architecture,
      maintainer: MANIFEST.author,
      summary: SUMMARY,
      description: MANIFEST.description,
      depends: 'libc6 (>= 2.28), libstdc++6, libatomic1',
    },
    [
      ...archived(platform).map((file) => ({ ...file, path: places[file.path] ?? file.path })),
      {
        path: 'usr/lib/systemd/system/slices-conn.service',
        content: unit.replaceAll('/usr/local/bin/', '/usr/bin/'),
      },
    ],
  );
  if (!isMade) process.stderr.write('No package for Debian: dpkg-deb is not installed.\n');
}
