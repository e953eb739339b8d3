import type { SqlRow } from '../../src/store/sql.ts';
import type { Rows } from '../allocator/sweep.ts';
import { WITH_HOPS } from '../store/one-link.ts';
import type { Pair } from './links.ts';
import type { Finding } from './report.ts';

/** What a reservation is for: milliseconds and Mbps. */
export interface Terms {
  start: number;
  end: number;
  bandwidth: number;
}

/** Terms as they may stand on disk; with the four tags and the sites between where an answer named them. */
export interface Standing extends Terms {
  tags?: readonly unknown[];
  via?: readonly string[];
}

/** One requested reservation and its known state. Only one client at a time sends requests for it. */
export interface Booking {
  readonly key: string;
  readonly pair: Pair;
  /** `asked`: unknown; `none`: it was refused, or a check found that nothing was made. */
  phase: 'asked' | 'booked' | 'none';
  id: string | undefined;
  /** What may stand on disk: as acknowledged last, then every change that was asked for since without an answer. */
  states: Standing[];
  deletion: 'none' | 'asked' | 'done';
}

/** A part of a batch. */
export interface Part {
  action: 'create' | 'update' | 'delete';
  booking: Booking;
  /** What a creation or an update asks for. */
  terms?: Terms;
}

/** A batch that was asked for. While its outcome is unknown, nothing else is asked about its bookings. */
export interface Batch {
  /** Its idempotency key. */
  readonly key: string;
  readonly parts: readonly Part[];
  phase: 'asked' | 'done' | 'none';
}

/**
 * What was asked for and what was answered, written down by those who asked; to be held against the database, which
 * may know more than was answered, and never less (THREATS.md 39).
 */
export class Journal {
  readonly bookings = new Map<string, Booking>();
  readonly batches = new Map<string, Batch>();
  /** Of the requests without an answer: how many reservations a check found, and how many it did not. */
  readonly unanswered = { found: 0, absent: 0 };
  /** The same of batches. */
  readonly unansweredBatches = { found: 0, absent: 0 };

  /** Writes down a booking that is about to be asked for. */
  begin(key: string, pair: Pair, terms: Terms): Booking {
    const booking: Booking = {
      key,
      pair,
      phase: 'asked',
      id: undefined,
      states: [terms],
      deletion: 'none',
    };
    this.bookings.set(key, booking);
    return booking;
  }

  /** Writes down a batch that is about to be asked for. @param parts two at least */
  beginBatch(key: string, parts: readonly Part[]): Batch {
    const batch: Batch = { key, parts, phase: 'asked' };
    this.batches.set(key, batch);
    return batch;
  }

  /**
   * Holds the journal against the database while nothing is under way, and takes over what it finds: what was not known
   * is known from then on, and may not change again without being asked for.
   */
  async check(rows: Rows): Promise<Finding[]> {
    const found: Finding[] = [];
    const seen = new Set<string>();
    // Each request has one key; a reservation without a key, or with two, is an error. What a batch makes has a name.
    const hops = await rows(
      `SELECT coalesce(r.name, k.key) AS key, r.* FROM (${WITH_HOPS}) AS r
       LEFT JOIN idempotency_key k ON k.reservation = r.id AND k.items IS NULL ORDER BY r.id, r.position`,
    );
    // A row for each key, should there be two.
    const kept = [...Map.groupBy(hops, ({ id, key }) => `${id} ${key}`).values()].map(atItsEnds);
    found.push(...(await this.#checkBatches(rows, kept)));
    for (const row of kept) {
      const booking = this.bookings.get(String(row['key']));
      if (!booking) found.push({ kind: 'doubled', what: `nobody asked for ${row['id']}` });
      else if (seen.has(String(row['id'])))
        found.push({ kind: 'doubled', what: `${row['id']} has two keys` });
      else {
        if (booking.phase === 'asked') this.unanswered.found += 1;
        found.push(...settle(booking, row));
      }
      seen.add(String(row['id']));
      if (booking) seen.add(booking.key);
    }
    for (const booking of this.bookings.values()) {
      if (seen.has(booking.key)) continue;
      if (booking.phase === 'booked') found.push({ kind: 'lost', what: `${booking.id} is not there` });
      if (booking.phase === 'asked') this.unanswered.absent += 1;
      booking.phase = 'none';
    }
    return found;
  }

  /** Batches are there as a whole or not at all, with their key. @param kept a row for each reservation, with its `key` */
  async #checkBatches(rows: Rows, kept: readonly SqlRow[]): Promise<Finding[]> {
    const found: Finding[] = [];
    const rowOf = new Map(kept.map((row) => [String(row['key']), row]));
    const keys = await rows('SELECT key, items FROM idempotency_key WHERE items IS NOT NULL');
    const items = new Map(keys.map((row) => [String(row['key']), String(row['items'])]));
    for (const batch of this.batches.values()) {
      const { key, parts, phase } = batch;
      const wrong = (what: string): void =>
        void found.push({ kind: 'wrong', what: `the batch ${key}: ${what}` });
      if (phase === 'asked') {
        const done = parts.map((part) => isDone(part, rowOf.get(part.booking.key)));
        if (new Set(done).size > 1) wrong(`half of it is there: ${done}`);
        batch.phase = done.includes(true) ? 'done' : 'none';
        this.unansweredBatches[batch.phase === 'done' ? 'found' : 'absent'] += 1;
      }
      const ids = parts.map(({ booking }) => rowOf.get(booking.key)?.['id']).join(' ');
      const due = batch.phase === 'done' ? ids : undefined;
      if (items.get(key) !== due) wrong(`its key stands for ${items.get(key)}, and it made ${due}`);
      // Its bookings are looked at from now on; it is not asked for again.
      this.batches.delete(key);
    }
    return found;
  }
}

/** For a report: that both come up shows that kills fell before and after commits. */
export function unansweredNote({ unanswered: { found, absent }, unansweredBatches }: Journal): string {
  return [
    `of bookings without an answer ${found} stood on disk, ${absent} did not`,
    `of batches ${unansweredBatches.found} did, ${unansweredBatches.absent} did not`,
  ].join('; ');
}

/** Whether a part is in the row of its booking. */
function isDone({ action, terms }: Part, row: SqlRow | undefined): boolean {
  if (!row) return false;
  if (action === 'delete') return row['deleted_ms'] !== null;
  return terms !== undefined && isSame(terms, standingOf(row));
}

function settle(booking: Booking, row: SqlRow): Finding[] {
  const { phase, id = row['id'], deletion, states } = booking;
  const found: Finding[] = [];
  const actual = standingOf(row);
  if (phase === 'none') {
    found.push({ kind: 'doubled', what: `${row['id']} was refused, or had not been made, and is there` });
  }
  if (id !== row['id']) {
    found.push({ kind: 'doubled', what: `${row['id']} stands in the place of ${id}, which was answered` });
  }
  const isGone = row['deleted_ms'] !== null;
  if (isGone && deletion === 'none') {
    found.push({ kind: 'lost', what: `${id} is deleted, which nobody asked for` });
  }
  if (!isGone && deletion === 'done') {
    found.push({ kind: 'lost', what: `${id} is back, though its deletion was answered` });
  }
  if (!states.some((state) => isSame(state, actual))) {
    found.push({
      kind: 'lost',
      what: `${id} stands as ${JSON.stringify(actual)}, not as any of ${JSON.stringify(states)}`,
    });
  }
  booking.phase = 'booked';
  booking.id = String(row['id']);
  booking.states = [actual];
  booking.deletion = isGone ? 'done' : 'none';
  return found;
}

/** One row of a reservation with hops: with the tags at its two sites, and the sites between. @param hops in order */
function atItsEnds(hops: readonly SqlRow[]): SqlRow {
  const sites = [String(hops[0]?.['site1'])];
  for (const { link } of hops) {
    sites.push(
      String(link)
        .split('~')
        .find((site) => site !== sites.at(-1)) ?? '',
    );
  }
  const tagsOf = (hop: SqlRow | undefined, site: string | undefined): unknown[] => {
    const end = String(hop?.['link']).startsWith(`${site}~`) ? 'site1' : 'site2';
    return [hop?.[`${end}_s_tag`], hop?.[`${end}_c_tag`]];
  };
  const tags = [...tagsOf(hops[0], sites[0]), ...tagsOf(hops.at(-1), sites.at(-1))];
  return { ...hops[0], tags: tags.join(), via: sites.slice(1, -1).join() };
}

function standingOf(row: SqlRow): Standing & { tags: unknown[] } {
  const via = String(row['via']);
  return {
    start: Number(row['start_ms']),
    end: Number(row['end_ms']),
    bandwidth: Number(row['bandwidth']),
    tags: String(row['tags']).split(','),
    ...(via === '' ? {} : { via: via.split(',') }),
  };
}

/** Whether a reservation stands as it may. Tags and route count where they are known. */
export function isSame(expected: Standing, actual: Standing): boolean {
  const { start, end, bandwidth, tags, via } = expected;
  if (start !== actual.start || end !== actual.end || bandwidth !== actual.bandwidth) return false;
  if (tags !== undefined && actual.tags !== undefined && via?.join() !== actual.via?.join()) return false;
  return tags === undefined || actual.tags === undefined || tags.join() === actual.tags.join();
}
