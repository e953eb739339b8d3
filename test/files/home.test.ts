import { execFileSync } from 'node:child_process';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { NO_HOME } from '../../src/files/home.ts';
import { privateFolder } from '../../src/files/private.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

/** The home folder of a process with this environment, which starts in another folder. */
function homeWith(HOME: string | undefined): string {
  const source = JSON.stringify(join(import.meta.dirname, '../../src/files/home.ts'));
  const script = `import(${source}).then((home) => process.stdout.write(home.homeFolder()))`;
  const { PATH } = process.env;
  const env = HOME === undefined ? { PATH } : { PATH, HOME };
  return execFileSync(process.execPath, ['-e', script], { cwd: temporaryFolder(), env, encoding: 'utf8' });
}

test.each([
  [undefined, userInfo().homedir],
  ...['', '.', 'home/ada', '~'].map((home): [string, string] => [home, userInfo().homedir]),
  ['/somewhere', '/somewhere'],
])('with HOME=%j the home folder is %s', (home, folder) => {
  expect(homeWith(home)).toBe(folder);
});

test('where there is none, what can’t be kept says which variable to set', () => {
  // Root could make it.
  const path = join(process.getuid?.() === 0 ? `${NO_HOME}\0` : NO_HOME, '.local');
  const failure = expect.objectContaining({
    code: 'state_unusable',
    facts: { why: expect.stringMatching(/\bHOME\b/) },
  });
  expect(() => privateFolder(path)).toThrow(failure);
});
