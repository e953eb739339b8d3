// `npm run build`: the package as it is installed. npx runs it before each command of a checkout, so where no source has changed
// it does nothing, and otherwise it builds beside what is there, which other commands may be starting from.
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { bundleInto } from './bundle.ts';
import { ROOT } from './packages.ts';

const DIST = join(ROOT, 'dist');
/** What dist was built from: the files, when they were changed, and their sizes. */
const BUILT = join(DIST, 'built');
const sources = [
  'package-lock.json',
  ...readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).map((name) => join('src', name)),
];
const state = sources
  .map((name) => [name, statSync(join(ROOT, name))] as const)
  .map(([name, { mtimeMs, size }]) => `${name} ${mtimeMs} ${size}\n`)
  .join('');

if (!existsSync(BUILT) || readFileSync(BUILT, 'utf8') !== state) {
  const beside = join(DIST, `new-${process.pid}`);
  mkdirSync(join(beside, 'old'), { recursive: true });
  try {
    await bundleInto(beside);
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const types = ['-p', join(ROOT, 'src/build/tsconfig.types.json'), '--outDir', join(beside, 'types')];
    execFileSync(process.execPath, [tsc, ...types], { stdio: 'inherit' });
    for (const made of ['cli', 'lib', 'types', 'plan.schema.json']) {
      if (existsSync(join(DIST, made))) renameSync(join(DIST, made), join(beside, 'old', made));
      renameSync(join(beside, made), join(DIST, made));
    }
    writeFileSync(BUILT, state);
  } finally {
    rmSync(beside, { recursive: true, force: true });
  }
}
