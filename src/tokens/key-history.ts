import * as v from 'valibot';
import { issuerName } from '../contract/addresses.ts';
import { KeyHistoryDocument, type PastJwk } from '../contract/claims.ts';
import { KEY_HISTORY_PATH } from '../contract/routes.ts';
import type { Send } from '../contract/sending.ts';
import { readCompact } from './compact.ts';
import { fetchKeySet } from './remote-key-set.ts';
import { TokenError } from './token-error.ts';

/** How far replicas and clocks may differ about when a key signed, in seconds. */
const LEEWAY = 60;

/**
 * Finds the key of a token among those that its issuer used in the last two years: its key set has it no longer once its last token
 * has expired. The token is not verified here.
 *
 * @returns undefined where the issuer publishes no history, or has no such key in it
 * @throws TokenError `key_unknown` where the key did not sign at the time of the token, or was retired as leaked by then
 */
export async function keyInHistory(token: string, send: Send): Promise<PastJwk | undefined> {
  const { header, claims } = readCompact(token);
  const url = issuerName(String(claims['iss'])) + KEY_HISTORY_PATH;
  const fetched = await fetchKeySet(url, send).catch(() => undefined);
  const history = v.safeParse(KeyHistoryDocument, fetched?.document);
  const key = history.success ? history.output.keys.find(({ kid }) => kid === header['kid']) : undefined;
  if (!key) return undefined;
  const { nbf, exp = Number.POSITIVE_INFINITY, revoked = Number.POSITIVE_INFINITY } = key;
  const iat = Number(claims['iat']);
  if (!(iat < revoked)) {
    throw new TokenError(
      'key_unknown',
      'The token says that it was signed after its key was retired as leaked.',
    );
  }
  if (iat < nbf - LEEWAY || iat > exp + LEEWAY) {
    throw new TokenError('key_unknown', 'The token says that it was signed when its key did not sign.');
  }
  return key;
}
