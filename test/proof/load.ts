import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import { IDEMPOTENCY_KEY_HEADER } from '../../src/contract/routes.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { BATCH_PATH, CONNECTIVITY_PATH } from './addresses.ts';
import type { Answer, HttpCaller } from './caller.ts';
import type { Chance } from './chance.ts';
import { nameInBatch } from './halves.ts';
import {
  type Batch,
  type Booking,
  isSame,
  type Journal,
  type Part,
  type Standing,
  type Terms,
} from './journal.ts';
import { isRouted, markedBandwidth, PAIRS, type Pair } from './links.ts';
import type { Finding, Report } from './report.ts';

const SLOT = 600_000;
/** So many slots of ten minutes are booked in: few, so that everything meets everything. */
const SLOTS = 12;
/**
 * Items of a batch, at most. Each takes slots of its own, so that what one is refused, it would be refused alone: so the
 * replay can tell, which does not know of batches.
 */
const ITEMS = 3;

/** What clients are started with. */
export interface LoadOptions {
  /** Each request takes one of them; several are replicas. */
  callers: readonly HttpCaller[];
  headers: Readonly<Record<string, string>>;
  journal: Journal;
  report: Report;
  chance: Chance;
  /** The first slot, in milliseconds; in the future throughout. */
  dawn: number;
  /** Comes before every key. */
  name: string;
  clients: number;
  /** Looks at every answer. */
  inspect?: (answer: Answer, request: string) => Finding | undefined;
  /** Called when a connection breaks: whether that may be. */
  mayBreak?: () => boolean;
}

/** Clients at work. */
export interface Load {
  /** Lets each client finish its request, and waits for them. */
  stop(): Promise<void>;
}

/** Starts clients that book, change, delete, do several of these as a batch, read and ask again, each one request after the other, until they are stopped. */
export function startLoad(options: LoadOptions): Load {
  let stopped = false;
  const owned = Array.from({ length: options.clients }, (): Booking[] => []);
  // A reservation of an earlier load gets an owner again.
  for (const [index, booking] of [...options.journal.bookings.values()].entries()) {
    const mayStand = booking.phase === 'asked' || (booking.phase === 'booked' && booking.deletion !== 'done');
    if (mayStand) owned[index % options.clients]?.push(booking);
  }
  const clients = owned.map(async (own, index) => {
    const client = new LoadClient(options, `${options.name}-${index}`, own);
    while (!stopped) await client.step();
  });
  return {
    async stop() {
      stopped = true;
      await Promise.all(clients);
    },
  };
}

/** Waits until so many more requests were acknowledged. @throws Error when they are not in time */
export async function acknowledged(report: Report, more: number): Promise<void> {
  const enough = report.acknowledged + more;
  for (const limit = performance.now() + PATIENCE; report.acknowledged < enough; await sleep(5)) {
    if (performance.now() > limit) throw new Error(`nothing is acknowledged: ${JSON.stringify(report)}`);
  }
}

const Booked = v.object({
  id: v.string(),
  start_date: v.string(),
  end_date: v.string(),
  bandwidth: v.number(),
  site1_s_tag: v.number(),
  site1_c_tag: v.number(),
  site2_s_tag: v.number(),
  site2_c_tag: v.number(),
  via: v.optional(v.array(v.string())),
});

/** The answer to a batch. */
const Together = v.object({ items: v.array(v.object({ connectivity: v.nullable(Booked) })) });

class LoadClient {
  readonly #options: LoadOptions;
  readonly #name: string;
  #own: Booking[];
  /** The batch whose answer got lost. Nothing else is asked about its bookings. */
  #lost: Batch | undefined;
  #asked = 0;

  constructor(options: LoadOptions, name: string, own: Booking[]) {
    this.#options = options;
    this.#name = name;
    this.#own = own;
  }

  async step(): Promise<void> {
    const { chance } = this.#options;
    if (this.#lost && chance.is(30)) return this.#together(this.#lost);
    const kept = new Set(this.#lost?.parts.map(({ booking }) => booking));
    this.#own = this.#own.filter(({ phase, deletion }) => phase !== 'none' && deletion !== 'done');
    const own = this.#own.filter((each) => !kept.has(each));
    const open = own.filter(({ phase, deletion }) => phase === 'asked' || deletion === 'asked');
    const unsettled = chance.is(30) ? chance.of(open) : undefined;
    if (unsettled) {
      return unsettled.phase === 'asked' ? this.#book(unsettled) : this.#delete(unsettled);
    }
    const settled = own.filter((each) => !open.includes(each));
    const booked = chance.of(settled);
    const action = chance.below(100);
    if (!this.#lost && action < 20) return this.#together(this.#newBatch(settled));
    if (!booked || action < 50) return this.#book(this.#newBooking());
    if (action < 70) return this.#update(booked);
    if (action < 90) return this.#delete(booked);
    return this.#read(booked);
  }

  /** Half of all is for the hot link. */
  #pair(): Pair {
    const { chance } = this.#options;
    return chance.is(50) ? PAIRS[0] : (chance.of(PAIRS) ?? PAIRS[0]);
  }

  #newBooking(
    pair = this.#pair(),
    {
      key = `${this.#name}-${this.#asked++}`,
      terms = this.#terms(),
      isOnSnapshot = isRouted(pair),
    }: { key?: string; terms?: Terms; isOnSnapshot?: boolean } = {},
  ): Booking {
    const { journal } = this.#options;
    const marked = { ...terms, bandwidth: markedBandwidth(terms.bandwidth, isOnSnapshot) };
    const booking = journal.begin(key, pair, marked);
    this.#own.push(booking);
    return booking;
  }

  #terms(): Terms {
    const { chance, dawn } = this.#options;
    const first = chance.below(SLOTS);
    const start = dawn + first * SLOT;
    const bandwidth = markedBandwidth(10 + chance.below(240), false);
    return { start, end: start + (1 + chance.below(4)) * SLOT, bandwidth };
  }

  /** A batch of creations, and of changes and deletions of bookings. */
  #newBatch(settled: readonly Booking[]): Batch {
    const { chance, dawn, journal } = this.#options;
    const key = `${this.#name}-${this.#asked++}`;
    const free = [...settled];
    const drawn = Array.from({ length: 2 + chance.below(ITEMS - 1) }, (_, index) => {
      const most = SLOTS / ITEMS;
      const first = chance.below(most);
      const start = dawn + (index * most + first) * SLOT;
      const end = start + (1 + chance.below(most - first)) * SLOT;
      const terms = { start, end, bandwidth: 10 + chance.below(240) };
      const booking = chance.is(60) ? undefined : free.splice(chance.below(free.length), 1)[0];
      return { terms, booking, pair: this.#pair() };
    });
    const created = drawn.filter(({ booking }) => !booking);
    // One of them has all of the batch decided on a snapshot first.
    const isOnSnapshot = created.some(({ pair }) => isRouted(pair));
    let made = 0;
    const parts = drawn.map(({ terms, booking, pair }): Part => {
      if (!booking) {
        const name = nameInBatch(key, created.length, made++);
        const begun = this.#newBooking(pair, { key: name, terms, isOnSnapshot });
        return { action: 'create', booking: begun, terms: begun.states[0] ?? terms };
      }
      if (chance.is(50)) return { action: 'delete', booking };
      const marked = markedBandwidth(terms.bandwidth, isOnSnapshot);
      // Another bandwidth than before: so it shows whether it was done.
      const bandwidth = marked === booking.states[0]?.bandwidth ? marked + 250 : marked;
      return { action: 'update', booking, terms: { ...terms, bandwidth } };
    });
    return journal.beginBatch(key, parts);
  }

  async #together(batch: Batch): Promise<void> {
    const { key, parts } = batch;
    // Also what an update without an answer may have left; where the batch is sent again, its own terms are among them.
    const before = new Map(
      parts.map(({ booking, terms }) => [booking, booking.states.filter((state) => state !== terms)]),
    );
    for (const { action, booking, terms } of parts) {
      if (action === 'delete') booking.deletion = 'asked';
      if (action === 'update' && terms) booking.states = [...(before.get(booking) ?? []), terms];
    }
    this.#lost = batch;
    const items = parts.map(({ action, booking, terms }) => ({
      action,
      ...(action === 'create' ? { ...booking.pair, name: booking.key } : { id: booking.id }),
      ...(terms ? termsOf(terms) : {}),
    }));
    const answer = await this.#ask('POST', BATCH_PATH, { key, body: { items, tokens: [] } });
    if (!answer) return;
    this.#lost = undefined;
    if (answer.status === 200) {
      batch.phase = 'done';
      this.#made(batch, answer);
      return;
    }
    batch.phase = 'none';
    for (const { action, booking } of parts) {
      if (action === 'create') booking.phase = 'none';
      if (action === 'update') booking.states = before.get(booking) ?? [];
      if (action === 'delete') booking.deletion = 'none';
    }
    if (answer.status === 404) this.#find('lost', `a batch: ${answer.text.slice(0, 300)}`);
    else if (answer.status !== 422) this.#unexpected('a batch', answer);
  }

  /** A batch was made, as a whole. */
  #made({ key, parts }: Batch, answer: Answer): void {
    const { items } = v.parse(Together, JSON.parse(answer.text));
    if (items.length !== parts.length) this.#find('wrong', `${key} got ${answer.text}`);
    for (const [index, { action, booking, terms }] of parts.entries()) {
      const left = items[index]?.connectivity ?? undefined;
      if (action === 'delete') booking.deletion = 'done';
      if (action === 'delete' || !left || !terms) {
        if ((action === 'delete') !== (left === undefined)) this.#find('wrong', `${key} got ${answer.text}`);
        continue;
      }
      const { id, ...standing } = standingOf(left);
      if (!isSame(terms, standing) || (action === 'update' && id !== booking.id)) {
        this.#find('wrong', `${key} got ${answer.text}`);
      }
      booking.phase = 'booked';
      booking.id = id;
      booking.states = [standing];
    }
  }

  async #book(booking: Booking): Promise<void> {
    const [terms] = booking.states;
    if (!terms) return;
    booking.phase = 'asked';
    const answer = await this.#send('POST', booking, terms);
    if (!answer) return;
    const { status } = answer;
    if (status === 201 || status === 200) {
      const { id, ...standing } = standingIn(answer);
      if (!isSame(terms, standing)) this.#find('wrong', `${booking.key} got ${answer.text}`);
      booking.phase = 'booked';
      booking.id = id;
      booking.states = [standing];
    } else if (status === 422) booking.phase = 'none';
    else this.#unexpected('POST', answer);
  }

  async #update(booking: Booking): Promise<void> {
    const terms = this.#terms();
    const before = booking.states;
    booking.states = [...before, terms];
    const answer = await this.#send('PUT', booking, terms);
    if (!answer) return;
    if (answer.status === 200) {
      const { id, ...standing } = standingIn(answer);
      if (id !== booking.id || !isSame(terms, standing)) {
        this.#find('wrong', `a change of ${booking.id} was answered with ${answer.text}`);
      }
      booking.states = [standing];
    } else if (answer.status === 422) booking.states = before;
    else this.#missing(booking, 'PUT', answer);
  }

  async #delete(booking: Booking): Promise<void> {
    const isRepeat = booking.deletion === 'asked';
    booking.deletion = 'asked';
    const answer = await this.#send('DELETE', booking);
    if (!answer) return;
    if (answer.status === 204 || (isRepeat && answer.status === 404)) booking.deletion = 'done';
    else this.#missing(booking, 'DELETE', answer);
  }

  async #read(booking: Booking): Promise<void> {
    const answer = await this.#send('GET', booking);
    if (!answer) return;
    if (answer.status !== 200) {
      this.#missing(booking, 'GET', answer);
      return;
    }
    const { id: _, ...standing } = standingIn(answer);
    if (!booking.states.some((state) => isSame(state, standing))) {
      this.#find(
        'lost',
        `${booking.id} is read as ${answer.text}, not as any of ${JSON.stringify(booking.states)}`,
      );
    }
  }

  /** Asks about one booking. @returns undefined when the outcome is unknown */
  #send(method: string, booking: Booking, terms?: Terms): Promise<Answer | undefined> {
    const path = method === 'POST' ? CONNECTIVITY_PATH : `${CONNECTIVITY_PATH}/${booking.id}`;
    return this.#ask(method, path, {
      ...(method === 'POST' ? { key: booking.key } : {}),
      ...(terms ? { body: { ...booking.pair, ...termsOf(terms), tokens: [] } } : {}),
    });
  }

  /** @param key an idempotency key @returns undefined when the outcome is unknown */
  async #ask(
    method: string,
    path: string,
    { key, body }: { key?: string; body?: object },
  ): Promise<Answer | undefined> {
    const { callers, headers, chance, report, inspect, mayBreak } = this.#options;
    const caller = chance.of(callers);
    if (!caller) throw new RangeError('there is no server');
    report.requests += 1;
    try {
      const answer = await caller.send(method, path, {
        headers: {
          ...headers,
          ...(body ? { 'content-type': 'application/json' } : {}),
          ...(key === undefined ? {} : { [IDEMPOTENCY_KEY_HEADER]: key }),
        },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      const finding = inspect?.(answer, `${method} ${path}`);
      if (finding) report.findings.push(finding);
      if (answer.status === 503 || answer.status === 429) {
        report.unanswered += 1;
        await sleep(50);
        return undefined;
      }
      if (answer.status < 300) report.acknowledged += 1;
      else report.refused += 1;
      return answer;
    } catch (error) {
      report.unanswered += 1;
      if (mayBreak?.() === false) this.#find('wrong', `${method} ${path} got no answer: ${String(error)}`);
      // Nobody listens there until it is started again.
      await sleep(10);
      return undefined;
    }
  }

  #missing(booking: Booking, method: string, answer: Answer): void {
    if (answer.status !== 404) this.#unexpected(method, answer);
    // Whose deletion was asked for may be gone already.
    else if (booking.deletion !== 'asked' || method === 'DELETE') {
      this.#find('lost', `${method} of ${booking.id}, which was booked, found nothing`);
    }
  }

  #unexpected(method: string, { status, text }: Answer): void {
    this.#find('wrong', `${method} was answered with ${status} ${text.slice(0, 300)}`);
  }

  #find(kind: Finding['kind'], what: string): void {
    this.#options.report.findings.push({ kind, what });
  }
}

function termsOf({ start, end, bandwidth }: Terms): Record<string, string> {
  return {
    bandwidth: String(bandwidth),
    start_date: new Date(start).toISOString(),
    end_date: new Date(end).toISOString(),
  };
}

function standingIn({ text }: Answer): Standing & { id: string } {
  return standingOf(v.parse(Booked, JSON.parse(text)));
}

function standingOf(booked: v.InferOutput<typeof Booked>): Standing & { id: string } {
  const { id, start_date, end_date, bandwidth, via, ...tags } = booked;
  const { site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag } = tags;
  return {
    id,
    start: Date.parse(start_date),
    end: Date.parse(end_date),
    bandwidth,
    tags: [site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag],
    ...(via && { via }),
  };
}
