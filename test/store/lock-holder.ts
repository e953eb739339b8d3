import { underFileLock } from '../../src/store/sqlite/file.ts';

/** A process that takes a lock, says so, and holds it until its stdin ends or it is killed. */
const [file = ''] = process.argv.slice(2);
await underFileLock(file, 10_000, async () => {
  process.stdout.write('held');
  for await (const _ of process.stdin);
  process.stdout.write('letting go');
});
