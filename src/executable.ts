import { enter } from './entry.ts';

/** What a single executable runs, in place of `bin/slices-conn.js`: its Node.js is always new enough. */
void enter(process.argv.slice(2), process.argv0).then((exitCode) => {
  process.exitCode = exitCode;
});
