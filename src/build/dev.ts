// `npm run dev`: the program as it is built, serving on data that lasts from one change of the sources to the next. What is typed
// after `--` are flags of serve.
import { join } from 'node:path';
import { bundleInto } from './bundle.ts';
import { ROOT } from './packages.ts';

await bundleInto(join(ROOT, 'dist'));
process.argv.splice(2, 0, 'serve', '--auto-approve', 'lead', '--data', join(ROOT, 'dist/dev'));
const program = join(ROOT, 'bin/slices-conn.js');
await import(program);
