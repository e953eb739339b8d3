import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { connectOffline } from '../../src/main/offline-connection.ts';
import { Profiles } from '../../src/session/profiles/profiles.ts';
import { failureOf } from '../fixtures/failures.ts';
import { CAN_LIMIT_FILES, underFileLimit } from '../fixtures/file-limit.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { NOW } from '../fixtures/tokens.ts';

/** Connects to the built-in server over a folder, at this clock. */
async function connected(stateFolder: string, now = () => NOW) {
  const profile = await new Profiles('/dev/null/config', {}).resolve('offline');
  const connection = connectOffline(profile, { stateFolder, now });
  const file = join(stateFolder, 'offline', 'reservations.sqlite');
  return { ...connection, file, baseUrl: profile.baseUrl };
}

test('a command that runs for hours gets a new user token before the old one expires', async () => {
  let later = 0;
  const { userToken, close } = await connected(temporaryFolder(), () => Date.now() + later);
  onTestFinished(close);
  const [first, together] = await Promise.all([userToken.get(), userToken.get()]);
  expect(together).toBe(first);
  later = 3_000_000;
  expect(await userToken.get()).toBe(first);
  later = 3_590_000;
  expect(await userToken.get()).not.toBe(first);
});

test.skipIf(!CAN_LIMIT_FILES)(
  'row 43: a disk that fails before a request is a failure with nothing done, not a defect',
  async () => {
    const { send, userToken, close, file, baseUrl } = await connected(temporaryFolder());
    onTestFinished(close);
    // Opens the database, without a request that has to write.
    await send?.({ method: 'GET', url: `${baseUrl}/.well-known/jwks.json`, headers: {} });
    const failure = await underFileLimit(statSync(`${file}-wal`).size, () =>
      failureOf(() => userToken.get()),
    );
    expect(failure).toMatchObject({ code: 'unavailable', facts: { retryable: true } });
    expect(failure.facts.maybeDone).toBeUndefined();
    expect(failure.facts.why).toMatch(/Nothing was changed/);
  },
);

test.each(['reservation', 'ci_rule', 'audit'])(
  'a database of our version without the table %s is named, and can be moved away',
  async (table) => {
    const folder = temporaryFolder();
    const { userToken, close, file } = await connected(folder);
    await userToken.get();
    await close();
    const database = new DatabaseSync(file);
    database.exec(`PRAGMA foreign_keys = OFF; DROP TABLE ${table}`);
    database.close();
    const again = await connected(folder);
    const { code, message, facts } = await failureOf(() => again.userToken.get());
    expect([code, message]).toEqual(['state_unusable', `The file ${file} can't be used.`]);
    expect(facts.why).toContain(`It lacks the table ${table}.`);
    expect(facts.fix).toContain(`mv ${file}`);
  },
);
