import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../../src/contract/secret.ts';
import { Credentials } from '../../../src/session/login/credentials.ts';
import { Profiles } from '../../../src/session/profiles/profiles.ts';
import { claimedExpiry, claimedIssue } from '../../../src/tokens/claimed.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';
import { claimsOf, makeKey, makeToken, NOW } from '../../fixtures/tokens.ts';

const folder = temporaryFolder();

describe('row 55: a login whose expiry is not a date', () => {
  test.each(['null', '1e306', '1e17', '-5', '"soon"'])('the expiry %s is read as unknown', async (expiry) => {
    const profile = await new Profiles(join(folder, 'config'), {}).resolve('local');
    const alone = <Answer>(_file: string, work: () => Promise<Answer>) => work();
    const credentials = new Credentials(temporaryFolder(), profile, alone);
    const login = { accessToken: new Secret('access'), issuedAt: NOW, loggedInAt: NOW, portalTokens: {} };
    await credentials.change(() => ({ ...login, expiresAt: 1 }));
    const text = readFileSync(credentials.path, 'utf8');
    writeFileSync(credentials.path, text.replace('"expiresAt":1', `"expiresAt":${expiry}`));
    expect(credentials.read()).toMatchObject({ issuedAt: NOW });
    expect(credentials.read()?.expiresAt).toBeUndefined();
  });
});

test.each([1e306, 8_640_000_000_001, -1, '5', null])(
  'row 55: an exp or iat of %j counts as unknown',
  (value) => {
    const token = makeToken(makeKey(), claimsOf('user', { exp: value, iat: value }));
    expect([claimedExpiry(token), claimedIssue(token)]).toEqual([undefined, undefined]);
  },
);
