import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sendFrom } from '../../../src/contract/sending.ts';
import { connectOverNetwork } from '../../../src/session/login/connection.ts';
import type { Variables } from '../../../src/session/profiles/folders.ts';
import { Profiles } from '../../../src/session/profiles/profiles.ts';
import { failureOf } from '../../fixtures/failures.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';

const folder = temporaryFolder();

/** A port without a server: a request that is not refused fails there. */
const BASE = 'https://127.0.0.1:9';

/** The failure of a request with a token, in this environment. */
async function sent(more: Variables) {
  const env: Variables = {
    SLICES_CONN_BASE_URL: BASE,
    SLICES_CONN_PORTAL_URL: `${BASE}/portal`,
    SLICES_CONN_AUTH_URL: `${BASE}/auth`,
    ...more,
  };
  const profiles = new Profiles(join(folder, 'config'), env);
  const connection = connectOverNetwork(await profiles.resolve('local'), {
    stateFolder: join(folder, 'state'),
    cacheFolder: join(folder, 'cache'),
    underLock: (_file, work) => work(),
    env,
    timeout: 5000,
    now: Date.now,
    uptime: () => 0,
    random: () => 0,
    sleep: async () => undefined,
  });
  const request = { method: 'DELETE', url: `${BASE}/a`, headers: { authorization: 'Bearer a' } };
  try {
    return await failureOf(() => sendFrom(connection)(request));
  } finally {
    await connection.close();
  }
}

describe('row 61: NODE_TLS_REJECT_UNAUTHORIZED', () => {
  test('0: the token is not sent', async () => {
    expect(await sent({ NODE_TLS_REJECT_UNAUTHORIZED: '0' })).toMatchObject({
      code: 'usage',
      facts: { fix: 'unset NODE_TLS_REJECT_UNAUTHORIZED' },
    });
  });

  test.each(['1', '', undefined])('%j: the token is sent', async (value) => {
    expect(await sent({ NODE_TLS_REJECT_UNAUTHORIZED: value })).toMatchObject({ code: 'network' });
  });
});
