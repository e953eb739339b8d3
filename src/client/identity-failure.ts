import * as oauth from 'openid-client';
import { Failure, shellWord } from '../contract/failure.ts';
import { errorCode } from '../contract/foreign-errors.ts';
import { isServiceAddress } from '../contract/issuer-address.ts';
import { isObject, readJson } from '../contract/json.ts';

/** The reply that an error of the library is about. */
export function replyOf(error: unknown): Response | undefined {
  const found = causes(error).flatMap((cause) =>
    cause instanceof Error && 'response' in cause ? [cause, cause.response] : [cause],
  );
  return found.find((cause) => cause instanceof Response);
}

/** Whether another attempt may succeed: no reply came, or one with 408, 429 or 5xx. */
export function isTemporary(error: unknown): boolean {
  const reply = replyOf(error);
  if (reply) return reply.status === 429 || reply.status === 408 || reply.status >= 500;
  const code = connectionProblem(error)?.code;
  return code === 'network' || code === 'timeout';
}

/** Why no reply came: our transport's failure, the library's time limit, or the connection's error in another `fetch`; undefined for a mistake of ours. */
function connectionProblem(error: unknown): Failure | undefined {
  // Our transport's failure, which the library may have wrapped in its own errors.
  const own = causes(error).find((cause) => cause instanceof Failure);
  if (own) return own;
  const isTimeout = error instanceof oauth.ClientError && error.code === 'OAUTH_TIMEOUT';
  if (isTimeout)
    return new Failure('timeout', 'The identity provider did not answer in time.', { retryable: true });
  const isConnection = causes(error).some((cause) =>
    /^(?:ECONN|EPIPE|ETIMEDOUT|UND_ERR)/.test(errorCode(cause)),
  );
  if (replyOf(error) || !(error instanceof Error) || !isConnection) return undefined;
  return new Failure('network', "The identity provider can't be reached.", {
    retryable: true,
    why: error.message,
  });
}

/** Why a provider is not available, as its reply says (RFC 6749 §5.2, `error_description`); undefined where that is no such JSON. */
export async function saidBy(error: unknown): Promise<string | undefined> {
  const reply = replyOf(error);
  if (!reply || reply.status < 500 || reply.bodyUsed) return undefined;
  const reading = readJson(await reply.text().catch(() => ''));
  const said = reading.ok && isObject(reading.value) ? reading.value['error_description'] : undefined;
  return typeof said === 'string' && said !== '' ? said : undefined;
}

/** The pause that a reply asks for, in seconds; 0 where it does not. */
export function retryAfter(error: unknown): number {
  const text = replyOf(error)?.headers.get('retry-after') ?? '';
  return /^\d{1,3}$/.test(text) ? Number(text) : 0;
}

/**
 * The failure for an error of the library, of a fetch or of a reply.
 *
 * @param said what the provider said of itself where it is not available; see {@link saidBy}
 */
export function failureOf(error: unknown, authUrl: string, said?: string): Failure {
  if (error instanceof oauth.ResponseBodyError && error.status < 500 && error.status !== 429)
    return refused(error);
  const reply = replyOf(error);
  const httpStatus = reply?.status ?? 0;
  if (httpStatus >= 500 || httpStatus === 429) {
    return unavailable(authUrl, httpStatus, said);
  }
  const problem = connectionProblem(error);
  if (problem) return problem;
  // A mistake in a program is told as one.
  if (httpStatus === 0 && !(error instanceof oauth.ClientError)) throw error;
  const why = httpStatus > 0 ? `Its status is ${httpStatus}.` : String(error);
  // A challenge (RFC 6750 §3), not an OAuth error.
  if (httpStatus === 401) {
    return new Failure('request_rejected', 'The identity provider refused the request.', { why, httpStatus });
  }
  return invalid(why);
}

/** The failure of a provider that can't answer now. @param said why, in its own words */
export function unavailable(authUrl: string, httpStatus: number, said: unknown): Failure {
  return new Failure('unavailable', `The identity provider ${authUrl} is not available at the moment.`, {
    httpStatus,
    retryable: true,
    why: typeof said === 'string' ? said : undefined,
  });
}

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
  return new Failure('request_rejected', 'The identity provider refused the request.', {
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

/** An error, and the chain of its causes, the last of which may be no error. */
function causes(error: unknown): unknown[] {
  return error instanceof Error ? [error, ...causes(error.cause)] : [error];
}
