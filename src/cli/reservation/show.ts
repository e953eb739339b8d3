import { calculateJwkThumbprint, exportJWK } from 'jose';
import { forIssuer } from '../../contract/addresses.ts';
import type { PublicJwk } from '../../contract/claims.ts';
import { Failure } from '../../contract/failure.ts';
import type { OptionsOf } from '../../contract/flags.ts';
import { reservationState } from '../../contract/reservation-request.ts';
import type { Session } from '../../session/session.ts';
import { readCompact } from '../../tokens/compact.ts';
import { SERVICE_ALGORITHMS } from '../../tokens/key-set.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context } from '../context.ts';
import { ALLOW_UNSIGNED } from '../global-options.ts';
import { reservationCard, reservationResult } from '../print/cards.ts';
import { confirmWriting } from '../questions.ts';
import { keyFileOf } from '../tokens.ts';
import { toldOfGone } from './again.ts';
import { reservationArgument } from './reservation-argument.ts';
import { noticeUnsaved, savedText } from './results.ts';

/** `slices-conn show ID [--token] [--save FILE [--with-key]]`. */
export const command = {
  args: {
    '[id]': 'its name, its id, or four characters or more of the last part; asked for when left out',
  },
  options: {
    token: { flags: '--token', help: 'print the signed reservation itself' },
    save: { flags: '--save <file>', help: 'write the signed reservation to a file, for verify' },
    withKey: {
      flags: '--with-key',
      help: 'with --save: write its public key beside it, and print its thumbprint (verify --key)',
    },
    ...ALLOW_UNSIGNED,
  },
  examples: [
    'slices-conn show con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
    'slices-conn show con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q --save link.jwt',
  ],
} as const satisfies CommandDeclaration;
/** The flags as typed. */
type Flags = OptionsOf<typeof command.options>;

/** Shows a reservation, prints its signed form, or writes that to a file. */
export async function run(context: Context, [typed]: readonly string[], flags: Flags): Promise<void> {
  const { output } = context;
  const { save } = flags;
  if (flags.withKey && save === undefined) {
    throw new Failure('usage', '--with-key writes the key beside the file of --save.');
  }
  if (save !== undefined) await confirmWriting(context, save, 'Nothing was written.');
  const { session, id } = await reservationArgument(context, typed, 'see', 'show');
  const { reservations } = session;
  const allowUnsigned = flags.allowUnsigned === true && !flags.token;
  const proven = await reservations.show(id, { allowUnsigned }).catch(async (error: unknown) => {
    throw await toldOfGone(error, session, id, context.clock.now());
  });
  const { token, claims, reservation } = proven;
  if (save !== undefined && token !== null) await context.files.writePrivate(save, `${token}\n`);
  noticeUnsaved(output, save, proven);
  const key = flags.withKey && token !== null ? await keyOf(session, token) : undefined;
  if (save !== undefined && key) {
    await context.files.writePublic(keyFileOf(save), `${JSON.stringify({ keys: [key.jwk] }, null, 2)}\n`);
  }
  if (flags.token && token !== null) {
    output.text({ token, claims }, token);
    return;
  }
  const experiment = await session.access();
  const times = await context.clock.times();
  const added = key ? { key: key.thumbprint } : {};
  await output.result({ ...reservationResult(proven), ...added }, (print) => {
    const state = reservationState(reservation, times.now);
    const verb = `${state.charAt(0).toUpperCase()}${state.slice(1)}:`;
    const withKey = key ? `  its key beside it; to verify with that alone: --key ${key.thumbprint}\n` : '';
    return reservationCard(print, verb, proven, { times, experiment }) + savedText(save, proven) + withKey;
  });
}

/** The public key of a token that has verified, and its thumbprint (RFC 7638). */
async function keyOf({ trust }: Session, token: string): Promise<{ jwk: PublicJwk; thumbprint: string }> {
  const { header, claims } = readCompact(token);
  const keys = forIssuer(trust('connectivity').issuers, String(claims['iss']));
  const alg = SERVICE_ALGORITHMS.find((known) => known === header['alg']);
  if (!keys || alg === undefined) throw new RangeError('the token has verified');
  const kid = typeof header['kid'] === 'string' ? header['kid'] : undefined;
  const numbers = await exportJWK(await keys.find(kid, alg));
  const jwk: PublicJwk = {
    ...numbers,
    kty: String(numbers.kty),
    alg,
    use: 'sig',
    ...(kid === undefined ? {} : { kid }),
  };
  return { jwk, thumbprint: await calculateJwkThumbprint(jwk) };
}
