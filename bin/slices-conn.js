#!/usr/bin/env node
// Plain JavaScript that any Node.js can read: checks that it is new enough, then hands over. It is CommonJS, as
// package.json beside it says: Node.js 22 takes a sixth longer to start with a module.
const NEEDED = '22.19';
const [major, minor] = process.versions.node.split('.').map(Number);
// The first releases of 23 have no SQLite without a flag.
const isNewEnough = (major === 22 && minor >= 19) || (major === 23 && minor >= 4) || major > 23;

/** The name of a process that this launcher has started. */
const LAUNCHED = 'slices-conn';
const args = process.argv.slice(2);
// The official client asks every program of its kind for these: any Node.js can answer.
const isAsked = args.length === 1 && (args[0] === '--version' || args[0] === '--cli-manifest');

if (globalThis.Deno !== undefined) {
  process.stderr.write(
    `error: slices-conn does not run on Deno. Run it with Node.js ${NEEDED} or newer; Deno can import slices-conn/verifier.\n`,
  );
  process.exitCode = 2;
} else if (isAsked || isNewEnough) {
  if (process.argv0 === LAUNCHED && process.channel) endWithLauncher();
  const { enter } = require('../dist/cli/entry.cjs');
  enter(args).then((exitCode) => {
    process.exitCode = exitCode;
  });
} else {
  runWithOwnNode();
}

/** When this launcher is killed, the process that does the work is killed too. */
function endWithLauncher() {
  process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
  process.channel.unref();
}

/** A checkout brings its own Node.js: the `node` package among its devDependencies. */
function runWithOwnNode() {
  const { spawn } = require('node:child_process');
  const { existsSync } = require('node:fs');
  const { constants } = require('node:os');
  const { join } = require('node:path');
  const name = process.platform === 'win32' ? 'node.exe' : 'node';
  const own = join(__dirname, '../node_modules/node/bin', name);
  if (!existsSync(own)) {
    process.stderr.write(
      `error: slices-conn needs Node.js ${NEEDED} or newer; this is ${process.versions.node}.\n`,
    );
    process.exitCode = 2;
    return;
  }
  const args = [__filename, ...process.argv.slice(2)];
  const child = spawn(own, args, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'], argv0: LAUNCHED });
  // What stops this process is meant for the one that does the work, which then ends both.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 128 + constants.signals[signal];
  });
}
