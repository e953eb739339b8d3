import * as oauth from 'openid-client';
import { isServiceAddress } from '../contract/addresses.ts';
import { Failure, shellWord } from '../contract/failure.ts';
import type { Reply } from './reply-failure.ts';

/** The failure for an error of the library: of a request, of a reply, or of the provider. @throws a mistake in a program as it is */
export function failureOf(error: unknown): Failure {
  if (error instanceof oauth.ResponseBodyError) return refused(error);
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof Failure) return cause;
  if (!(error instanceof oauth.ClientError)) throw error;
  return invalid(String(error));
}

/** A provider that can't answer now: 408, 429 and 5xx. */
export class ProviderAway extends Failure {
  /** The pause that it asks for, in seconds; 0 where it does not. */
  readonly pause: number;

  /** @param said why, in its own words */
  constructor(authUrl: string, { status, headers }: Reply, said: unknown) {
    super('unavailable', `The identity provider ${authUrl} is not available at the moment.`, {
      httpStatus: status,
      retryable: true,
      why: typeof said === 'string' && said !== '' ? said : undefined,
    });
    const asked = headers.get('retry-after') ?? '';
    this.pause = /^\d{1,3}$/.test(asked) ? Number(asked) : 0;
  }
}

/** Whether the provider can't answer now: 408, 429 or 5xx. */
export function isAway({ status }: Reply): boolean {
  return status >= 500 || status === 429 || status === 408;
}

/** The message for a request that the provider refuses. */
export const REFUSED = 'The identity provider refused the request.';

/** What providers call it when a person denies the login, and when the code is over: RFC 8628 §3.5, Azure, OpenAM, GitHub. */
const DENIED = ['access_denied', 'authorization_declined'];
const OVER = ['expired_token', 'code_expired', 'bad_verification_code', 'incorrect_device_code'];

/** A refusal of the provider (RFC 6749 §5.2, RFC 8628 §3.5), as a failure. */
export function refused({ error, error_description, status }: oauth.ResponseBodyError): Failure {
  const why = error_description === undefined ? error : `${error}: ${error_description}`;
  if (DENIED.includes(error)) {
    return new Failure('login_denied', 'The login was denied.', {
      httpStatus: status,
      fix: 'slices-conn login',
    });
  }
  if (OVER.includes(error)) return codeExpired();
  if (error === 'invalid_grant') {
    return new Failure('not_logged_in', 'The session is over.', {
      why,
      httpStatus: status,
      fix: 'slices-conn login',
    });
  }
  const isForbidden = error === 'unauthorized_client' || error === 'unsupported_grant_type';
  return new Failure('request_rejected', REFUSED, {
    why: isForbidden ? `${why}. This client may not log in by a device code there. ${OTHER_WAYS}` : why,
    httpStatus: status,
    ...(isForbidden ? { fix: HELP_ON_TOKENS } : {}),
  });
}

/** How to get along without a device login. */
const OTHER_WAYS =
  'Without it, give a user token in SLICES_CONN_USER_TOKEN, or set userTokenCommand in the profile to a command that prints one.';
/** Says how a token is given in the environment. */
const HELP_ON_TOKENS = 'slices-conn help environment';

/** The failure of a login at a provider that offers no device login. @param missing what its metadata lacks */
export function noLogin(authUrl: string, missing: string): Failure {
  return new Failure('not_supported', `The identity provider ${authUrl} offers no device login.`, {
    why: `Its metadata has no ${missing}. ${OTHER_WAYS}`,
    // As for other metadata that is not what it should be.
    exitCode: 9,
    fix: HELP_ON_TOKENS,
  });
}

/**
 * The failure of metadata that names another issuer than the profile. The user may accept it, in the profile only.
 *
 * @param command begins the next step: the command up to the value to set
 */
export function otherIssuer(found: string, due: string, command: string): Failure {
  const failure = invalid(
    `It calls itself ${JSON.stringify(found)}; the profile expects ${JSON.stringify(due)}.`,
  );
  if (!isServiceAddress(found)) return failure;
  return failure.with({ fix: command + shellWord(`issuer=${found}`) });
}

/** The failure of a code that expired before a person entered it. */
export function codeExpired(): Failure {
  return new Failure('code_expired', 'The code is not valid any more.', {
    why: 'It expired before it was entered, or it was used already.',
    fix: 'slices-conn login',
  });
}

/** The failure of an answer that can't be used. */
export function invalid(why: string): Failure {
  return new Failure('reply_invalid', "The identity provider's answer is not valid.", {
    why,
  });
}
