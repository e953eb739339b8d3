import { describe, expect, test } from 'vitest';
import { type Booking, type BookingOptions, createBooking, PAUSE } from '../../src/page/booking.ts';
import { type Draft, EMPTY_DRAFT } from '../../src/page/draft.ts';
import { Refused, type ReservationAsked, type Reserved, Unanswered } from '../../src/page/service.ts';
import { RESERVATION } from '../fixtures/tokens.ts';

const NOW = Date.parse('2026-11-22T10:00:00Z');
const LINKS = [{ site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 100_000 }];
const DRAFT: Draft = { ...EMPTY_DRAFT, site1: 'be-gent1', site2: 'pl-poznan1' };
const END = { sTag: 1, cTag: 1 };
const OWN: Reserved = {
  ...{ id: 'con_x', site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 1000, start: NOW, end: NOW + 1 },
  ...{ createdBy: 'user_x', record: RESERVATION },
  tags: [
    { site: 'be-gent1', ...END },
    { site: 'pl-poznan1', ...END },
  ],
};
const FREE = { start: NOW, end: NOW + 1, free: 90_000, freeMax: 90_000, vlans: 996 };
const refusal = (code: string): Refused =>
  new Refused({ status: 422, code, messages: ['No.'], limits: [], free: [], alternatives: [] });

let keys = 0;

/** A form whose service answers by hand. */
function opened(kept: string | null = null) {
  const questions: {
    asked: ReservationAsked;
    signal: AbortSignal;
    answer: PromiseWithResolvers<Reserved>;
  }[] = [];
  const requests: { asked: ReservationAsked; answer: PromiseWithResolvers<Reserved> }[] = [];
  const timers = new Map<() => void, number>();
  const said = { done: 0, loggedOut: 0, kept };
  let [now, experiment] = [NOW, 'exp_demo'];
  const options: BookingOptions = {
    service: {
      columns: async () => [FREE],
      dryRun(_experiment, asked, signal) {
        const answer = Promise.withResolvers<Reserved>();
        signal.addEventListener('abort', () => answer.reject(signal.reason));
        questions.push({ asked, signal, answer });
        return answer.promise;
      },
      send(_experiment, asked) {
        const answer = Promise.withResolvers<Reserved>();
        requests.push({ asked, answer });
        return answer.promise;
      },
    },
    terms: () => ({ experiment, now, links: LINKS, expiry: NOW + 1e12 }),
    later(milliseconds, run) {
      timers.set(run, milliseconds);
      return () => void timers.delete(run);
    },
    newKey: () => `key-${++keys}`,
    keep(text) {
      said.kept = text;
    },
    kept,
    show: () => {},
    done() {
      said.done += 1;
    },
    loggedOut() {
      said.loggedOut += 1;
    },
    failed(error) {
      throw error;
    },
  };
  const booking: Booking = createBooking(options);
  return {
    ...{ booking, questions, requests, timers, said },
    /** Lets the timers run out. */
    wait() {
      for (const [run, milliseconds] of timers) {
        now += milliseconds;
        timers.delete(run);
        run();
      }
    },
    choose(other: string) {
      experiment = other;
    },
    settled: () => new Promise<void>((resolve) => setImmediate(resolve)),
  };
}

describe('the dry run while typing', () => {
  test('waits for a pause, and the last one wins', async () => {
    const { booking, questions, timers, wait, settled } = opened();
    booking.type({ ...DRAFT, bandwidth: '1' });
    booking.type({ ...DRAFT, bandwidth: '10' });
    expect([...timers.values()]).toEqual([PAUSE]);
    wait();
    expect(questions.map(({ asked }) => JSON.parse(asked.body).bandwidth)).toEqual(['10']);
    booking.type({ ...DRAFT, bandwidth: '10G' });
    wait();
    const [first, second] = questions;
    expect(first?.signal.aborted).toBe(true);
    second?.answer.resolve(OWN);
    await settled();
    expect(booking.view.answer).toMatchObject({ kind: 'fits', free: FREE, wish: { bandwidth: 10_000 } });
    expect(second?.asked).not.toHaveProperty('key');
  });

  test('is sent at once after a click, and says why it does not fit', async () => {
    const { booking, questions, settled, said } = opened();
    booking.fill(DRAFT);
    expect(booking.view.answer.kind).toBe('asking');
    questions[0]?.answer.reject(refusal('bandwidth_unavailable'));
    await settled();
    expect(booking.view.answer).toMatchObject({ kind: 'refused', facts: { messages: ['No.'] } });
    booking.refresh();
    expect(booking.view.answer.kind).toBe('refused');
    questions[1]?.answer.reject(new Unanswered('away'));
    await settled();
    expect(booking.view.answer.kind).toBe('away');
    booking.refresh();
    questions[2]?.answer.reject(refusal('token_missing'));
    await settled();
    expect(said.loggedOut).toBe(1);
  });

  test('is not sent of what is not whole', () => {
    const { booking, questions } = opened();
    booking.fill({ ...DRAFT, bandwidth: 'much' });
    expect([questions.length, booking.view.answer.kind]).toEqual([0, 'none']);
    expect([...booking.view.problems.keys()]).toEqual(['bandwidth']);
  });
});

describe('the request', () => {
  test('is sent once, however often it is clicked, and leaves an empty form', async () => {
    const { booking, requests, said, settled } = opened();
    booking.fill(DRAFT);
    void booking.send();
    void booking.send();
    booking.type({ ...DRAFT, name: 'late' });
    expect(requests.map(({ asked }) => asked.key)).toEqual([`key-${keys}`]);
    requests[0]?.answer.resolve(OWN);
    await settled();
    expect([said.done, said.kept, booking.view.draft]).toEqual([1, null, EMPTY_DRAFT]);
    await booking.send();
    expect([requests.length, booking.view.isChecked]).toEqual([1, true]);
  });

  test('without an answer is sent again as it was, even after a reload; of another draft it is another one', async () => {
    const before = opened();
    before.booking.fill(DRAFT);
    void before.booking.send();
    // The page is closed before the answer is there.
    const { booking, requests, settled, wait } = opened(before.said.kept);
    expect(booking.view).toMatchObject({ draft: DRAFT, answer: { kind: 'unanswered' } });
    wait();
    void booking.send();
    expect(requests[0]?.asked).toEqual(before.requests[0]?.asked);
    requests[0]?.answer.reject(new Unanswered('away'));
    await settled();
    expect(booking.view.answer.kind).toBe('unanswered');
    booking.type({ ...DRAFT, bandwidth: '2G' });
    void booking.send();
    expect(requests[1]?.asked.key).not.toBe(requests[0]?.asked.key);
  });

  test('of another experiment is another one', () => {
    const before = opened();
    before.booking.fill(DRAFT);
    void before.booking.send();
    const { booking, requests, choose } = opened(before.said.kept);
    choose('exp_other');
    void booking.send();
    expect(requests[0]?.asked.key).not.toBe(before.requests[0]?.asked.key);
  });

  test('that is refused keeps what was typed, and has another key the next time', async () => {
    const { booking, requests, settled, said } = opened();
    booking.fill(DRAFT);
    void booking.send();
    requests[0]?.answer.reject(refusal('token_missing'));
    await settled();
    expect([booking.view.draft, said.loggedOut]).toEqual([DRAFT, 1]);
    expect(said.kept).toBe(JSON.stringify({ draft: DRAFT }));
    void booking.send();
    expect(requests[1]?.asked.key).not.toBe(requests[0]?.asked.key);
  });

  test('to change a reservation gives back what stood in the form before', async () => {
    const { booking, requests, settled } = opened();
    booking.type({ ...DRAFT, name: 'half-typed' });
    booking.fill({ ...DRAFT, id: 'con_x' });
    void booking.send();
    expect(requests[0]?.asked).not.toHaveProperty('key');
    requests[0]?.answer.resolve(OWN);
    await settled();
    expect(booking.view.draft).toEqual({ ...DRAFT, name: 'half-typed' });
  });
});
