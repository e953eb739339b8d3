import { calculateJwkThumbprint } from 'jose';
import { differenceFrom } from '../../client/proof.ts';
import { isProtected, issuerName, UNPROTECTED } from '../../contract/addresses.ts';
import { formatBandwidth } from '../../contract/amounts.ts';
import type { ConnectivityClaims, KeySetDocument } from '../../contract/claims.ts';
import { Failure, failureOrThrow, ownCommand } from '../../contract/failure.ts';
import { idKind, RESERVATION_NAME } from '../../contract/fields.ts';
import type { OptionsOf } from '../../contract/flags.ts';
import { formatInstant, parseInstant } from '../../contract/instants.ts';
import { isObject, readJson } from '../../contract/json.ts';
import { asRequest, periodOf } from '../../contract/reservation-request.ts';
import { inOneText, instant, inTimes, type Said, sentence } from '../../contract/said.ts';
import { OFFLINE_URL } from '../../session/profiles/profile-keys.ts';
import type { Session } from '../../session/session.ts';
import { claimedClaims, claimedIssue } from '../../tokens/claimed.ts';
import { keyInHistory } from '../../tokens/key-history.ts';
import { type KeySet, localKeySet, readKeySet } from '../../tokens/key-set.ts';
import { remoteKeySet } from '../../tokens/remote-key-set.ts';
import { TokenError } from '../../tokens/token-error.ts';
import type { VerifiedToken } from '../../tokens/verify.ts';
import { linkName } from '../../words/links.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context } from '../context.ts';
import { EXIT_CODE_OF } from '../exit-codes.ts';
import { reservationCard } from '../print/cards.ts';
import { type CardLine, type Printer, valueText } from '../print/output.ts';
import { formatDistance, shortTimes, type TimeContext } from '../times.ts';
import { checkedToken, isRejected, keyFileOf, readTokenFile } from '../tokens.ts';
import { sessionForTokens, verifySaved } from './saved-token.ts';

/** `slices-conn verify [FILE…|-] [--jwks FILE|URL] [--issuer URL] [--ended] [--key THUMBPRINT]`. */
export const command = {
  about:
    "Verifies a token: its signature, its issuer, its times and what it claims. Without --jwks or --issuer the issuer must be one of the profile's own services. Exits with 9 for anything that does not verify, and for a reservation that has ended or was deleted or replaced, as its service says, which is asked unless --offline. Of several tokens it prints a row each, and exits with 10 where some hold, or they fail in different ways.",
  args: { '[file...]': 'the tokens, one in a file; - or nothing for standard input, one a line' },
  options: {
    jwks: { flags: '--jwks <file|url>', help: 'the key set to verify with' },
    issuer: {
      flags: '--issuer <url>',
      help: 'the only issuer to accept; its keys are fetched unless --jwks gives them',
    },
    ended: { flags: '--ended', help: 'accept a reservation that has ended' },
    key: {
      flags: '--key <thumbprint>',
      help: 'the only key to accept (RFC 7638), from the file beside the token or --jwks; asks nobody',
    },
  },
  examples: [
    'slices-conn verify link.jwt',
    'slices-conn verify monday.jwt tuesday.jwt',
    'slices-conn verify link.jwt --jwks https://conn.example.org/.well-known/jwks.json --issuer https://conn.example.org',
    'slices-conn verify link.jwt --key NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs',
    'slices-conn show ID --token | slices-conn verify --json',
  ],
} as const satisfies CommandDeclaration;
/** The flags as typed. */
type Flags = OptionsOf<typeof command.options>;
/** The same with the keys that they name, in place of the services'. */
type FlagsAndKeys = Flags & { keys: KeySet | undefined };

/** A token that verifies, and of a reservation whether it is good still. */
interface Checked {
  token: string;
  verified: VerifiedToken;
  found?: Standing;
}

/** A token by its name, and what became of it. */
type Row = readonly [name: string, Checked | Failure];

/** Verifies tokens of any kind: one, or several with a row for each. */
export async function run(context: Context, files: readonly string[], flags: Flags): Promise<void> {
  const { output } = context;
  const { jwks, key } = flags;
  const given = await givenTokens(context, files.length > 0 ? files : ['-']);
  if (key !== undefined && jwks === undefined && given.some(({ file }) => file === '-')) {
    throw new Failure('usage', '--key needs --jwks where the token comes from standard input.', {
      why: 'There is no file beside the token that could have its key.',
    });
  }
  const session = await sessionForTokens(context);
  const keysIn = (source: string): Promise<KeySet> => keysFrom(context, session, flags, source);
  const shared = key === undefined && jwks !== undefined ? await keysIn(jwks) : undefined;
  const check = async ({ file, read }: (typeof given)[number]): Promise<Checked> => {
    const keys = key === undefined ? shared : await keysIn(jwks ?? keyFileOf(file));
    return checkedOne(context, session, await read(), { ...flags, keys });
  };
  const times = await context.clock.times();
  const [only, another] = given;
  if (only && !another) {
    const checked = await check(only);
    return output.result(resultOf(checked), (print) => verifiedCard(print, checked, times));
  }
  const rows: Row[] = [];
  for (const each of given) rows.push([each.name, await check(each).catch(failureOrThrow)]);
  const items = rows.map(([file, one]) => {
    if (!(one instanceof Failure)) return { file, ...resultOf(one) };
    const { code, message, facts } = one;
    return { file, verified: false, standing: facts.standing ?? null, error: { code, message } };
  });
  const failures = rows.flatMap(([, one]) => (one instanceof Failure ? [one] : []));
  const [first] = failures;
  if (!first || !output.json) await output.result({ items }, (print) => rowsText(print, rows, times));
  if (!first) return;
  const codes = new Set(rows.map(([, one]) => (one instanceof Failure ? EXIT_CODE_OF[one.code] : 0)));
  throw new Failure(
    codes.size === 1 ? first.code : 'partly_done',
    `${failures.length} of ${rows.length} tokens do not verify.`,
    { items, exitCode: first.facts.exitCode },
  );
}

/** The tokens in files, and each line of standard input; a name is the file, `-`, or a line of it as `-:3`. */
async function givenTokens(context: Context, files: readonly string[]) {
  const given = files.map(async (file) => {
    if (file !== '-') return [{ name: file, file, read: () => readSaved(context, file) }];
    const lines = (await readTokenFile(context, file)).split(/\r?\n/);
    const isOne = lines.filter((line) => line !== '').length < 2;
    return lines.flatMap((line, at) => {
      const name = isOne ? file : `${file}:${at + 1}`;
      return line === '' ? [] : [{ name, file, read: async () => line }];
    });
  });
  return (await Promise.all(given)).flat();
}

/** The token in a file. @throws Failure `usage` for the id of a reservation; `file_unusable` */
async function readSaved(context: Context, file: string): Promise<string> {
  if (idKind(file) === 'reservation' && !(await context.files.exists(file))) {
    throw new Failure('usage', 'This is the id of a reservation. verify takes files with signed tokens.', {
      why: 'show fetches a reservation from its service, and verifies it.',
      fix: ownCommand('show', file),
    });
  }
  const { files } = context;
  return readTokenFile(context, file).catch(async (error: unknown) => {
    if (!RESERVATION_NAME.test(file) || (await files.exists(file))) throw error;
    throw failureOrThrow(error).with({ fix: ownCommand('show', file, '--save', `${file}.jwt`) });
  });
}

function resultOf({ verified, found }: Checked): object {
  const { kind, claims } = verified;
  const as_of = found?.at === undefined ? null : formatInstant(found.at);
  const reservation = verified.kind === 'connectivity' ? verified.claims.connectivity : null;
  return { verified: true, kind, claims, reservation, standing: found?.standing ?? null, as_of };
}

/** A row for each token: whether it verifies, and of a reservation its link, else why not. */
function rowsText(print: Printer, rows: readonly Row[], context: TimeContext): string {
  const what = (one: Checked | Failure): readonly [string, string] => {
    if (one instanceof Failure) {
      return ['no', inTimes(inOneText(one.says, one.facts.why) ?? '', shortTimes(context))];
    }
    const { verified, found } = one;
    if (verified.kind !== 'connectivity') return ['yes', `${verified.kind} token`];
    const { connectivity } = verified.claims;
    const says = found?.standing === 'ended' ? 'ended' : found?.says;
    const link = `${linkName(connectivity)}, ${formatBandwidth(connectivity.bandwidth)}`;
    return ['yes', says === undefined ? link : `${link}: ${says}`];
  };
  return print.table(
    ['file', 'verified', 'what'],
    rows.map(([name, one]) => [name, ...what(one)]),
  );
}

/** Verifies one token; see {@link standingOf}. */
async function checkedOne(
  context: Context,
  session: Session,
  token: string,
  flags: FlagsAndKeys,
): Promise<Checked> {
  const { issuer, keys, key } = flags;
  const how = { source: { keys, issuer }, evenExpired: claimedEnd(token) <= context.clock.now() };
  const withHistory = async (error: unknown): Promise<VerifiedToken> => {
    if (key !== undefined && isRejected(error, 'key_unknown'))
      throw error.with({ why: 'The token is signed by another key than --key.', fix: undefined });
    const isAsked = !context.flags.offline && keys === undefined;
    if (!(isAsked && isRejected(error, 'key_unknown'))) throw error;
    const past = await checkedToken(() => keyInHistory(token, session.send));
    if (!past) throw error;
    if (!how.evenExpired) {
      if (past.revoked === undefined) throw error;
      const at = instant(past.revoked * 1000);
      throw error.with({
        why: sentence`Its issuer retired the key that signed it as leaked at ${at}. What is valid has been signed anew.`,
      });
    }
    if (past.revoked !== undefined) context.output.notice(LEAKED);
    const source = { issuer, keys: localKeySet({ keys: [past] }) };
    return verifySaved(context, session, token, { ...how, source });
  };
  const check = () => verifySaved(context, session, token, how).catch(withHistory);
  const verified = await check();
  if (verified.kind !== 'connectivity') return { token, verified };
  const found = await standingOf(context, session, verified.claims, flags);
  // A list that another key has signed has the key set fetched anew: the token's own key may have been retired since.
  if (found.standing === 'stands') await check();
  return { token, verified, found };
}

/** When the reservation that a token claims to be about ends, in milliseconds; never, for another token. */
function claimedEnd(token: string): number {
  const { connectivity } = claimedClaims(token);
  const end = isObject(connectivity) ? connectivity['end_date'] : undefined;
  return parseInstant(typeof end === 'string' ? end : '', 'utc-if-absent') ?? Number.POSITIVE_INFINITY;
}

/** Whether a signed reservation is good still, in a word and in a line for people. */
interface Standing {
  standing: 'stands' | 'ended' | 'unknown';
  says?: string;
  /** When its service said so, in milliseconds; undefined where it was not asked. */
  at?: number;
}

/**
 * Asks this machine's ledger first, then the service's status list (`statusLists`). The list has reservations that ended too.
 *
 * @throws Failure `unverified` for a reservation that was deleted or changed, or without --ended has ended
 */
async function standingOf(
  context: Context,
  session: Session,
  claims: ConnectivityClaims,
  flags: FlagsAndKeys,
): Promise<Standing> {
  const { now } = context.clock;
  const { iss, iat, sub, connectivity } = claims;
  const { end } = periodOf(connectivity);
  const signed = `Its signature is right: it was real, signed by ${iss}.`;
  const gone = (says: Said, more = '', fix = ownCommand('show', sub)): Failure =>
    new Failure('unverified', says, {
      why: inOneText(signed, more),
      standing: 'deleted_or_replaced',
      // The profile's service knows nothing of another one's.
      fix: iss === session.profile.baseUrl ? fix : undefined,
    });
  const noted = await session.noted(sub, issuerName(iss));
  // What has ended may be gone from the service's list without having been deleted.
  if (noted?.outcome === 'deleted' && (noted.asked === 'delete' ? noted.askedAt : now()) < end) {
    const what =
      noted.asked === 'delete'
        ? sentence`This machine deleted the reservation at ${instant(noted.askedAt)}.`
        : 'The reservation was deleted.';
    throw gone(what, '', 'slices-conn list --all');
  }
  const isNewer = noted?.outcome === 'booked' && (claimedIssue(noted.token ?? '') ?? 0) > iat * 1000;
  if (
    isNewer &&
    noted.reservation &&
    differenceFrom(noted.reservation, { request: asRequest(connectivity) })
  ) {
    throw gone('The reservation was changed after this was signed.', 'This machine has a later one.');
  }
  const { stands, says, at } = await askedStatus(context, session, claims, flags);
  if (stands === false) {
    const more = `So says its service, ${says}.`;
    throw gone('The reservation was deleted, or changed after this was signed.', more);
  }
  if (end > now())
    return stands ? { standing: 'stands', says: `valid, ${says}`, at } : { standing: 'unknown', says };
  if (flags.ended) return { standing: 'ended', at };
  throw new Failure('unverified', sentence`The reservation ended at ${instant(end)}.`, {
    why: signed,
    standing: 'ended',
    fix: { ended: true },
  });
}

/** Asks the service whether the reservation stands. `says` has the time of the answer, or why it was not asked. */
async function askedStatus(
  { flags, output, clock: { now } }: Context,
  session: Session,
  claims: ConnectivityClaims,
  { keys, key }: FlagsAndKeys,
): Promise<{ stands?: boolean; says: string; at?: number }> {
  const without = flags.offline ? '--offline' : key === undefined ? undefined : '--key';
  if (without !== undefined) return { says: `not asked whether it is still valid: ${without}` };
  try {
    const status = await session.statusOf(claims, { keys });
    if (status) {
      const second = Math.floor(now() / 1000) * 1000;
      return { ...status, says: `as of ${formatDistance(Math.min(status.at, second), second)}` };
    }
  } catch (error) {
    if (!(error instanceof TokenError)) throw error;
    output.notice(`warning: Whether it is still valid could not be asked. ${error.message}`);
  }
  const look = session.profile.baseUrl === claims.iss ? `: ${ownCommand('show', claims.sub)}` : '';
  return { says: `only its service knows whether it was deleted or changed since${look}` };
}

const LEAKED =
  'warning: The key that signed this was retired as leaked since: whoever had it could have signed this too.';

/** The keys that --jwks names, or that are beside the token: an address, or a file; with a thumbprint (RFC 7638) the one of the file that has it. */
async function keysFrom(
  { files, flags, clock: { now } }: Context,
  { send, profile }: Session,
  { jwks, key: thumbprint }: Flags,
  source: string,
): Promise<KeySet> {
  if (!/^https?:/i.test(source)) {
    const bytes = await files.read(source).catch((error: unknown) => {
      if (jwks !== undefined) throw error;
      const why = 'show ID --save FILE --with-key puts it there. Or name a file that has it: --jwks FILE.';
      throw failureOrThrow(error).with({ why });
    });
    const { keys } = readKeys(source, bytes);
    if (thumbprint === undefined) return localKeySet({ keys });
    const thumbprints = await Promise.all(
      keys.map((key) => calculateJwkThumbprint(key).catch(() => undefined)),
    );
    const key = keys[thumbprints.indexOf(thumbprint)];
    if (key) return localKeySet({ keys: [key] });
    throw new Failure('unverified', `${source} has no key with this thumbprint.`, {
      why: 'Ask whom you trust for the thumbprint, or for the file with its key. The file has:',
      lines: thumbprints.filter((one) => one !== undefined).map((one) => `thumbprint ${one}`),
    });
  }
  if (thumbprint !== undefined)
    throw new Failure('usage', '--key takes the keys from a file, and fetches none.');
  if (!source.startsWith(`${OFFLINE_URL}/`)) {
    if (flags.offline) {
      throw new Failure('usage', '--offline fetches no key set.', {
        why: `${source} is an address; give a file, or leave --offline out.`,
      });
    }
    if (!(URL.canParse(source) && isProtected(new URL(source), profile.insecure))) {
      throw new Failure('usage', `${source} is not an https address.`, { why: UNPROTECTED });
    }
  }
  return remoteKeySet({ url: source, send, now });
}

/** The key set in a file. @throws Failure `file_unusable` */
function readKeys(source: string, bytes: Uint8Array): KeySetDocument {
  const reading = readJson(bytes);
  if (!reading.ok) throw new Failure('file_unusable', `The file ${source} is not JSON.`);
  try {
    return readKeySet(reading.value);
  } catch (error) {
    if (!(error instanceof TokenError)) throw error;
    throw new Failure('file_unusable', `The file ${source} is not a key set.`);
  }
}

function verifiedCard(print: Printer, { verified, found, token }: Checked, times: TimeContext): string {
  const { kind, claims } = verified;
  if (kind === 'connectivity') {
    const proven = { reservation: claims.connectivity, verified: true, token, claims };
    const title = found?.standing === 'ended' ? 'Verified, ended:' : 'Verified:';
    const card = reservationCard(print, title, proven, { times });
    return found?.says === undefined ? card : `${card}  ${found.says}\n`;
  }
  const lines: CardLine[] = Object.entries(claims).map(([name, value]) => [name, valueText(value)]);
  return print.card(`${print.paint.green('verified')}: ${kind} token`, lines);
}
