import { isDeepStrictEqual } from 'node:util';
import { type Holding, TAG_PLACES } from '../../src/allocator/demand.ts';
import { STATUSES_IN_LIST } from '../../src/contract/claims.ts';
import { type Link, linkId } from '../../src/contract/links.ts';
import type { SqlRow } from '../../src/store/sql.ts';
import { Oracle } from '../allocator/oracle.ts';
import type { Rows } from '../allocator/sweep.ts';
import { isOnSnapshot, TOPOLOGY } from './links.ts';
import type { Finding } from './report.ts';

/** A decision as the audit tells it. */
interface Decision {
  version: number;
  action: string;
  accepted: boolean;
  id: string;
  start: number;
  end: number;
  bandwidth: number;
  tags: Holding['tags'] | undefined;
  at: number;
}

/** How a replay is done. */
export interface ReplayOptions {
  /** How many decisions of each link the oracle makes again; only where times are a few dozen milliseconds apart. */
  oracle?: number;
  /** Which links {@link replayAll} takes; default: all of a load. */
  links?: readonly Link[];
}

/**
 * Replays every link's decisions from its audit, in order: what was accepted fitted, what was refused under the link's lock
 * did not, versions rise by one or, after another history has begun, from the beginning of a status list, and what is left is what the reservations say. So the order that the link's lock made is one in which
 * every answer was right.
 */
export async function replayAll(rows: Rows, options: ReplayOptions = {}): Promise<Finding[]> {
  const found: Finding[] = [];
  for (const link of options.links ?? TOPOLOGY.links) {
    const id = linkId(link.site1, link.site2);
    const replayed = await replay(rows, link, options);
    found.push(...replayed.map((what): Finding => ({ kind: 'wrong', what: `${id}, replayed: ${what}` })));
  }
  return found;
}

/** Where the versions of a link go on: from the last one, or from the list at which a later history began (store/history.ts). */
function inHistoryOf(version: number, last: number): number {
  return Math.max(last, version - (version % STATUSES_IN_LIST));
}

/** Replays one link. @returns its errors */
export async function replay(
  rows: Rows,
  link: Link,
  { oracle: most = 0 }: ReplayOptions = {},
): Promise<string[]> {
  const id = linkId(link.site1, link.site2);
  const decisions = (await rows('SELECT * FROM audit WHERE link = $1 ORDER BY seq', id)).map(decisionIn);
  const held = new Held(decisions.reduce((longest, { start, end }) => Math.max(longest, end - start), 1));
  const oracle = new Oracle(link);
  const found: string[] = [];
  let version = 0;
  for (const [index, decision] of decisions.entries()) {
    const { action, accepted, tags } = decision;
    const told = `${action} of ${decision.id} at version ${decision.version}`;
    const before = held.get(decision.id);
    version = inHistoryOf(decision.version, version) + (accepted ? 1 : 0);
    if (decision.version !== version) {
      found.push(`${told} is at ${decision.version} where ${version} is due`);
      version = decision.version;
    }
    if (action === 'create' && accepted && before) found.push(`${told}: it was booked before`);
    if (action !== 'create' && !before) found.push(`${told}: it is not there`);
    if (action === 'delete') {
      if (before && !isDeepStrictEqual(before, holdingOf(decision)))
        found.push(`${told} gave back something else`);
      held.delete(decision.id);
      oracle.drop(decision.id);
      continue;
    }
    const others = held.beside(decision);
    if (accepted && tags) {
      found.push(...conflicts(link, decision, others).map((what) => `${told} was accepted: ${what}`));
    } else if (!isOnSnapshot(decision) && couldBeHad(link, decision, others))
      found.push(`${told} was refused, and fits`);
    if (index < most && (accepted || !isOnSnapshot(decision))) {
      const due = oracle.plan(decision, action === 'update' ? decision.id : undefined);
      const same = due.accepted ? isDeepStrictEqual(due.tags, tags) : !accepted;
      if (!same) found.push(`${told}: ${JSON.stringify(tags)}, the oracle says ${JSON.stringify(due)}`);
    }
    if (!accepted) continue;
    held.set(decision.id, holdingOf(decision));
    if (index < most) oracle.hold(decision.id, holdingOf(decision));
  }
  const [row] = await rows('SELECT version FROM link WHERE id = $1', id);
  const last = Number(row?.['version'] ?? 0);
  if (last !== inHistoryOf(last, version)) found.push(`it ends at ${version}, the link is at ${last}`);
  const live = await rows('SELECT * FROM hop WHERE link = $1 AND deleted_ms IS NULL', id);
  for (const each of live) {
    const reservation = String(each['reservation']);
    const replayed = held.get(reservation);
    if (!replayed || !isDeepStrictEqual(replayed, standing(each)))
      found.push(`${reservation} stands otherwise`);
    held.delete(reservation);
  }
  for (const left of held.ids()) found.push(`${left} is held, and there is no such reservation`);
  return found;
}

/** What is held, by id and by when it starts: a long history has more than can be looked through at each step. */
class Held {
  readonly #longest: number;
  readonly #byId = new Map<string, Holding>();
  readonly #byStart = new Map<number, Map<string, Holding>>();

  /** @param longest no period is longer, in milliseconds */
  constructor(longest: number) {
    this.#longest = longest;
  }

  get(id: string): Holding | undefined {
    return this.#byId.get(id);
  }

  ids(): Iterable<string> {
    return this.#byId.keys();
  }

  set(id: string, holding: Holding): void {
    this.delete(id);
    this.#byId.set(id, holding);
    const slot = this.#slot(holding.start);
    const beside = this.#byStart.get(slot) ?? new Map<string, Holding>();
    this.#byStart.set(slot, beside.set(id, holding));
  }

  delete(id: string): void {
    const holding = this.#byId.get(id);
    if (!holding) return;
    this.#byId.delete(id);
    this.#byStart.get(this.#slot(holding.start))?.delete(id);
  }

  /** What others hold that may overlap a demand. */
  beside({ id, start, end }: Decision): Holding[] {
    const others: Holding[] = [];
    for (let slot = this.#slot(start) - 1; slot <= this.#slot(end); slot += 1) {
      for (const [other, holding] of this.#byStart.get(slot) ?? []) if (other !== id) others.push(holding);
    }
    return others;
  }

  #slot(start: number): number {
    return Math.floor(start / this.#longest);
  }
}

function decisionIn(row: SqlRow): Decision {
  const tags = row['tags'];
  return {
    version: Number(row['version']),
    action: String(row['action']),
    accepted: Number(row['accepted']) === 1,
    id: String(row['reservation']),
    start: Number(row['start_ms']),
    end: Number(row['end_ms']),
    bandwidth: Number(row['bandwidth']),
    tags: typeof tags === 'string' ? inOrder(JSON.parse(tags)) : undefined,
    at: Number(row['at_ms']),
  };
}

function inOrder(tags: Record<string, unknown>): Holding['tags'] {
  const [site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag] = TAG_PLACES.map((place) => Number(tags[place]));
  return {
    site1_s_tag: Number(site1_s_tag),
    site1_c_tag: Number(site1_c_tag),
    site2_s_tag: Number(site2_s_tag),
    site2_c_tag: Number(site2_c_tag),
  };
}

function standing(row: SqlRow): Holding {
  const [start, end, bandwidth] = [Number(row['start_ms']), Number(row['end_ms']), Number(row['bandwidth'])];
  return { start, end, bandwidth, tags: inOrder(row) };
}

function holdingOf({ start, end, bandwidth, tags }: Decision): Holding {
  return { start, end, bandwidth, tags: tags ?? inOrder({}) };
}

type Demand = Pick<Holding, 'start' | 'end' | 'bandwidth'>;

function overlapping({ start, end }: Demand, others: readonly Holding[]): Holding[] {
  return others.filter((other) => other.start < end && start < other.end);
}

/** The most that others have of the link at one instant of a period: at its start, or where one of them begins. */
function peak(demand: Demand, others: readonly Holding[]): number {
  const beside = overlapping(demand, others);
  const instants = [demand.start, ...beside.map(({ start }) => Math.max(start, demand.start))];
  const loads = instants.map((at) =>
    beside.reduce((sum, { start, end, bandwidth }) => sum + (start <= at && at < end ? bandwidth : 0), 0),
  );
  return Math.max(...loads);
}

function conflicts(link: Link, decision: Decision, others: readonly Holding[]): string[] {
  const beside = overlapping(decision, others);
  const load = peak(decision, others) + decision.bandwidth;
  const shared = TAG_PLACES.filter((place) =>
    beside.some(({ tags }) => tags[place] === decision.tags?.[place]),
  );
  return [
    ...(load > link.bandwidth ? [`${load} of ${link.bandwidth} Mbps`] : []),
    ...shared.map((place) => `another holds its ${place}`),
  ];
}

function couldBeHad(link: Link, decision: Decision, others: readonly Holding[]): boolean {
  if (peak(decision, others) + decision.bandwidth > link.bandwidth) return false;
  const beside = overlapping(decision, others);
  return TAG_PLACES.every((place) => {
    const [from, to] = link[`${place}s`];
    return new Set(beside.map(({ tags }) => tags[place])).size < to - from + 1;
  });
}
