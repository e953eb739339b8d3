import type { ProofOptions } from '../../client/proof.ts';
import { type Changes, Failure, isGone, ownCommand } from '../../contract/failure.ts';
import type { OptionTable } from '../../contract/flags.ts';
import { idKind } from '../../contract/ids.ts';
import { issuerName } from '../../contract/issuer-address.ts';
import type { Reservation } from '../../contract/reservation.ts';
import { periodOf, reservationState } from '../../contract/reservation-request.ts';
import { instant, sentence } from '../../contract/said.ts';
import { hinted, nearest } from '../../session/choice.ts';
import { claimedClaims } from '../../tokens/claimed.ts';
import { TokenError } from '../../tokens/token-error.ts';
import { kindText } from '../../tokens/verify.ts';
import {
  addressFault,
  deviceFault,
  type End,
  endAt,
  mtuFault,
  OUTER_PROTOCOLS,
  type OuterProtocol,
  USUAL_MTU,
} from '../../vlan/end.ts';
import type { Context } from '../context.ts';
import { pick } from '../questions.ts';
import { reservationArgument } from '../reservation/reservation-argument.ts';
import { shortTime } from '../times.ts';
import { readTokenFile } from '../tokens.ts';
import { sessionForTokens, verifySaved } from '../verify/saved-token.ts';

/** The flags by which `vlan` and `probe` name an end of a reservation. */
export const END_OPTIONS = {
  dev: {
    flags: '--dev <device>',
    help: "the server's network device that reaches the site's switch, such as eth1",
    required: true,
  },
  site: { flags: '--site <end>', help: 'where the server is: one of the two sites' },
} as const satisfies OptionTable;

/** The flags that name an end of a reservation, as typed. */
interface EndFlags {
  site?: string;
  dev: string;
  address?: string;
  mtu?: string;
  outer?: OuterProtocol;
  /** Whether an unsigned answer of the service is accepted. */
  allowUnsigned?: boolean;
}

/** The use of an end. */
interface EndUse {
  /** Completes "Which reservation do you want to …?" */
  verb: string;
  /** Whether its devices are removed: then the reservation and its token may be over. Default false. */
  removing?: boolean;
}

/**
 * One end of the reservation that an argument names: by id or name, then the service is asked for the signed
 * token; or by a file or `-` with that token. The token is verified. Typing errors are found before anything
 * is asked.
 *
 * @param typed the argument; undefined where it is missing, so that a person chooses
 * @throws Failure `usage`, `unverified`, and those of asking the service
 */
export async function endArgument(
  context: Context,
  typed: string | undefined,
  flags: EndFlags,
  { verb, removing = false }: EndUse,
): Promise<End> {
  const { dev, address, outer } = flags;
  const mtu = flags.mtu === undefined ? USUAL_MTU : readMtu(flags.mtu);
  check('a device', dev, deviceFault(dev), 'ip link');
  if (address !== undefined) check('an address', address, addressFault(address, mtu));
  const fix = (site = flags.site, id = ''): string | Changes =>
    verb === 'probe' ? removalOf(typed ?? id, { ...flags, site }) : { remove: true };
  const reservation = await verifiedReservation(
    context,
    typed,
    { verb, removing, allowUnsigned: flags.allowUnsigned },
    fix(),
  );
  const site = await siteOf(context, reservation, flags.site);
  if (!removing) await checkPeriod(context, reservation, fix(site, reservation.id));
  const end = endAt(reservation, site, dev, {
    mtu,
    outer,
    address,
  });
  if (!end) throw new RangeError('the site was checked before');
  return end;
}

/** The command that removes the devices of an end. Without a site it asks for it. */
function removalOf(typed: string, { site, dev, outer = OUTER_PROTOCOLS[0] }: EndFlags): string {
  const words = ['vlan', typed, ...(site === undefined ? [] : ['--site', site]), '--dev', dev];
  return `${ownCommand(...words, ...(outer === OUTER_PROTOCOLS[0] ? [] : ['--outer', outer]))} --remove`;
}

function readMtu(text: string): number {
  const mtu = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  check('an MTU', text, mtuFault(mtu));
  return mtu;
}

/** @param what it should be, such as `an MTU` @throws Failure `usage` where there is a fault */
function check(what: string, typed: string, fault: string | undefined, fix?: string): void {
  if (fault === undefined) return;
  throw new Failure('usage', `${JSON.stringify(typed)} is not ${what}.`, {
    why: fault,
    fix,
  });
}

/** The reservation of a verified token. @param fix removes its devices, where the reservation is over */
async function verifiedReservation(
  context: Context,
  typed: string | undefined,
  { verb, removing, allowUnsigned }: Required<EndUse> & ProofOptions,
  fix: string | Changes,
): Promise<Reservation> {
  const isFile =
    typed !== undefined &&
    idKind(typed) !== 'reservation' &&
    (typed === '-' || (await context.files.exists(typed)));
  if (isFile) return savedReservation(context, typed, removing, fix);
  const { session, id } = await reservationArgument(
    context,
    typed,
    verb,
    verb === 'probe' ? verb : 'vlan',
  ).catch((error: unknown) => {
    throw error instanceof Failure && error.code === 'usage' && typed !== undefined && /[./]/.test(typed)
      ? error.with({ why: `There is no file of this name either. ${error.facts.why ?? ''}`.trim() })
      : error;
  });
  try {
    return (await session.reservations.show(id, { allowUnsigned })).reservation;
  } catch (error) {
    if (!isGone(error)) throw error;
    const entry = await (await session.ledger()).about(id);
    if (!removing) {
      throw entry
        ? new Failure('not_found', DELETED, { ...error.facts, why: OVER, fix })
        : error.with({ fix: 'slices-conn list --all' });
    }
    // The devices here follow from the tags, which this machine may have noted.
    const noted = entry?.reservation;
    if (!noted) {
      throw error.with({
        why: `${error.facts.why ?? ''} The file with its signed token would do as well. Without either, the devices here are to be looked through.`.trim(),
        fix: 'ip -d link show type vlan',
      });
    }
    context.output.notice(
      'The service has this reservation no more. It is removed as this machine knew it last.',
    );
    return noted;
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
    throw advised(error, token, fix);
  });
  if (verified.kind === 'connectivity') {
    const { claims } = verified;
    // A token is good until its reservation's end. That it was deleted before is known where it was deleted.
    if (!evenExpired && (await session.noted(claims.sub, issuerName(claims.iss)))?.outcome === 'deleted') {
      throw new Failure('usage', DELETED, { why: OVER, fix });
    }
    return claims.connectivity;
  }
  throw new Failure('unverified', 'This is not a signed reservation.', {
    why: `It is ${kindText(verified.kind)}.`,
    fix: 'slices-conn show --help',
  });
}

const DELETED = 'The reservation was deleted.';

/** Why nothing is made for a reservation that is over. */
const OVER = 'Its tags may be another experiment’s by now. What was made for it can be removed.';

/** Adds to a failure to verify what would help here. */
function advised(error: unknown, token: string, fix: string | Changes): unknown {
  if (!(error instanceof Failure && error.cause instanceof TokenError)) return error;
  const { code, message } = error.cause;
  if (code === 'expired') {
    return error.with({
      why: `${message} An expired token is good only for removing what was made with it.`,
      fix,
    });
  }
  if (code !== 'issuer') return error;
  const says = `The token says ${JSON.stringify(claimedClaims(token)['iss'])}.`;
  return error.with({
    why: `${message} ${says} --profile chooses the services that are trusted.`,
    fix: 'slices-conn profile list',
  });
}

/** @throws Failure `usage` for a site that is not one of the reservation's */
async function siteOf(
  context: Context,
  reservation: Reservation,
  typed: string | undefined,
): Promise<string> {
  const sites = [reservation.site1, reservation.site2];
  if (typed === undefined) {
    if (context.terminal.ask) return pick(context, 'At which site is this server?', sites, (site) => site);
    throw new Failure('usage', 'The site of this server is missing.', {
      why: `The reservation is between ${sites.join(' and ')}.`,
      fix: { site: sites[0] },
    });
  }
  if (sites.includes(typed)) return typed;
  const what = `${JSON.stringify(typed)} is not a site of this reservation.`;
  throw new Failure('usage', hinted(what, typed, sites), {
    why: `It is between ${sites.join(' and ')}.`,
    fix: { site: nearest(typed, sites) ?? sites[0] },
  });
}

/** Warns before the start. @param fix removes the devices. @throws Failure `usage` after the end */
async function checkPeriod(context: Context, reservation: Reservation, fix: string | Changes): Promise<void> {
  const { output } = context;
  const state = reservationState(reservation, context.clock.now());
  if (state === 'active') return;
  const { start, end } = periodOf(reservation);
  if (state === 'scheduled') {
    const times = await context.clock.times();
    output.notice(
      `warning: The reservation starts ${shortTime(start, times, true)} ${times.zone}. Until then the network carries nothing.`,
    );
    return;
  }
  throw new Failure('usage', sentence`The reservation ended at ${instant(end)}.`, {
    why: OVER,
    fix,
  });
}
