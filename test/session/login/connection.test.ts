import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Outgoing, sendFrom } from '../../../src/contract/sending.ts';
import { connectOverNetwork, type NetworkConnectionOptions } from '../../../src/session/login/connection.ts';
import type { Variables } from '../../../src/session/profiles/folders.ts';
import { type Profile, Profiles } from '../../../src/session/profiles/profiles.ts';
import { failureOf } from '../../fixtures/failures.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';

const folder = temporaryFolder();

/** A port without a server: a request that is not refused fails there. */
const BASE = 'https://127.0.0.1:9';
const TO_SERVICE = { method: 'DELETE', url: `${BASE}/a`, headers: { authorization: 'Bearer a' } };

/** A connection in this environment. */
async function connected(
  more: Variables,
  own: Partial<Profile> = {},
  named: Pick<NetworkConnectionOptions, 'experiment' | 'project'> = {},
) {
  const env: Variables = {
    SLICES_CONN_BASE_URL: BASE,
    SLICES_CONN_PORTAL_URL: `${BASE}/portal`,
    SLICES_CONN_AUTH_URL: `${BASE}/auth`,
    ...more,
  };
  const profiles = new Profiles(join(folder, 'config'), env);
  const profile = { ...(await profiles.resolve('local')), ...own };
  return connectOverNetwork(profile, {
    ...named,
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
}

/** The failure of a request in this environment: with a token, to the service. */
async function sent(more: Variables, request: Outgoing = TO_SERVICE) {
  const connection = await connected(more);
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

describe('nothing listens', () => {
  test('at a port of the profile on this machine, which may be wrong: the profile is to be looked at', async () => {
    const base = 'http://127.0.0.1:9';
    const env = { SLICES_CONN_BASE_URL: base };
    expect(await sent(env, { ...TO_SERVICE, url: `${base}/a` })).toMatchObject({
      code: 'network',
      facts: { fix: expect.stringMatching(/^slices-conn profile show /) },
    });
  });

  test('at another address, as of --jwks: the profile and its server have nothing to do with it', async () => {
    const { facts } = await sent({}, { method: 'GET', url: 'http://127.0.0.1:9/keys', headers: {} });
    expect([facts.fix, facts.why]).toEqual([undefined, expect.not.stringContaining('server')]);
  });
});

describe('the experiment and the project of a userTokenCommand', () => {
  const userTokenCommand = ['echo', '{experiment}/{project}'];
  const variables = { SLICES_CONN_EXPERIMENT: 'variable', SLICES_CONN_PROJECT: 'variable' };
  test.each([
    [{ experiment: 'flag', project: 'flag' }, 'flag/flag'],
    [{ project: 'flag' }, 'variable/flag'],
    [{}, 'variable/variable'],
  ])('a flag is before the environment: %j', async (named, given) => {
    const connection = await connected(variables, { userTokenCommand }, named);
    expect((await connection.userToken.get()).reveal()).toBe(given);
    await connection.close();
  });
});
