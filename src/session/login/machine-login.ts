import type { DeviceLogin, IssuedTokens } from '../../client/identity.ts';
import { CI_CLIENT_ID } from '../../contract/ci-rules.ts';
import { Failure } from '../../contract/failure.ts';
import { inOneText, type Said, sentence } from '../../contract/said.ts';
import type { Secret } from '../../contract/secret.ts';
import { renewing } from '../../tokens/shared-copy.ts';
import { isAlmostOver } from './credentials.ts';
import { heldKind, heldText } from './given-tokens.ts';
import type { ProviderOptions } from './login-tokens.ts';
import type { TokenSource } from './token-source.ts';

/** A login for a machine (cli/README.md, "Commands"). Nothing of it is stored here. */
export interface MachineLogin {
  /** @throws Failure `not_supported` where the provider does not know the client, or has no device codes */
  start(): Promise<DeviceLogin>;
  /**
   * Refreshes once, to see whether the token stays good: jobs that run side by side share it. A token that is
   * replaced at each use is revoked.
   *
   * @returns the refresh token that the machine keeps, and when it expires, in milliseconds; undefined where the provider does not tell
   * @throws Failure `not_supported`, with exit code 5
   */
  check(tokens: IssuedTokens): Promise<{ refreshToken: Secret; expiresAt: number | undefined }>;
}

/** The identity provider, asked as {@link CI_CLIENT_ID}. */
type MachineOptions = ProviderOptions<'startLogin' | 'refresh' | 'revoke'>;

/** See {@link MachineLogin}. */
export function machineLogin({ profile, identity }: MachineOptions): MachineLogin {
  const unsupported = (why: string): Failure =>
    new Failure('not_supported', `${profile.authUrl} can't give a token that a machine keeps.`, {
      why,
      exitCode: 5,
    });
  /** Ends the login. A token that can't be revoked expires by itself; it was not printed. */
  const end = async (tokens: IssuedTokens): Promise<void> => {
    await identity()
      .then((client) => client.revoke(tokens))
      .catch(() => false);
  };
  return {
    async start() {
      const scopes = new Set(profile.scope.split(' ')).add('offline_access');
      // A job has no business with its person's other logins.
      scopes.delete('sessions');
      try {
        return await (await identity()).startLogin([...scopes].join(' '));
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        if (error.code === 'not_supported') throw error.with({ exitCode: 5 });
        if (error.code !== 'request_rejected') throw error;
        throw unsupported(
          `It refuses the client ${CI_CLIENT_ID}: ${error.facts.why ?? error.message}. Ask its operators to let this client log machines in.`,
        );
      }
    },
    async check(tokens) {
      const { refreshToken } = tokens;
      if (refreshToken === undefined) {
        await end(tokens);
        throw unsupported(`It gave the client ${CI_CLIENT_ID} no refresh token.`);
      }
      const refreshed = await (await identity()).refresh(refreshToken).catch(async (error: unknown) => {
        await end(tokens);
        throw error;
      });
      const { refreshToken: next = refreshToken } = refreshed;
      if (next.reveal() !== refreshToken.reveal()) {
        await end(refreshed);
        throw unsupported(
          `It replaces refresh tokens of the client ${CI_CLIENT_ID} at each use, so a second job could not use the same one. The token was revoked.`,
        );
      }
      return { refreshToken, expiresAt: refreshed.refreshExpiresAt ?? tokens.refreshExpiresAt };
    },
  };
}

/**
 * The user token of a machine: a given refresh token is exchanged for an access token when one is needed, and
 * again when that is almost over. Nothing is stored.
 *
 * @param given where the refresh token comes from
 */
export function exchangedToken(given: TokenSource, { identity, now }: MachineOptions): TokenSource {
  const exchange = async (): Promise<Exchanged> => {
    const refreshToken = await given.get();
    const issuedAt = now();
    try {
      return { ...(await (await identity()).refresh(refreshToken)), issuedAt };
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'not_logged_in') throw error;
      // A refresh token may be any text; a JWT is most likely another token.
      throw notAccepted(given, error, heldKind(refreshToken) ? heldText(refreshToken, now()) : undefined);
    }
  };
  const exchanged = renewing(exchange, (tokens) => !isAlmostOver(tokens, now()));
  return { ...given, isFixed: false, get: async () => (await exchanged()).accessToken };
}

/** The tokens of an exchange, and when that was, in milliseconds. */
type Exchanged = IssuedTokens & { issuedAt: number };

/** @param held what was given as the refresh token, in words, where that tells something */
function notAccepted({ where }: TokenSource, { facts }: Failure, held: Said | undefined): Failure {
  return new Failure('not_logged_in', `The refresh token in ${where} is not accepted.`, {
    why: inOneText(
      sentence`${facts.why ?? ''}. It has expired or was revoked, it is for another client or provider, or the provider replaces such tokens at each use.`,
      held && sentence`${where} holds ${held}`,
    ),
    httpStatus: facts.httpStatus,
    fix: 'slices-conn login --ci',
  });
}
