import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './packages.ts';

/** What a release needs of package.json. */
interface Manifest {
  version: string;
  repository?: { url?: string };
  homepage?: string;
  bugs?: { url?: string };
}

/**
 * What keeps a commit from being released, each with what to do; nothing where it can be. The release looks first of all,
 * before anything is built: node src/build/release.ts TAG.
 *
 * @param tag of the commit, such as `v1.0.0`
 * @param changelog in the form of keepachangelog.com
 */
export function releaseFaults(manifest: Manifest, tag: string, changelog: string): string[] {
  const { version, repository, homepage, bugs } = manifest;
  const faults: string[] = [];
  const addresses = { 'repository.url': repository?.url, homepage, 'bugs.url': bugs?.url };
  for (const [name, address] of Object.entries(addresses)) {
    if (address === undefined || address.includes('repository.invalid')) {
      faults.push(
        `package.json has no ${name}: set it to this repository's, such as git+https://github.com/OWNER/NAME.git; provenance needs it.`,
      );
    }
  }
  if (tag !== `v${version}`) {
    faults.push(`The tag is ${tag}, and package.json has version ${version}: they must be the same.`);
  }
  if (!changelog.split('\n').some((line) => line.startsWith(`## ${version}`))) {
    faults.push(`CHANGELOG.md has no "## ${version}": give what is below "## Unreleased" that title.`);
  }
  return faults;
}

if (import.meta.main) {
  const read = (name: string): string => readFileSync(join(ROOT, name), 'utf8');
  const faults = releaseFaults(JSON.parse(read('package.json')), process.argv[2] ?? '', read('CHANGELOG.md'));
  process.stderr.write(faults.map((fault) => `${fault}\n`).join(''));
  process.exitCode = faults.length === 0 ? 0 : 1;
}
