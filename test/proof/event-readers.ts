import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import type { StreamEvent } from '../../src/client/events.ts';
import { LAST_EVENT_ID_HEADER } from '../../src/contract/events.ts';
import { ReservationEvent } from '../../src/contract/reservation.ts';
import type { SqlRow } from '../../src/store/sql.ts';
import type { Rows } from '../allocator/sweep.ts';
import { StreamReader } from '../fixtures/events.ts';
import { EVENTS } from '../fixtures/service.ts';
import type { Listening } from '../fixtures/wire.ts';
import type { Finding } from './report.ts';

/** Cuts come after 1 byte up to so many, which are more than a frame has. */
export const LONGEST_CUT = 1200;
/** The pause before a reader comes back, in milliseconds. */
const PAUSE = 5;

/** What an event says, or a row: equal texts for the same reservation in the same state. */
type Standing = string;

/** What readers may be told: by the rows of the audit, past everything of ours. */
export class Known {
  readonly #changes = new Set<Standing>();
  #last = 0;

  /** Reads what was decided since the last time. */
  async read(rows: Rows): Promise<void> {
    const found = await rows(
      `SELECT seq, action, reservation, start_ms, end_ms, bandwidth FROM audit
       WHERE accepted = 1 AND seq > $1 ORDER BY seq`,
      this.#last,
    );
    for (const row of found) {
      this.#last = Number(row['seq']);
      if (row['action'] === 'delete') this.#changes.add(`${row['reservation']} deleted`);
      else this.#changes.add(`${row['reservation']} ${standingOf(row)}`);
    }
  }

  /** Whether a change was made that an event tells of. */
  has(change: string): boolean {
    return this.#changes.has(change);
  }
}

/**
 * A reader of events, who comes back at its cursor, to any of some servers: the connection is cut after a byte more each time,
 * in turn from its beginning and from the first cursor on. What it knows comes from events alone.
 */
export class EventReader {
  /** How each reservation stands, by its id. */
  readonly standings = new Map<string, Standing>();
  /** What it was told since it was looked at last. */
  readonly told = new Set<string>();
  readonly findings: Finding[] = [];
  /** Whether its connections are cut. */
  isCutting = true;
  cuts = 0;
  #cursor: string | undefined;
  #isOver = false;
  #cut: () => void = () => undefined;
  readonly #done: Promise<void>;

  /**
   * @param serverOf chooses the server of the next connection
   * @param headers tokens
   * @param first after how many bytes more than one the first connection is cut
   */
  constructor(serverOf: () => Listening, headers: () => Promise<Record<string, string>>, first: number) {
    this.#done = this.#run(serverOf, headers, first);
  }

  /** Resolves when the stream has begun: what comes next is told. */
  async begun(): Promise<void> {
    while (this.#cursor === undefined) await sleep(PAUSE);
  }

  async close(): Promise<void> {
    this.#isOver = true;
    this.#cut();
    await this.#done;
  }

  async #run(
    serverOf: () => Listening,
    headers: () => Promise<Record<string, string>>,
    first: number,
  ): Promise<void> {
    for (let next = 2 * first; !this.#isOver; next += 1) {
      const cut = 1 + (Math.floor(next / 2) % LONGEST_CUT);
      // The first of all must begin.
      const isFromCursor = next % 2 === 0 || this.#cursor === undefined;
      try {
        await this.#read(serverOf(), await headers(), { cut, isFromCursor });
      } catch {
        // The server is away.
      }
      await sleep(PAUSE);
    }
  }

  /** Reads a stream until it ends or is cut. @param cut after how many bytes */
  #read(
    { port, base }: Listening,
    headers: Record<string, string>,
    { cut, isFromCursor }: { cut: number; isFromCursor: boolean },
  ): Promise<void> {
    const cursor = this.#cursor === undefined ? {} : { [LAST_EVENT_ID_HEADER]: this.#cursor };
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const outgoing = request({
      ...{ host: '127.0.0.1', port, path: EVENTS, agent: false },
      headers: { host: new URL(base).host, ...headers, ...cursor },
    });
    this.#cut = () => outgoing.destroy();
    outgoing.on('error', reject).on('close', () => resolve());
    outgoing.on('response', (incoming) => {
      if (incoming.statusCode === 410) this.findings.push({ kind: 'lost', what: `410 for ${this.#cursor}` });
      if (incoming.statusCode !== 200) outgoing.destroy();
      const parser = new StreamReader();
      let left = isFromCursor ? Infinity : cut;
      incoming.on('error', reject);
      incoming.on('data', (chunk: Buffer) => {
        for (const byte of chunk.keys()) {
          this.#take(parser, chunk.subarray(byte, byte + 1));
          if (left === Infinity && parser.lastId !== undefined) left = cut;
          left -= 1;
          if (left > 0 || !this.isCutting) continue;
          this.cuts += 1;
          outgoing.destroy();
          break;
        }
      });
    });
    outgoing.end();
    return promise;
  }

  #take(parser: StreamReader, bytes: Uint8Array): void {
    const before = parser.lastId;
    for (const event of parser.push(bytes)) this.#apply(event);
    if (parser.lastId !== before) this.#cursor = parser.lastId;
  }

  #apply({ event, data }: StreamEvent): void {
    if (event !== 'reservation') return;
    const { type, reservation } = v.parse(ReservationEvent, JSON.parse(data));
    const { id, start_date, end_date, bandwidth } = reservation;
    const [start_ms, end_ms] = [Date.parse(start_date), Date.parse(end_date)];
    const standing = standingOf({ start_ms, end_ms, bandwidth });
    this.told.add(`${id} ${type === 'deleted' ? type : standing}`);
    if (type === 'deleted') this.standings.delete(id);
    else this.standings.set(id, standing);
  }
}

/** How each reservation stands, by the rows. */
export async function standingsIn(rows: Rows): Promise<Map<string, Standing>> {
  const found = await rows(
    'SELECT id, start_ms, end_ms, bandwidth FROM reservation WHERE deleted_ms IS NULL ORDER BY id',
  );
  return new Map(found.map((row) => [String(row['id']), standingOf(row)]));
}

/** What is wrong with what a reader knows, and with what it was told. */
export function amiss(
  { standings, told }: Pick<EventReader, 'standings' | 'told'>,
  due: ReadonlyMap<string, Standing>,
  known: Pick<Known, 'has'>,
): Finding[] {
  const lost = [...due].filter(([id, standing]) => standings.get(id) !== standing);
  const left = [...standings].filter(([id]) => !due.has(id));
  return [
    ...lost.map(([id, standing]): Finding => {
      return { kind: 'lost', what: `no reader knows that ${id} is ${standing}, but ${standings.get(id)}` };
    }),
    ...left.map(([id]): Finding => ({ kind: 'lost', what: `no reader knows that ${id} is gone` })),
    ...[...told]
      .filter((change) => !known.has(change))
      .map((change): Finding => ({ kind: 'doubled', what: `told, and never decided: ${change}` })),
  ];
}

function standingOf({ start_ms, end_ms, bandwidth }: SqlRow): Standing {
  return `${start_ms} to ${end_ms}, ${bandwidth} Mbps`;
}
