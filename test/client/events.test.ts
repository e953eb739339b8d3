import { expect, test } from 'vitest';
import { News, type OpenEvents, reservationEvent, type StreamEvent } from '../../src/client/events.ts';
import { Failure } from '../../src/contract/failure.ts';
import type { ReservationEvent } from '../../src/contract/reservation.ts';
import { addressOf, booking, openService, reservationIn } from '../fixtures/service.ts';

const service = await openService();
const lead = await service.as('lead');
const url = `${service.base}${addressOf('events')}`;

/** A pause that lasts until something is told. */
const forever = (_: number, signal?: AbortSignal): Promise<void> =>
  new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
const atOnce = async (): Promise<void> => undefined;
/** Waits for what is told, and not at all after a failure. */
const pauseBetween = (_: number, signal?: AbortSignal) => (signal ? forever(_, signal) : atOnce());
/** A line of data that does not end its event. */
const LONG_LINE = `data: ${'x'.repeat(65_536)}\n`;

/** Breaks off the stream that {@link cutting} has opened last. */
let breakOff = (): void => undefined;

/** Opens streams that break off after so many bytes of what follows their beginning. @param most undefined: they go on */
function cutting(most: () => number | undefined): OpenEvents {
  return async (since, signal) => {
    const query = since === undefined ? '' : `?since=${since}`;
    const reply = await service.fetch(new Request(`${url}${query}`, { headers: lead.headers, signal }));
    if (!reply.ok) throw new Failure('unavailable', 'refused', { httpStatus: reply.status });
    const reader = reply.body?.getReader();
    let left = most() ?? Number.POSITIVE_INFINITY;
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        breakOff = () => {
          controller.error(new Error('broken off'));
          reader?.cancel().catch(() => undefined);
        };
      },
      async pull(controller) {
        const read = await reader?.read();
        if (!read || read.done) return controller.close();
        const part = read.value.subarray(0, Math.min(left, read.value.length));
        left -= part.length;
        if (part.length > 0) controller.enqueue(part);
        if (part.length === read.value.length) return;
        await reader?.cancel();
        controller.error(new Error('cut'));
      },
      cancel: () => reader?.cancel(),
    });
    return new Response(body, { headers: reply.headers });
  };
}

/** The reservations as who looks and is told knows them. */
class Known {
  readonly rates = new Map<string, number>();

  async look(): Promise<void> {
    const { items } = JSON.parse((await lead.list('limit=1000')).text);
    this.rates.clear();
    for (const { id, bandwidth } of items) this.rates.set(id, bandwidth);
  }

  tell(told: readonly ReservationEvent[]): void {
    for (const { type, reservation } of told) {
      if (type === 'deleted') this.rates.delete(reservation.id);
      else this.rates.set(reservation.id, reservation.bandwidth);
    }
  }
}

test('wherever a frame is cut, nothing is lost: what is known is what the service has', async () => {
  const { id } = reservationIn(await lead.book(booking()));
  const known = new Known();
  let cut: number | undefined;
  const news = new News(
    cutting(() => cut),
    reservationEvent,
  );
  await news.mark();
  await known.look();
  // A frame with its cursor and the beginning of the stream has some 700 bytes.
  for (let at = 0; at < 900; at += 7) {
    cut = at;
    const rate = 100 + at;
    await lead.update(id, booking({ bandwidth: String(rate) }));
    for (let waits = 0; known.rates.get(id) !== rate; waits += 1) {
      if (waits > 0) cut = undefined;
      const told = await news.wait(Number.POSITIVE_INFINITY, waits > 0 ? forever : atOnce);
      if (told) known.tell(told);
      else if (await news.mark()) await known.look();
    }
    // The next one is cut too.
    breakOff();
  }
  const { rates } = known;
  await known.look();
  expect(known.rates).toEqual(rates);
  news.close();
});

test.each([404, 405, 501])(
  'where the service has no streams (%i), a look is due every 15 s',
  async (httpStatus) => {
    let asked = 0;
    const news = new News(async () => {
      asked += 1;
      throw new Failure('not_found', 'nothing there', { httpStatus });
    }, reservationEvent);
    const pauses: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      expect(await news.mark()).toBe(false);
      expect(
        await news.wait(Number.POSITIVE_INFINITY, async (pause) => void pauses.push(pause)),
      ).toBeUndefined();
    }
    expect(pauses).toEqual([15_000, 15_000, 15_000, 15_000, 15_000]);
    expect(asked).toBe(1);
  },
);

test('while streams fail, looks are due after pauses that grow to 15 s', async () => {
  const news = new News(async () => {
    throw new Failure('network', 'away');
  }, reservationEvent);
  const pauses: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    await news.mark();
    await news.wait(Number.POSITIVE_INFINITY, async (pause) => void pauses.push(pause));
  }
  expect(pauses).toEqual([2000, 4000, 8000, 15_000, 15_000]);
});

test('a cursor that is too old: a look is due at once, and then changes are told again', async () => {
  let isOld = false;
  const opened = cutting(() => undefined);
  const news = new News((query, signal) => {
    if (!isOld || query === '') return opened(query, signal);
    isOld = false;
    throw new Failure('network', 'too old', { httpStatus: 410 });
  }, reservationEvent);
  expect(await news.mark()).toBe(true);
  isOld = true;
  expect(await news.wait(Number.POSITIVE_INFINITY, forever)).toBeUndefined();
  expect(await news.mark()).toBe(true);
  const { id } = reservationIn(await lead.book(booking()));
  expect(await news.wait(Number.POSITIVE_INFINITY, forever)).toMatchObject([
    { type: 'created', reservation: { id } },
  ]);
  news.close();
});

test('row 10: an event that does not end is given up, so memory stays bounded', async () => {
  let sent = 0;
  const open: OpenEvents = async () => {
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(Buffer.from(sent++ === 0 ? 'id: a\n\n' : LONG_LINE)),
    });
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  };
  const news = new News(open, ({ data }) => data);
  await news.mark();
  expect(await news.wait(Number.POSITIVE_INFINITY, pauseBetween)).toBeUndefined();
  expect(sent).toBeLessThan(24);
  news.close();
});

test('one goes on where another has told, although that one had read on', async () => {
  const asked: (string | undefined)[] = [];
  const frames = ['id: a\nevent: cursor\ndata: {}\n\n', 'id: b\ndata: news\n\n'];
  const open: OpenEvents = async (since) => {
    asked.push(since);
    const left = [...frames];
    const body = new ReadableStream<Uint8Array>(
      { pull: (controller) => controller.enqueue(Buffer.from(left.shift() ?? ':\n\n')) },
      { highWaterMark: 0 },
    );
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  };
  const read = ({ event, data }: StreamEvent) => (event === undefined ? data : undefined);
  const first = new News(open, read);
  await first.mark();
  expect(await first.wait(Number.POSITIVE_INFINITY, atOnce)).toEqual([]);
  await new Promise(setImmediate);
  expect(asked).toEqual([undefined, 'a']);
  expect(first.cursor).toBe('a');
  first.close();
  const next = new News(open, read, first.cursor);
  expect(await next.wait(Number.POSITIVE_INFINITY, forever)).toEqual(['news']);
  expect([asked.at(-1), next.cursor]).toEqual(['a', 'b']);
  next.close();
});
