import * as v from 'valibot';
import { Failure } from '../../contract/failure.ts';
import { readJson } from '../../contract/json.ts';
import type { End } from '../../vlan/end.ts';
import { VERDICTS, type Verdict, type VerdictCode, WHERE } from './verdict.ts';

const FarReport = v.object({
  verdict: v.picklist(VERDICTS),
  end: v.nullable(v.picklist(WHERE)),
  heard: v.array(v.string()),
  reservation: v.optional(v.string()),
  site: v.optional(v.string()),
});
/** The output of `probe --json` at the other end. */
export type FarReport = v.InferOutput<typeof FarReport>;

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
  const { reservation, site } = parsed.output;
  if (reservation !== undefined && reservation !== end.reservation.id) {
    throw fault(`It is about the reservation ${reservation}.`);
  }
  if (site !== undefined && site !== end.otherSite) {
    throw fault(`It is from ${site}. The other end of ${end.site} is ${end.otherSite}.`);
  }
  return parsed.output;
}

/** The verdict from here on a fault that the other end has found in its own devices. */
const FROM_HERE: Partial<Record<VerdictCode, VerdictCode>> = {
  own_tags_swapped: 'far_tags_swapped',
  own_ethertype: 'far_ethertype',
  own_other_sites_tags: 'far_does_not_hear',
  own_device: 'far_does_not_hear',
  own_mtu: 'far_does_not_hear',
};

/** Verdicts that say that frames arrive with wrong tags. */
const WRONG_TAGS: readonly VerdictCode[] = [
  'far_tags_swapped',
  'far_ethertype',
  'far_c_tag',
  'single_tagged',
];

/**
 * The verdict from what both ends have found. The first row that fits decides; where none does, this end's
 * stays.
 *
 * | This end | Other end | Verdict |
 * |---|---|---|
 * | `ok`, `own_…` | anything | this end's |
 * | `path_mtu` | `own_mtu` | `path_mtu`, at the far end |
 * | another | `own_tags_swapped`, `own_ethertype` | `far_tags_swapped`, `far_ethertype` |
 * | another | another `own_…` | `far_does_not_hear` |
 * | wrong tags heard | devices without a fault | this end's, in the path: it changes the tags |
 * | `silent` | wrong tags heard | `silent`, in the path: it changes the tags |
 * | `silent` | `silent` | `silent`, in the path: both ways |
 * | `silent` | `far_does_not_hear` | `silent`, in the path: towards this end |
 * | `far_does_not_hear` | `silent` | `far_does_not_hear`, in the path: towards the other end |
 * | `far_does_not_hear` | `far_does_not_hear` | `far_does_not_hear`, at either end: addresses or a firewall |
 */
export function combined(here: Verdict, far: FarReport, { site, otherSite, reservation }: End): Verdict {
  const { verdict } = here;
  const tell = `Tell the network's operators the reservation's id, ${reservation.id}.`;
  if (verdict === 'ok' || verdict.startsWith('own_')) return here;
  if (verdict === 'path_mtu' && far.verdict === 'own_mtu') {
    return { verdict, end: 'far', says: `Large packets are lost: an MTU at ${otherSite} is too small.` };
  }
  const fromHere = FROM_HERE[far.verdict];
  if (fromHere) {
    return {
      verdict: fromHere,
      end: 'far',
      says: `The fault is at ${otherSite}: probe has found ${far.verdict} there.`,
    };
  }
  const inPath = (says: string): Verdict => ({ verdict, end: 'path', says: `${says} ${tell}` });
  if (WRONG_TAGS.includes(verdict)) {
    return inPath(`${here.says} Its devices have the right tags, so the network between changes them.`);
  }
  if (verdict === 'silent' && WRONG_TAGS.includes(far.verdict)) {
    return inPath(
      `The devices of ${site} have the right tags, but ${otherSite} hears ${far.heard.join(', ')}: the network between changes them.`,
    );
  }
  if (verdict === 'silent' && far.verdict === 'silent' && here.end === null) {
    return inPath(
      'Both ends are configured right, and neither hears the other: frames are lost in the network, both ways.',
    );
  }
  if (verdict === 'silent' && far.verdict === 'far_does_not_hear') {
    return inPath(
      `${otherSite} hears ${site}: frames are lost in the network, from ${otherSite} to ${site}.`,
    );
  }
  if (verdict === 'far_does_not_hear' && far.verdict === 'silent') {
    return inPath(
      `${site} hears ${otherSite}: frames are lost in the network, from ${site} to ${otherSite}.`,
    );
  }
  if (verdict === 'far_does_not_hear' && far.verdict === 'far_does_not_hear') {
    return {
      verdict,
      end: null,
      says: `Frames pass both ways, and neither end answers: their addresses are not of the same network, or a firewall drops them.`,
    };
  }
  return here;
}
