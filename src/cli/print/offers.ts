import { type Changes, Failure } from '../../contract/failure.ts';
import { formatInstant } from '../../contract/instants.ts';
import type { AlternativeKind } from '../../contract/problems.ts';
import type { Said } from '../../contract/said.ts';
import type { Outcome } from '../context.ts';
import { continued, folded } from './folded.ts';
import type { AdviceShell } from './shells.ts';

/** A request that the service would accept in place of the refused one. */
export interface Offer {
  /** In which way it is the best (cli/README.md, "Output"). */
  kind: AlternativeKind;
  /** Mbps. */
  bandwidth: number;
  /** Milliseconds; `now`: at the time of the request. */
  start: number | 'now';
  /** Milliseconds. */
  end: number;
  /** Of `other_route`: the sites that it passes, in order. */
  via?: readonly string[] | undefined;
  /** The difference from the request, in words. */
  label: Said;
  /** The flags of the typed command that differ. */
  changes: Changes;
  /** Arguments that were not typed: the id of a reservation that was chosen from a list. */
  more: readonly string[];
}

/** A refusal with what the service offers in its place. */
export class Refusal extends Failure {
  readonly offers: readonly Offer[];
  /** Asks for an offer that a person has picked; undefined where none can be picked, as after a dry run. */
  readonly take: ((offer: Offer) => Promise<Outcome> | Promise<void>) | undefined;

  constructor({ code, says, facts }: Failure, offers: readonly Offer[], take?: Refusal['take']) {
    super(code, says, facts);
    this.offers = offers;
    this.take = take;
  }
}

/** An offer for programs: an item of `error.alternatives` (cli/README.md, "Output"). @param command asks for it */
export function offerItem({ kind, bandwidth, start, end, via }: Offer, command: string): object {
  const isNow = start === 'now';
  return {
    kind,
    bandwidth,
    start_date: isNow ? null : formatInstant(start),
    end_date: formatInstant(end),
    start_now: isNow,
    ...(via ? { via } : {}),
    command,
  };
}

/**
 * Offers for people, numbered, each with its command: in one line each where all of them fit, else with the command
 * below, which goes on in the next line as the shell has it. All texts are escaped already.
 *
 * @param columns of the terminal; Infinity without one: then one line each
 */
export function offerLines(
  offers: readonly { label: string; command: string }[],
  columns: number,
  shell: AdviceShell,
): string[] {
  const width = Math.max(...offers.map(({ label }) => label.length));
  const lines = offers.map(({ label, command }, at) => `  ${at + 1}  ${label.padEnd(width)}  ${command}`);
  if (lines.every(({ length }) => length <= columns)) return lines;
  return offers.flatMap(({ label, command }, at) => [
    ...folded(label, columns - 5).map((line, row) => `  ${row === 0 ? at + 1 : ' '}  ${line}`),
    continued(`     ${command}`, columns, shell),
  ]);
}
