import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'rolldown';

/** The checkout. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Packages of which files are copied, beside those whose code is bundled. */
const COPIED = ['swagger-ui-dist', 'world-atlas'].map((name) => join(ROOT, 'node_modules', name));

/** What a package says of itself. */
export interface PackageFacts {
  name: string;
  version: string;
  /** An SPDX expression. */
  license: string;
}

/** Gathers the folders of the packages whose code goes into a bundle. */
export function packagesUsed(found: Set<string>): Plugin {
  return {
    name: 'packages-used',
    generateBundle(_options, bundle) {
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== 'chunk') continue;
        for (const id of chunk.moduleIds) {
          const folder = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id.replace(/^\0/, ''))?.[0];
          if (folder) found.add(folder);
        }
      }
    },
  };
}

/**
 * Removes child_process, which commander loads for sub-commands that are programs of their own. This program has no such
 * sub-command, and loading it would add a tenth of a bare Node's start-up time to every start.
 */
export const withoutChildProcess: Plugin = {
  name: 'without-child-process',
  resolveId: (source, importer) =>
    source === 'node:child_process' && importer?.includes('/commander/') ? '\0no-child-process' : null,
  load: (id) => (id === '\0no-child-process' ? 'export default {};' : null),
};

/** What a package's own file says. @param folder of the package */
export function packageFacts(folder: string): PackageFacts {
  const { name, version, license }: PackageFacts = JSON.parse(
    readFileSync(join(folder, 'package.json'), 'utf8'),
  );
  return { name, version, license };
}

/** All packages in a product, in order of their folders. @param bundled those whose code is in it */
export function packagesIn(bundled: ReadonlySet<string>): string[] {
  return [...new Set([...bundled, ...COPIED])].toSorted();
}

/** The licence texts of packages, which must accompany every copy. @param folders of the packages */
export function noticesOf(folders: readonly string[]): string {
  const notices = folders.map((folder) => {
    const { name, version, license } = packageFacts(folder);
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file ? readFileSync(join(folder, file), 'utf8').trim() : `License: ${license}`;
    return `${name} ${version}\n\n${text}\n`;
  });
  return notices.join(`\n${'-'.repeat(78)}\n\n`);
}
