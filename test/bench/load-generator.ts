import { Pool } from 'undici';
import { routePath } from '../../src/contract/routes.ts';
import { ratePerSecond } from './measure.ts';
import type { Random } from './seeded.ts';
import type { SignedIn } from './serving.ts';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

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

  /** Books for so long. @param pairs the links, chosen at random @returns bookings per second */
  async rate(pairs: readonly Pair[], seconds: number): Promise<number> {
    return ratePerSecond({ inFlight: CONNECTIONS, seconds }, () =>
      this.book(pairs[Math.floor(this.#random() * pairs.length)]),
    );
  }

  /** One booking of 1 to 3 Mbps within two months. @throws Error when it is answered with anything but 201 */
  async book(pair: Pair | undefined): Promise<void> {
    const start = Date.now() + MINUTE + Math.floor(this.#random() * 60 * DAY);
    const body = {
      ...pair,
      bandwidth: String(1 + Math.floor(this.#random() * 3)),
      start_date: new Date(start).toISOString(),
      end_date: new Date(start + MINUTE * (15 + Math.floor(this.#random() * 75))).toISOString(),
      tokens: this.#who.tokens,
    };
    const reply = await this.#pool.request({
      path: routePath('createReservation'),
      method: 'POST',
      headers: this.#who.headers,
      body: JSON.stringify(body),
    });
    const text = await reply.body.text();
    if (reply.statusCode !== 201) throw new Error(`${reply.statusCode}: ${text}`);
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }
}
