import * as v from 'valibot';
import { Failure } from '../../contract/failure.ts';
import { readJson } from '../../contract/json.ts';
import type { End } from '../../vlan/end.ts';
import { VERDICTS, type Verdict, type VerdictCode, WHERE } from './verdict.ts';

const FarReport = v.object({
  verdict: v.picklist(Object.keys(VERDICTS) as VerdictCode[]),
  end: v.nullable(v.picklist(WHERE)),
  heard: v.array(v.string()),
  reservation: v.optional(v.string()),
  site: v.optional(v.string()),
});
/** The output of `probe --json` at the other end. */
type FarReport = v.InferOutput<typeof FarReport>;

/**
 * Reads what `probe --json` printed at the other end of the same reservation.
 *
 * @param path for messages
 * @throws Failure `file_unusable` for anything else
 */
export function readFarReport(bytes: Uint8Array, path: string, end: End): FarReport {
  const fault = (why: string): Failure =>
    new Failure('file_unusable', `The file ${path} is not what is needed for --far.`, {
      why,
      fix: 'slices-conn probe --help',
    });
  const json = readJson(bytes);
  if (!json.ok) throw fault('It is not JSON.');
  const parsed = v.safeParse(FarReport, json.value);
  if (!parsed.success) throw fault('It is not what "slices-conn probe --json" prints.');
  const { reservation = end.reservation.id, site = end.otherSite } = parsed.output;
  if (reservation !== end.reservation.id) throw fault(`It is about the reservation ${reservation}.`);
  if (site !== end.otherSite) {
    throw fault(`It is from ${site}. The other end of ${end.site} is ${end.otherSite}.`);
  }
  return parsed.output;
}

/** The verdict from here on a fault that the other end has found in its own devices; for others it does not hear this end. */
const FROM_HERE: Partial<Record<VerdictCode, VerdictCode>> = {
  own_tags_swapped: 'far_tags_swapped',
  own_ethertype: 'far_ethertype',
};

/** Whether a verdict says that frames arrive with wrong tags. */
const isWrongTags = (verdict: VerdictCode): boolean =>
  ['far_tags_swapped', 'far_ethertype', 'far_c_tag', 'single_tagged'].includes(verdict);

/** The verdict from what both ends have found: the first row that fits decides; where none does, this end's stays. */
export function combined(here: Verdict, far: FarReport, { site, otherSite, reservation }: End): Verdict {
  const { verdict } = here;
  if (verdict === 'ok' || here.end === 'own') return here;
  const is = (own: VerdictCode, other: VerdictCode): boolean => verdict === own && far.verdict === other;
  const isOwn = far.verdict.startsWith('own_');
  const atFar = FROM_HERE[far.verdict] ?? 'far_does_not_hear';
  const rows: readonly (readonly [fits: boolean, end: Verdict['end'], says: string, code?: VerdictCode])[] = [
    [is('path_mtu', 'own_mtu'), 'far', `Large packets are lost: an MTU at ${otherSite} is too small.`],
    [isOwn, 'far', `The fault is at ${otherSite}: probe has found ${far.verdict} there.`, atFar],
    [
      isWrongTags(verdict),
      'path',
      `${here.says} Its devices have the right tags, so the network between changes them.`,
    ],
    [
      verdict === 'silent' && isWrongTags(far.verdict),
      'path',
      `The devices of ${site} have the right tags, but ${otherSite} hears ${far.heard.join(', ')}: the network between changes them.`,
    ],
    [
      is('silent', 'silent') && here.end === null,
      'path',
      'Both ends are configured right, and neither hears the other: frames are lost in the network, both ways.',
    ],
    [
      is('silent', 'far_does_not_hear'),
      'path',
      `${otherSite} hears ${site}: frames are lost in the network, from ${otherSite} to ${site}.`,
    ],
    [
      is('far_does_not_hear', 'silent'),
      'path',
      `${site} hears ${otherSite}: frames are lost in the network, from ${site} to ${otherSite}.`,
    ],
    [
      is('far_does_not_hear', 'far_does_not_hear'),
      null,
      'Frames pass both ways, and neither end answers: their addresses are not of the same network, or a firewall drops them.',
    ],
  ];
  const found = rows.find(([fits]) => fits);
  if (!found) return here;
  const [, end, says, code = verdict] = found;
  const tell = end === 'path' ? ` Tell the network's operators the reservation's id, ${reservation.id}.` : '';
  return { verdict: code, end, says: says + tell };
}
