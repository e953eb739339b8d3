import { chmodSync, chownSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { backUp } from '../../src/store/sqlite/backup.ts';
import { SqliteDatabase } from '../../src/store/sqlite/database.ts';
import { underFileLock } from '../../src/store/sqlite/file.ts';
import { SERVER_FORMAT } from '../../src/store/sqlite/format.ts';
import { failureOf } from '../fixtures/failures.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

let folder = '';
let file = '';
beforeEach(async () => {
  folder = temporaryFolder();
  file = join(folder, 'reservations.sqlite');
  await (await SqliteDatabase.open(file, SERVER_FORMAT)).close();
});

const OPENINGS: readonly [string, () => unknown][] = [
  ['written to', async () => (await SqliteDatabase.open(file, SERVER_FORMAT)).close()],
  ['read', async () => SqliteDatabase.openToRead(file, SERVER_FORMAT).close()],
  ['backed up', () => backUp(file, join(folder, 'copy'))],
  ['locked', () => underFileLock(file, 1000, async () => undefined)],
];

const PLANTED: [string, (path: string) => void][] = [
  ['that others can write to', (path) => chmodSync(path, 0o622)],
  [
    'that is a symbolic link',
    (path) => {
      rmSync(path);
      writeFileSync(join(folder, 'elsewhere'), '', { mode: 0o600 });
      symlinkSync(join(folder, 'elsewhere'), path);
    },
  ],
];
// Only root can give a file away.
if (process.getuid?.() === 0) PLANTED.push(['of someone else’s', (path) => chownSync(path, 12_345, 12_345)]);

describe.each(OPENINGS)('row 51: before a database is %s', (_, open) => {
  test.each(
    ['', '-wal', '-shm', '-journal'].flatMap((end) => PLANTED.map(([what, plant]) => ({ end, what, plant }))),
  )('a file with the end "$end" $what is refused', async ({ end, plant }) => {
    const path = `${file}${end}`;
    if (end !== '') writeFileSync(path, '', { mode: 0o600 });
    plant(path);
    const { mode, uid } = statSync(path);
    const failure = await failureOf(open);
    expect(failure.code).toBe('state_unusable');
    expect(failure.message).toContain(`${path} `);
    expect(statSync(path)).toMatchObject({ mode, uid });
  });

  test('what others could only read is closed to them', async () => {
    chmodSync(file, 0o644);
    await open();
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});
