import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import { IDEMPOTENCY_KEY_HEADER } from '../../src/contract/routes.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { CONNECTIVITY_PATH } from './addresses.ts';
import type { Chance } from './chance.ts';
import type { Answer, Door } from './door.ts';
import { type Booking, isSame, type Journal, type Standing, type Terms } from './journal.ts';
import { LINKS } from './links.ts';
import type { Finding, Report } from './report.ts';

const SLOT = 600_000;
/** So many slots of ten minutes are booked in: few, so that everything meets everything. */
const SLOTS = 12;

/** What clients are started with. */
export interface LoadOptions {
  /** Each request takes one of them; several are replicas. */
  doors: readonly Door[];
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

/** Starts clients that book, change, delete, read and ask again, each one request after the other, until they are stopped. */
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
});

class LoadClient {
  readonly #options: LoadOptions;
  readonly #name: string;
  #own: Booking[];
  #asked = 0;

  constructor(options: LoadOptions, name: string, own: Booking[]) {
    this.#options = options;
    this.#name = name;
    this.#own = own;
  }

  async step(): Promise<void> {
    const { chance } = this.#options;
    this.#own = this.#own.filter(({ phase, deletion }) => phase !== 'none' && deletion !== 'done');
    const open = this.#own.filter(({ phase, deletion }) => phase === 'asked' || deletion === 'asked');
    const unsettled = chance.is(30) ? chance.of(open) : undefined;
    if (unsettled) {
      return unsettled.phase === 'asked' ? this.#book(unsettled) : this.#delete(unsettled);
    }
    const booked = chance.of(this.#own.filter((each) => !open.includes(each)));
    const action = chance.below(100);
    if (!booked || action < 45) return this.#book(this.#newBooking());
    if (action < 70) return this.#update(booked);
    if (action < 90) return this.#delete(booked);
    return this.#read(booked);
  }

  #newBooking(): Booking {
    const { chance, journal } = this.#options;
    // Half of all is for the hot link.
    const link = chance.is(50) ? 0 : chance.below(LINKS.length);
    const booking = journal.begin(`${this.#name}-${this.#asked++}`, link, this.#terms());
    this.#own.push(booking);
    return booking;
  }

  #terms(): Terms {
    const { chance, dawn } = this.#options;
    const first = chance.below(SLOTS);
    const start = dawn + first * SLOT;
    return { start, end: start + (1 + chance.below(4)) * SLOT, bandwidth: 10 + chance.below(240) };
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

  /** @returns undefined when the outcome is unknown */
  async #send(method: string, booking: Booking, terms?: Terms): Promise<Answer | undefined> {
    const { doors, headers, chance, report, inspect, mayBreak } = this.#options;
    const door = chance.of(doors);
    if (!door) throw new RangeError('there is no server');
    const path = method === 'POST' ? CONNECTIVITY_PATH : `${CONNECTIVITY_PATH}/${booking.id}`;
    report.requests += 1;
    try {
      const answer = await door.send(method, path, {
        headers: {
          ...headers,
          ...(terms ? { 'content-type': 'application/json' } : {}),
          ...(method === 'POST' ? { [IDEMPOTENCY_KEY_HEADER]: booking.key } : {}),
        },
        ...(terms ? { body: JSON.stringify(bodyOf(booking.link, terms)) } : {}),
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

function bodyOf(index: number, { start, end, bandwidth }: Terms): Record<string, unknown> {
  const { site1, site2 } = LINKS[index] ?? LINKS[0];
  return {
    site1,
    site2,
    bandwidth: String(bandwidth),
    start_date: new Date(start).toISOString(),
    end_date: new Date(end).toISOString(),
    tokens: [],
  };
}

function standingIn({ text }: Answer): Standing & { id: string } {
  const { id, start_date, end_date, bandwidth, ...tags } = v.parse(Booked, JSON.parse(text));
  const { site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag } = tags;
  return {
    id,
    start: Date.parse(start_date),
    end: Date.parse(end_date),
    bandwidth,
    tags: [site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag],
  };
}
