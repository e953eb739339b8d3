import { describe, expect, test } from 'vitest';
import type { IdentityClient, IssuedTokens } from '../../../src/client/identity.ts';
import { Failure } from '../../../src/contract/failure.ts';
import { Secret } from '../../../src/contract/secret.ts';
import { exchangedToken, machineLogin } from '../../../src/session/login/machine-login.ts';
import { Profiles } from '../../../src/session/profiles/profiles.ts';
import { failureOf } from '../../fixtures/failures.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';
import { claimsOf, makeKey, makeToken, NOW } from '../../fixtures/tokens.ts';

const folder = temporaryFolder();
const profile = await new Profiles(folder, {}).resolve('local');

const HOUR = 3_600_000;

function tokens(
  refreshToken: string | undefined,
  accessToken = 'access',
  expiresAt = NOW + HOUR,
): IssuedTokens {
  return {
    accessToken: new Secret(accessToken),
    refreshToken: refreshToken === undefined ? undefined : new Secret(refreshToken),
    expiresAt,
  };
}

/** A provider that answers refreshes like this, and what it was asked. */
function provider(answer: () => Promise<IssuedTokens> | IssuedTokens, start?: () => Promise<never>) {
  const asked: string[] = [];
  const identity: Omit<IdentityClient, 'exchange'> = {
    startLogin: async (scope) => {
      asked.push(`login ${scope}`);
      if (start) return start();
      throw new RangeError('no login is expected');
    },
    refresh: async (token) => {
      asked.push(`refresh ${token.reveal()}`);
      return answer();
    },
    revoke: async ({ refreshToken, accessToken }) => {
      asked.push(`revoke ${(refreshToken ?? accessToken).reveal()}`);
      return true;
    },
  };
  return { asked, options: { profile, identity: async () => identity, now: () => NOW } };
}

describe('the check of a machine’s token', () => {
  test.each([['kept'], [undefined]])('accepts it where a refresh answers with %j', async (next) => {
    const { asked, options } = provider(() => ({ ...tokens(next), refreshExpiresAt: NOW + 90 * 24 * HOUR }));
    const { refreshToken, expiresAt } = await machineLogin(options).check(tokens('kept'));
    expect([refreshToken.reveal(), expiresAt]).toEqual(['kept', NOW + 90 * 24 * HOUR]);
    expect(asked).toEqual(['refresh kept']);
  });

  test('revokes a token that is replaced at each use, and ends with 5', async () => {
    const { asked, options } = provider(() => tokens('second'));
    const { code, message, facts } = await failureOf(() => machineLogin(options).check(tokens('first')));
    expect([code, facts.exitCode]).toEqual(['not_supported', 5]);
    expect(`${message} ${facts.why}`).not.toMatch(/first|second (?!job)/);
    expect(asked).toEqual(['refresh first', 'revoke second']);
  });

  test('ends a login without a refresh token, and ends with 5', async () => {
    const { asked, options } = provider(() => tokens(undefined));
    const { code, facts } = await failureOf(() => machineLogin(options).check(tokens(undefined)));
    expect([code, facts.exitCode]).toEqual(['not_supported', 5]);
    expect(asked).toEqual(['revoke access']);
  });

  test('leaves no token behind when the refresh fails', async () => {
    const { asked, options } = provider(() => Promise.reject(new Failure('network', 'away')));
    expect((await failureOf(() => machineLogin(options).check(tokens('first')))).code).toBe('network');
    expect(asked).toEqual(['refresh first', 'revoke first']);
  });
});

test('a provider that does not know the client for machines: 5', async () => {
  const unknown = new Failure('request_rejected', 'refused', { why: 'invalid_client: unknown' });
  const { asked, options } = provider(
    () => tokens('a'),
    () => Promise.reject(unknown),
  );
  const { code, facts } = await failureOf(() => machineLogin(options).start());
  expect([code, facts.exitCode]).toEqual(['not_supported', 5]);
  expect(facts.why).toBe(
    'It refuses the client slices-conn-ci: invalid_client: unknown. Ask its operators to let this client log machines in.',
  );
  expect(asked).toEqual(['login openid offline_access userinfo projects']);
});

describe('an exchanged token', () => {
  const given = {
    origin: 'environment',
    where: 'SLICES_CONN_REFRESH_TOKEN',
    get: async () => new Secret('kept'),
  } as const;

  test('is exchanged once for all that ask, and is not fixed as the refresh token is', async () => {
    const { asked, options } = provider(() => tokens(undefined));
    const { get, isFixed } = exchangedToken({ ...given, isFixed: true }, options);
    await Promise.all([get(), get()]);
    expect([isFixed, asked]).toEqual([false, ['refresh kept']]);
  });

  test('says where a refresh token is from that is not accepted, and never shows it', async () => {
    const over = new Failure('not_logged_in', 'The session is over.', {
      why: 'invalid_grant',
      httpStatus: 400,
    });
    const { options } = provider(() => Promise.reject(over));
    const { code, message, facts } = await failureOf(exchangedToken(given, options).get);
    expect([code, facts.fix]).toEqual(['not_logged_in', 'slices-conn login --ci']);
    expect(message).toBe('The refresh token in SLICES_CONN_REFRESH_TOKEN is not accepted.');
    expect(`${message} ${facts.why}`).not.toContain('kept');
    // It need not be one.
    expect(String(facts.why)).not.toContain('JWT');
    const jwt = new Secret(makeToken(makeKey('ES256'), claimsOf('user')));
    const other = await failureOf(exchangedToken({ ...given, get: async () => jwt }, options).get);
    expect(String(other.facts.why)).toContain('SLICES_CONN_REFRESH_TOKEN holds a user token (a JWT)');
  });
});
