import { describe, expect, test } from 'vitest';
import type { DeviceLogin } from '../../../src/client/identity.ts';
import { Failure } from '../../../src/contract/failure.ts';
import { Secret } from '../../../src/contract/secret.ts';
import type { Connection } from '../../../src/session/login/connection.ts';
import { commandWorld } from '../../fixtures/command-world.ts';
import { NOW } from '../../fixtures/tokens.ts';

/** Logs in at a provider that names this address; `userToken` is what commands use. */
async function logIn(
  device: Partial<DeviceLogin>,
  flags: readonly string[] = [],
  userToken: Partial<Connection['userToken']> = {},
) {
  const opened: string[] = [];
  const accessToken = new Secret('access');
  const offered = { userCode: 'BCDF-GHJK', verificationUri: 'https://login.example.org/device' };
  const connection: Connection = {
    fetch: async () => new Response(null, { status: 404 }),
    userToken: { origin: 'login', where: 'a test', get: async () => accessToken, ...userToken },
    login: {
      path: '/nowhere',
      startLogin: async () => ({
        ...{ ...offered, verificationUriComplete: undefined, expiresAt: NOW + 600_000 },
        wait: async () => ({ accessToken, refreshToken: undefined, expiresAt: undefined }),
        ...device,
      }),
      keep: async () => undefined,
      read: () => ({ accessToken, issuedAt: NOW, loggedInAt: NOW, portalTokens: {} }),
      end: async () => ({}),
    },
    close: async () => undefined,
  };
  const openBrowser = async (address: string): Promise<boolean> => opened.push(address) > 0;
  const { run } = commandWorld(connection, { openBrowser });
  return { ...(await run('login', ...flags)), opened };
}

describe('row 6: the address that the browser opens', () => {
  test.each([
    ['https://login.example.org/device', 'https://login.example.org/device'],
    ['HTTPS://LOGIN.example.org/a b'.replace(' ', '%20'), 'https://login.example.org/a%20b'],
    ['https://login.example.org/"x"?a=\'b\'', 'https://login.example.org/%22x%22?a=%27b%27'],
    ['http://127.0.0.1:4280/auth/device', 'http://127.0.0.1:4280/auth/device'],
  ])('%j is opened, in normal form', async (address, handed) => {
    const { opened, exitCode } = await logIn({ verificationUriComplete: address });
    expect({ opened, exitCode }).toEqual({ opened: [handed], exitCode: 0 });
  });

  test.each([
    ' https://login.example.org/',
    'https://login.example.org/\n',
    'ht\ntps://login.example.org/',
    'https://login.example.org/a b',
    'https://login.example.org/\u0000x',
    'https://login.example.org/\u202egro',
    'https://login.example.org/\u00a0',
    'https://user@login.example.org/',
    'https://user:password@login.example.org/',
    '--help',
    '-https://login.example.org/',
    'javascript:alert(1)',
    'file:///etc/passwd',
    'http://login.example.org/',
    'http://192.0.2.1/device',
    'https://evil.invalid\u001b]0;owned\u0007/\u202egro.elpmaxe',
  ])('%j is shown, escaped, and not opened', async (address) => {
    // Nor does it stand in for one that is missing.
    for (const verificationUriComplete of [address, undefined]) {
      const { opened, exitCode, stderr } = await logIn({ verificationUri: address, verificationUriComplete });
      expect({ opened, exitCode }).toEqual({ opened: [], exitCode: 0 });
      expect(stderr).toContain('BCDF-GHJK');
      expect(stderr).not.toMatch(/[\0\u001b\u0007\u202e]/);
    }
  });

  test('--no-browser opens none', async () => {
    const address = 'https://login.example.org/device';
    const { opened, exitCode, stderr } = await logIn({ verificationUri: address }, ['--no-browser']);
    expect({ opened, exitCode }).toEqual({ opened: [], exitCode: 0 });
    expect(stderr).not.toContain('browser was opened');
  });

  test('row 55: the longest accepted address is opened', async () => {
    const address = `https://login.example.org/${'x'.repeat(2022)}`;
    const { opened, exitCode } = await logIn({ verificationUri: address });
    expect({ length: address.length, opened, exitCode }).toEqual({
      ...{ length: 2048, opened: [address], exitCode: 0 },
    });
  });
});

test('a login succeeds though commands use a program that gives no token', async () => {
  const get = async () => {
    throw new Failure('usage', "The profile's token command needs an experiment.");
  };
  const userToken = { origin: 'command', where: 'give {experiment}', get } as const;
  const { exitCode, stdout, stderr } = await logIn({}, ['--json'], userToken);
  expect(stderr).toContain('commands use give {experiment} instead of this login.');
  expect({ exitCode, tokens: JSON.parse(stdout).tokens }).toMatchObject({
    exitCode: 0,
    tokens: [{ kind: 'user', source: 'login' }],
  });
});
