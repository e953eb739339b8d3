#!/usr/bin/env node
// Plain JavaScript that any Node.js can read: finds a Node.js that is new enough, then hands over.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const NEEDED = [22, 19];
const [major, minor] = process.versions.node.split('.').map(Number);

if (major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])) {
  const { main } = await import('../dist/cli/main.js');
  process.exitCode = await main(process.argv.slice(2));
} else {
  // A checkout brings its own: the `node` package among its devDependencies.
  const own = here('../node_modules/node/bin/node');
  const args = [here('./slices-conn.js'), ...process.argv.slice(2)];
  if (existsSync(own)) {
    const { status, signal } = spawnSync(own, args, { stdio: 'inherit' });
    if (signal) process.kill(process.pid, signal);
    process.exitCode = status ?? 1;
  } else {
    const { version } = JSON.parse(readFileSync(here('../package.json'), 'utf8'));
    process.stderr.write(
      `error: slices-conn ${version} needs Node.js ${NEEDED.join('.')} or newer; this is ${process.versions.node}.\n`,
    );
    process.exitCode = 2;
  }
}
