import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'rolldown';

/** The checkout. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** package.json. */
export { default as MANIFEST } from '../../package.json' with { type: 'json' };

/** Packages of which files are copied, beside those whose code is bundled. */
const COPIED = ['swagger-ui-dist', 'world-atlas'].map((name) => join(ROOT, 'node_modules', name));

/** Gathers the folders of the packages whose code goes into a bundle. */
export function packagesUsed(found: Set<string>): Plugin {
  return {
    name: 'packages-used',
    generateBundle(_options, bundle) {
      const modules = Object.values(bundle).flatMap((made) => (made.type === 'chunk' ? made.moduleIds : []));
      for (const folder of modules.map(packageFolder)) if (folder !== undefined) found.add(folder);
    },
  };
}

/** All packages in a product, in order of their folders. @param bundled those whose code is in it */
export function packagesIn(bundled: ReadonlySet<string>): string[] {
  return [...new Set([...bundled, ...COPIED])].toSorted();
}

/** The SHA-256 of a file, in hexadecimal digits. */
export function sha256Of(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

/** The folder of the package that a module is in, by the module's path as any system writes it. */
export function packageFolder(module: string): string | undefined {
  return /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(module.replace(/^\0/, ''))?.[0];
}

/** The files of a package that must accompany its code: its licence, its notice, and those of what it has bundled. */
const LEGAL = /^(?:licen[cs]e|copying|notice|third-party)|\.licen[cs]e\.txt$/i;

/**
 * The licence texts of packages, which must accompany every copy.
 *
 * @param folders of the packages
 * @throws Error for a package that has no such file, and is under another licence than MIT
 */
export function noticesOf(folders: readonly string[]): string {
  return folders.map(noticeOf).join(RULE);
}

/** The line between two packages' texts. */
export const RULE = `\n${'-'.repeat(78)}\n\n`;

/** The facts in a package's own file; its licence is an SPDX expression. */
type PackageFacts = Record<'name' | 'version' | 'license', string> & { author?: string | { name: string } };

function noticeOf(folder: string): string {
  const { name, version, license, author }: PackageFacts = JSON.parse(
    readFileSync(join(folder, 'package.json'), 'utf8'),
  );
  const files = readdirSync(folder).filter((entry) => LEGAL.test(entry));
  const texts = files.toSorted().map((file) => readFileSync(join(folder, file), 'utf8').trim());
  if (texts.length === 0) {
    if (license !== 'MIT') throw new Error(`${name} has no file with its licence, ${license}`);
    const holder = typeof author === 'string' ? author : author?.name;
    texts.push(MIT.replace('HOLDER', holder ?? `the authors of ${name}`));
  }
  return `${name} ${version}\n\n${[...new Set(texts)].join('\n\n')}\n`;
}

/** The MIT License, for packages that name it and leave its text out. */
const MIT = `MIT License

Copyright (c) HOLDER

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;
