import { claimedExperimentExpiry } from '../../../client/claimed.ts';
import type { ProvenReservation } from '../../../client/proof.ts';
import { type NewReservation, periodOf } from '../../../client/reservation-request.ts';
import { Failure, shellWord } from '../../../contract/failure.ts';
import type { Invocation } from '../../invocation.ts';
import { type NewPeriod, type PeriodFlags, periodToSend, readPeriod, shortfall } from '../../period.ts';
import { rehearsalCard, reservationCard, reservationResult } from '../../print/cards.ts';
import { escapeText } from '../../print/output.ts';
import { confirm } from '../../questions.ts';
import type { TimeContext } from '../../times.ts';
import { parseBandwidth, siteName } from '../../values.ts';
import type { UserFiles } from '../../world.ts';
import { advisor } from '../alternatives.ts';

/** The flags of `reserve`, as typed. */
export interface ReserveFlags extends PeriodFlags {
  bandwidth: string;
  dryRun?: boolean;
  save?: string;
  allowUnsigned?: boolean;
  idempotencyKey?: string;
}

/** Turns arguments and flags into a request. @throws Failure `usage` */
export async function parseReserve(
  [site1 = '', site2 = '']: readonly string[],
  flags: ReserveFlags,
  times: TimeContext,
): Promise<NewReservation & NewPeriod> {
  const sites = { site1: siteName(site1), site2: siteName(site2) };
  const bandwidth = parseBandwidth(flags.bandwidth);
  return { ...sites, bandwidth, ...(await readPeriod(flags, times)) };
}

/** Books a link, or says what would be booked. */
export async function reserve(
  invocation: Invocation,
  args: readonly string[],
  flags: ReserveFlags,
): Promise<void> {
  const { output } = invocation;
  const context = await invocation.times();
  const asked = await parseReserve(args, flags, context);
  if (flags.save !== undefined && !flags.dryRun) await checkSave(invocation, flags.save);
  const session = await invocation.session();
  const experiment = await session.access();
  const expiry = claimedExperimentExpiry(experiment.token.reveal());
  const request = periodToSend(asked, invocation.now(), expiry);
  const advise = advisor(request, flags, invocation.now, context.zone);
  if (flags.dryRun) {
    const reservation = await session.rehearse(request).catch(advise);
    const rehearsed = { reservation, verified: false, token: null, claims: null };
    const times = await invocation.times();
    await output.result({ ...reservationResult(rehearsed), dryRun: true }, (print) =>
      rehearsalCard(print, reservation, { times, experiment }),
    );
    return;
  }
  const { allowUnsigned = false, save, idempotencyKey } = flags;
  const options = { allowUnsigned, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) };
  const proven = await session.reservations.create(request, options).catch(advise);
  if (save !== undefined) await saveProof(invocation.files, save, proven);
  const times = await invocation.times();
  await output.result(reservationResult(proven), (print) => {
    const saved = save !== undefined && proven.token !== null ? `  saved to ${escapeText(save)}\n` : '';
    return reservationCard(print, 'Reserved', proven, { times, experiment }) + saved;
  });
  const warning = shortfall(periodOf(proven.reservation), asked.lasting);
  if (warning !== undefined) output.notice(warning);
}

/** Checks the file that is to be written, and asks before it replaces one. Before anything is sent. */
async function checkSave(invocation: Invocation, path: string): Promise<void> {
  await invocation.files.checkWritable(path);
  if (!(await invocation.files.exists(path))) return;
  await confirm(invocation, `Replace the file ${path}?`, {
    unasked: `The file ${path} exists, and replacing it was not confirmed.`,
    declined: 'Nothing was booked.',
  });
}

/** Writes the signed reservation to a file. When that fails, the error says that the link is booked. */
async function saveProof(
  files: UserFiles,
  path: string,
  { token, reservation }: ProvenReservation,
): Promise<void> {
  if (token === null) return;
  try {
    await files.writePrivate(path, `${token}\n`);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw error.with({
      why: `The link is booked. ${error.facts.why ?? ''}`.trimEnd(),
      reservation: reservation.id,
      maybeDone: true,
      fix: `slices-conn show ${shellWord(reservation.id)} --token`,
    });
  }
}
