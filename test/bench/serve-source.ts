import { enter } from '../../src/entry.ts';

/** The command line from its source, where functions have the names that they were given. */
process.exitCode = await enter(process.argv.slice(2));
