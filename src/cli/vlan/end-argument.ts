import type { ProofOptions } from '../../client/proof.ts';
import { issuerName } from '../../contract/addresses.ts';
import { type Changes, Failure, isGone, ownCommand } from '../../contract/failure.ts';
import { idKind } from '../../contract/fields.ts';
import type { OptionsOf, OptionTable } from '../../contract/flags.ts';
import type { Reservation } from '../../contract/reservation.ts';
import { periodOf, reservationState } from '../../contract/reservation-request.ts';
import { inOneText, instant, sentence } from '../../contract/said.ts';
import { hinted, nearest } from '../../session/choice.ts';
import { kindText } from '../../tokens/verify.ts';
import {
  addressFault,
  deviceFault,
  type End,
  endAt,
  mtuFault,
  OUTER_PROTOCOLS,
  USUAL_MTU,
} from '../../vlan/end.ts';
import type { Context } from '../context.ts';
import { ALLOW_UNSIGNED } from '../global-options.ts';
import { pick } from '../questions.ts';
import { reservationArgument } from '../reservation/reservation-argument.ts';
import { shortTime } from '../times.ts';
import { isRejected, readTokenFile } from '../tokens.ts';
import { sessionForTokens, verifySaved } from '../verify/saved-token.ts';

/** Reads a flag's value. @throws RangeError with its fault */
const read =
  (faultOf: (text: string) => string | undefined) =>
  (text: string): string => {
    const fault = faultOf(text);
    if (fault !== undefined) throw new RangeError(fault);
    return text;
  };
const readMtu = read((text) => mtuFault(/^\d{1,6}$/.test(text) ? Number(text) : Number.NaN));

/** The flags by which `vlan` and `probe` name an end of a reservation. */
export const END_OPTIONS = {
  dev: {
    flags: '--dev <device>',
    help: "the server's network device that reaches the site's switch, such as eth1",
    required: true,
    parse: read(deviceFault),
  },
  site: { flags: '--site <end>', help: 'where the server is: one of the two sites' },
  mtu: {
    flags: '--mtu <bytes>',
    help: 'the largest packet; try 1496 where only small ones arrive (default: 1500)',
    parse: (text: string): number => Number(readMtu(text)),
  },
  outer: {
    flags: '--outer <protocol>',
    help: 'the protocol of the S-tag',
    choices: OUTER_PROTOCOLS,
    default: OUTER_PROTOCOLS[0],
  },
  ...ALLOW_UNSIGNED,
} as const satisfies OptionTable;

/** The server's own address on the link, which `vlan` takes too. */
export const ADDRESS_OPTION = {
  address: {
    flags: '--address <cidr>',
    help: "the server's address on the link, such as 10.0.0.1/24",
    parse: read((text) => addressFault(text, USUAL_MTU)),
  },
} as const satisfies OptionTable;

/** The flags that name an end of a reservation, as typed. */
type EndFlags = OptionsOf<typeof END_OPTIONS> & OptionsOf<typeof ADDRESS_OPTION>;

/** What an end is for; completes "Which reservation do you want to …?" */
type EndUse = 'configure' | 'remove' | 'probe';

/**
 * One end of the reservation that an argument names: by id or name, then the service is asked for the signed
 * token; or by a file or `-` with that token. The token is verified. Typing errors are found before anything
 * is asked.
 *
 * @param typed the argument; undefined where it is missing, so that a person chooses
 * @param use where devices are removed, the reservation and its token may be over
 * @throws Failure `usage`, `unverified`, and those of asking the service
 */
export async function endArgument(
  context: Context,
  typed: string | undefined,
  flags: EndFlags,
  use: EndUse,
): Promise<End> {
  const { dev, address, outer, mtu = USUAL_MTU, site: named } = flags;
  const fault = address && addressFault(address, mtu);
  if (fault)
    throw new Failure('usage', `--address ${address} can't be used with --mtu ${mtu}.`, { why: fault });
  const at = named === undefined ? [] : ['--site', named];
  const by = outer === OUTER_PROTOCOLS[0] ? [] : ['--outer', outer];
  /** What removes the devices, where the reservation is over. */
  const removal =
    use === 'probe'
      ? ownCommand('vlan', ...(typed === undefined ? [] : [typed]), ...at, '--dev', dev, ...by, '--remove')
      : { remove: true as const };
  const reservation = await verifiedReservation(context, typed, use, flags, removal);
  const site = await siteOf(context, reservation, named);
  const state = reservationState(reservation, context.clock.now());
  if (use !== 'remove' && state === 'ended') {
    const { end } = periodOf(reservation);
    throw new Failure('usage', sentence`The reservation ended at ${instant(end)}.`, {
      why: OVER,
      fix: removal,
    });
  }
  if (use !== 'remove' && state === 'scheduled') {
    const times = await context.clock.times();
    const start = shortTime(periodOf(reservation).start, times, true);
    context.output.notice(
      `warning: The reservation starts ${start} ${times.zone}. Until then the network carries nothing.`,
    );
  }
  return endAt(reservation, site, dev, { mtu, outer, address });
}

/** The reservation of a verified token. @param fix removes its devices, where the reservation is over */
async function verifiedReservation(
  context: Context,
  typed: string | undefined,
  use: EndUse,
  { allowUnsigned }: ProofOptions,
  fix: string | Changes,
): Promise<Reservation> {
  if (typed !== undefined && idKind(typed) !== 'reservation') {
    const isFile = typed === '-' || (await context.files.exists(typed));
    if (isFile) return savedReservation(context, typed, use === 'remove', fix);
  }
  const command = use === 'probe' ? use : 'vlan';
  const { session, id } = await reservationArgument(context, typed, use, command).catch((error: unknown) => {
    throw error instanceof Failure && error.code === 'usage' && typed !== undefined && /[./]/.test(typed)
      ? error.with({ why: inOneText('There is no file of this name either.', error.facts.why) })
      : error;
  });
  try {
    return (await session.reservations.show(id, { allowUnsigned })).reservation;
  } catch (error) {
    if (!isGone(error)) throw error;
    const entry = await (await session.ledger()).about(id);
    if (use !== 'remove') {
      throw entry
        ? new Failure('not_found', DELETED, { ...error.facts, why: OVER, fix })
        : error.with({ fix: 'slices-conn list --all' });
    }
    // The devices here follow from the tags, which this machine may have noted.
    if (entry?.reservation) {
      context.output.notice(
        'The service has this reservation no more. It is removed as this machine knew it last.',
      );
      return entry.reservation;
    }
    const otherwise =
      'The file with its signed token would do as well. Without either, the devices here are to be looked through.';
    throw error.with({ why: inOneText(error.facts.why, otherwise), fix: 'ip -d link show type vlan' });
  }
}

async function savedReservation(
  context: Context,
  path: string,
  evenExpired: boolean,
  fix: string | Changes,
): Promise<Reservation> {
  const token = await readTokenFile(context, path);
  const session = await sessionForTokens(context);
  const verified = await verifySaved(context, session, token, { evenExpired }).catch((error: unknown) => {
    if (!isRejected(error, 'expired')) throw error;
    const good = 'An expired token is good only for removing what was made with it.';
    throw error.with({ why: inOneText(error.facts.why, good), fix });
  });
  if (verified.kind !== 'connectivity') {
    throw new Failure('unverified', 'This is not a signed reservation.', {
      why: `It is ${kindText(verified.kind)}.`,
      fix: 'slices-conn show --help',
    });
  }
  const { iss, sub, connectivity } = verified.claims;
  // A token is good until its reservation's end. That it was deleted before is known where it was deleted.
  if (!evenExpired && (await session.noted(sub, issuerName(iss)))?.outcome === 'deleted') {
    throw new Failure('usage', DELETED, { why: OVER, fix });
  }
  return connectivity;
}

const DELETED = 'The reservation was deleted.';

/** Why nothing is made for a reservation that is over. */
const OVER = 'Its tags may be another experiment’s by now. What was made for it can be removed.';

/** @throws Failure `usage` for a site that is not one of the reservation's */
async function siteOf(
  context: Context,
  { site1, site2 }: Reservation,
  typed: string | undefined,
): Promise<string> {
  const sites = [site1, site2];
  if (typed !== undefined && sites.includes(typed)) return typed;
  if (typed === undefined && context.terminal.ask) {
    return pick(context, 'At which site is this server?', sites, (site) => site);
  }
  const says =
    typed === undefined
      ? 'The site of this server is missing.'
      : hinted(`${JSON.stringify(typed)} is not a site of this reservation.`, typed, sites);
  throw new Failure('usage', says, {
    why: `The reservation is between ${site1} and ${site2}.`,
    fix: { site: nearest(typed ?? '', sites) ?? site1 },
  });
}
