import { Pool } from 'undici';
import { routePath } from '../../src/contract/routes.ts';
import { ratePerSecond } from './measure.ts';
import type { Random } from './seeded.ts';
import type { SignedIn } from './serving.ts';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
/** Bookings start within so long. */
const HORIZON = 60 * DAY;

/** Connections that are kept alive. */
export const CONNECTIONS = 16;

/** Two sites that are connected. */
export interface Pair {
  site1: string;
  site2: string;
}

/** Sends bookings to a server over {@link CONNECTIONS} connections, each one request at a time. */
export class LoadGenerator {
  readonly #pool: Pool;
  readonly #who: SignedIn;
  readonly #random: Random;

  constructor(url: string, who: SignedIn, random: Random) {
    this.#pool = new Pool(url, { connections: CONNECTIONS, pipelining: 1 });
    this.#who = who;
    this.#random = random;
  }

  /** Reads a path for so long. @returns replies per second @throws Error when one is no 200 */
  async reads(path: string, seconds: number): Promise<number> {
    return ratePerSecond({ inFlight: CONNECTIONS, seconds }, () => this.ask('GET', path));
  }

  /** One request as the person. @throws Error when it is answered with an error */
  async ask(method: 'GET' | 'PUT', path: string, body?: string): Promise<string> {
    const headers = { ...this.#who.headers, accept: 'application/json' };
    const reply = await this.#pool.request({
      path,
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    });
    const text = await reply.body.text();
    if (reply.statusCode !== 200) throw new Error(`${path}: ${reply.statusCode} ${text}`);
    return text;
  }

  /** Books for so long. @param pairs the links, chosen at random @returns bookings per second */
  async rate(pairs: readonly Pair[], seconds: number): Promise<number> {
    return ratePerSecond({ inFlight: CONNECTIONS, seconds }, () =>
      this.book(pairs[Math.floor(this.#random() * pairs.length)]),
    );
  }

  /** Asks for so long for all that a link can carry, which others have a part of. @returns refusals per second */
  async refusals(pair: Pair, seconds: number): Promise<number> {
    return ratePerSecond({ inFlight: CONNECTIONS, seconds }, () => this.#request(pair, '100000', 422));
  }

  /** One booking of 1 to 3 Mbps within two months. @throws Error when it is answered with anything but 201 */
  async book(pair: Pair | undefined): Promise<void> {
    await this.#request(pair, String(1 + Math.floor(this.#random() * 3)), 201);
  }

  /** Books 1 Mbps for all of the time that is booked in, so that no other booking gets all of the link. */
  async hold(pair: Pair): Promise<void> {
    const start = Date.now() + MINUTE;
    await this.#request(pair, '1', 201, { start, end: start + HORIZON + DAY });
  }

  async #request(
    pair: Pair | undefined,
    bandwidth: string,
    due: number,
    { start, end } = this.#period(),
  ): Promise<void> {
    const body = {
      ...pair,
      bandwidth,
      start_date: new Date(start).toISOString(),
      end_date: new Date(end).toISOString(),
      tokens: this.#who.tokens,
    };
    const reply = await this.#pool.request({
      path: routePath('createReservation'),
      method: 'POST',
      headers: this.#who.headers,
      body: JSON.stringify(body),
    });
    const text = await reply.body.text();
    if (reply.statusCode !== due) throw new Error(`${reply.statusCode}: ${text}`);
  }

  #period(): { start: number; end: number } {
    const start = Date.now() + MINUTE + Math.floor(this.#random() * HORIZON);
    return { start, end: start + MINUTE * (15 + Math.floor(this.#random() * 75)) };
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }
}
