import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MANIFEST, ROOT } from './packages.ts';

/** The files and facts that a release checks. */
interface Checkout {
  /** package.json. */
  manifest: { version: string; repository?: { url: string }; homepage?: string; bugs?: { url: string } };
  /** package-lock.json. */
  lock: { version?: string };
  /** In the form of keepachangelog.com. */
  changelog: string;
  /** The differences from the commit, as `git status --porcelain` prints them. */
  changes: string;
}

/**
 * The faults that keep a commit from being released, each with what to do; none where it can be. The release looks first of all,
 * before anything is built: node src/build/release.ts TAG.
 *
 * @param tag of the commit, such as `v1.0.0`
 */
export function releaseFaults(tag: string, { manifest, lock, changelog, changes }: Checkout): string[] {
  const { version, repository, homepage, bugs } = manifest;
  const addresses = Object.entries({ 'repository.url': repository?.url, homepage, 'bugs.url': bugs?.url });
  const missing = addresses.filter(([, address]) => !address || address.includes('repository.invalid'));
  const isNamed = changelog.split('\n').some((line) => line.startsWith(`## [${version}] - 2`));
  const faults: readonly (readonly [isThere: boolean, fault: string])[] = [
    ...missing.map(([name]) => {
      const fault = `package.json has no ${name}: set it to this repository's, such as git+https://github.com/OWNER/NAME.git; provenance needs it.`;
      return [true, fault] as const;
    }),
    [
      tag !== `v${version}`,
      `The tag is ${tag}, and package.json has version ${version}: they must be the same.`,
    ],
    [
      version.includes('-'),
      `package.json has version ${version}: npm would give a pre-release out as the latest.`,
    ],
    [
      lock.version !== version,
      `package-lock.json has version ${lock.version}, and package.json ${version}: npm install sets it.`,
    ],
    [!isNamed, `CHANGELOG.md has no "## [${version}] - DATE": put the day there, in place of "unreleased".`],
    [changes !== '', `The checkout has changes that are not committed:\n${changes.trimEnd()}`],
  ];
  return faults.flatMap(([isThere, fault]) => (isThere ? [fault] : []));
}

if (import.meta.main) {
  const read = (name: string): string => readFileSync(join(ROOT, name), 'utf8');
  const faults = releaseFaults(process.argv[2] ?? '', {
    manifest: MANIFEST,
    lock: JSON.parse(read('package-lock.json')),
    changelog: read('CHANGELOG.md'),
    changes: execFileSync('git', ['status', '--porcelain'], { cwd: ROOT, encoding: 'utf8' }),
  });
  process.stderr.write(faults.map((fault) => `${fault}\n`).join(''));
  process.exitCode = faults.length === 0 ? 0 : 1;
}
