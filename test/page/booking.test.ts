import { describe, expect, test } from 'vitest';
import type { FailureDetail } from '../../src/contract/failure.ts';
import { createBooking, keptForm, madeBy, PAUSE, readKeptForm } from '../../src/page/booking.ts';
import { change } from '../../src/page/change.ts';
import { type Draft, EMPTY_DRAFT } from '../../src/page/draft.ts';
import { type FormRequest, type OwnReservation, Refused, Unanswered } from '../../src/page/service.ts';
import { type Action, openRequest, openState, readForm, type State } from '../../src/page/state.ts';
import { RESERVATION } from '../fixtures/tokens.ts';

const NOW = Date.parse('2026-11-22T10:00:00Z');
const NETWORK = {
  ...{ name: null, base_url: '', login: true, sites: [] },
  links: [{ site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 100_000 }],
};
const DRAFT: Draft = { ...EMPTY_DRAFT, site1: 'be-gent1', site2: 'pl-poznan1' };
const OWN: OwnReservation = { ...RESERVATION, start: NOW, end: NOW + 1 };
const FREE = { start: NOW, end: NOW + 1, free: 90_000, freeMax: 90_000, vlans: 996 };
const DETAILS = [{ loc: [], msg: 'No.', type: '' }];
const refusal = (code: string, details: FailureDetail[] = DETAILS): Refused =>
  new Refused({ status: 422, code, details, limits: [], free: [], alternatives: [] });
const experiment = (id: string) => ({
  ...{ id, name: id, role: 'lead', expires_at: '2030-01-01T00:00:00Z', project: { id: '', name: '' } },
});

let keys = 0;

/** A form whose service answers by hand. */
function opened(kept: string | null = null) {
  const questions: {
    asked: FormRequest;
    signal: AbortSignal;
    answer: PromiseWithResolvers<OwnReservation>;
  }[] = [];
  const requests: { asked: FormRequest; answer: PromiseWithResolvers<OwnReservation> }[] = [];
  const timers = new Map<() => void, number>();
  const said = { done: 0, loggedOut: 0, refused: [] as [code: string, isSettled: boolean][] };
  const first = openState(NOW, 'UTC', readKeptForm(kept));
  const store = {
    state: { ...first, network: NETWORK } as State,
    dispatch(action: Action) {
      store.state = change(store.state, action);
    },
  };
  store.dispatch({ type: 'chosen', experiment: experiment('exp_demo') });
  const booking = createBooking({
    store,
    service: {
      columns: async () => [FREE],
      dryRun(_experiment, asked, signal) {
        const answer = Promise.withResolvers<OwnReservation>();
        signal.addEventListener('abort', () => answer.reject(signal.reason));
        questions.push({ asked, signal, answer });
        return answer.promise;
      },
      send(_experiment, asked) {
        const answer = Promise.withResolvers<OwnReservation>();
        requests.push({ asked, answer });
        return answer.promise;
      },
    },
    later(milliseconds, run) {
      timers.set(run, milliseconds);
      return () => void timers.delete(run);
    },
    newKey: () => `key-${++keys}`,
    done() {
      said.done += 1;
    },
    refused: (_sent, { facts }, isSettled) => void said.refused.push([facts.code, isSettled]),
    unanswered: () => {},
    loggedOut() {
      said.loggedOut += 1;
    },
    failed(error) {
      throw error;
    },
  });
  return {
    ...{ booking, questions, requests, timers, said },
    get view() {
      return store.state;
    },
    get kept() {
      return keptForm(store.state);
    },
    /** Lets the timers run out. */
    wait() {
      for (const run of timers.keys()) {
        timers.delete(run);
        run();
      }
    },
    choose: (id: string) => store.dispatch({ type: 'chosen', experiment: experiment(id) }),
    settled: () => new Promise<void>((resolve) => setImmediate(resolve)),
  };
}

describe('the dry run while typing', () => {
  test('waits for a pause, and the last one wins', async () => {
    const form = opened();
    const { booking, questions, timers, wait, settled } = form;
    booking.type({ ...DRAFT, bandwidth: '1' });
    booking.type({ ...DRAFT, bandwidth: '10' });
    expect([...timers.values()]).toEqual([PAUSE]);
    wait();
    expect(questions.map(({ asked }) => asked.request.bandwidth)).toEqual([10]);
    booking.type({ ...DRAFT, bandwidth: '10G' });
    wait();
    const [first, second] = questions;
    expect(first?.signal.aborted).toBe(true);
    second?.answer.resolve(OWN);
    await settled();
    expect(form.view.answer).toMatchObject({ kind: 'fits', free: FREE, wish: { bandwidth: 10_000 } });
    expect(second?.asked.key).toBeUndefined();
  });

  test('is sent at once after a click, and says why it does not fit', async () => {
    const form = opened();
    const { booking, questions, settled, said } = form;
    booking.fill(DRAFT);
    expect(form.view.answer.kind).toBe('asking');
    questions[0]?.answer.reject(refusal('bandwidth_unavailable'));
    await settled();
    expect(form.view.answer).toMatchObject({ kind: 'refused', facts: { details: DETAILS } });
    booking.refresh();
    expect(form.view.answer.kind).toBe('refused');
    questions[1]?.answer.reject(new Unanswered('away'));
    await settled();
    expect(form.view.answer.kind).toBe('away');
    booking.refresh();
    questions[2]?.answer.reject(refusal('token_missing'));
    await settled();
    expect(said.loggedOut).toBe(1);
  });

  test('is asked again of what means something else by itself, and nothing is sent until then', async () => {
    const form = opened();
    const { booking, questions, requests, settled } = form;
    booking.fill(DRAFT);
    questions[0]?.answer.resolve(OWN);
    await settled();
    form.choose('exp_other');
    void booking.send();
    expect([form.view.answer.kind, requests.length]).toEqual(['moved', 0]);
    booking.refresh();
    expect(form.view.answer.kind).toBe('moved');
    questions[1]?.answer.resolve(OWN);
    await settled();
    expect(form.view.answer.kind).toBe('fits');
    void booking.send();
    expect(requests.length).toBe(1);
  });

  test('is not sent of what is not whole', () => {
    const form = opened();
    const { booking, questions } = form;
    booking.fill({ ...DRAFT, bandwidth: 'much' });
    expect([questions.length, form.view.answer.kind]).toEqual([0, 'none']);
    expect([...readForm(form.view).problems.keys()]).toEqual(['bandwidth']);
  });
});

describe('the earliest start', () => {
  test('is asked for with the length of the draft, and fills it', async () => {
    const { booking, questions, settled } = opened();
    booking.fill({ ...DRAFT, start: NOW + 7_200_000, ending: '1h' });
    const asked = booking.earliest();
    const { request } = questions[1]?.asked ?? {};
    expect(request).toMatchObject({ start: NOW + 7_200_000, duration: 3_600_000 });
    expect(request?.end).toBeGreaterThan(NOW + 300 * 86_400_000);
    const start = NOW + 36_000_000;
    questions[1]?.answer.resolve({ ...OWN, start, end: start + 3_600_000 });
    await asked;
    expect(questions[2]?.asked.request).toMatchObject({ start, end: start + 3_600_000 });
    questions[2]?.answer.reject(new Unanswered('away'));
    await settled();
    expect(questions[0]?.signal.aborted).toBe(true);
  });

  test('may be now; where there is none it is said why, and the draft stays', async () => {
    const form = opened();
    const { booking, questions } = form;
    booking.fill({ ...DRAFT, start: NOW - 1 });
    const now = booking.earliest();
    questions[1]?.answer.resolve({ ...OWN, start: NOW + 1000, end: NOW + 7_201_000 });
    await now;
    expect(form.view.draft).toEqual(DRAFT);
    // Where it is already the earliest, that is said.
    const same = booking.earliest();
    questions.at(-1)?.answer.resolve({ ...OWN, start: NOW + 1000, end: NOW + 7_201_000 });
    await same;
    questions.at(-1)?.answer.resolve(OWN);
    await form.settled();
    expect(form.view.answer).toMatchObject({ kind: 'fits', isEarliest: true });
    const never = booking.earliest();
    questions.at(-1)?.answer.reject(refusal('bandwidth_unavailable'));
    await never;
    expect([form.view.answer.kind, form.view.draft]).toEqual(['refused', DRAFT]);
    booking.fill({ ...DRAFT, site1: '' });
    await booking.earliest();
    expect(form.view.isChecked).toBe(true);
  });
});

describe('the request', () => {
  test('is sent once, however often it is clicked, and leaves its sites in the form', async () => {
    const form = opened();
    const { booking, requests, said, settled } = form;
    booking.fill({ ...DRAFT, bandwidth: '2G' });
    void booking.send();
    void booking.send();
    booking.type({ ...DRAFT, name: 'late' });
    expect(requests.map(({ asked }) => asked.key)).toEqual([`key-${keys}`]);
    requests[0]?.answer.resolve(OWN);
    await settled();
    expect([said.done, form.kept, form.view.draft]).toEqual([1, JSON.stringify({ draft: DRAFT }), DRAFT]);
    booking.refresh();
    expect(form.view.answer.kind).toBe('none');
    await booking.send();
    expect([requests.length, form.view.isChecked]).toEqual([1, true]);
  });

  /** A request that had no answer, in the form of a page that was closed meanwhile. */
  async function unanswered(draft = DRAFT) {
    const before = opened();
    before.booking.fill(draft);
    void before.booking.send();
    const { kept } = before;
    const form = opened(kept);
    expect(openRequest(form.view)).toEqual(before.view.sent);
    return { ...form, form, first: before.requests[0]?.asked };
  }

  test('without an answer is sent again as it was, whatever is typed, clicked or chosen meanwhile', async () => {
    const { form, first, booking, requests, questions, choose, settled, wait, said } = await unanswered();
    booking.type({ ...DRAFT, bandwidth: '2G' });
    wait();
    booking.fill({ ...DRAFT, name: 'other' });
    booking.reset();
    booking.type({ ...DRAFT, bandwidth: '2G' });
    choose('exp_other');
    void booking.send();
    expect(requests.map(({ asked }) => asked)).toEqual([first]);
    requests[0]?.answer.reject(new Unanswered('away'));
    await settled();
    void booking.send();
    expect(requests[1]?.asked).toEqual(first);
    expect(questions).toEqual([]);
    requests[1]?.answer.resolve(OWN);
    await settled();
    // What was typed meanwhile is another draft, of which is asked from now on.
    expect([said.done, form.view.sent, form.view.draft.bandwidth]).toEqual([1, undefined, '2G']);
    expect(questions.map(({ asked }) => asked.request.bandwidth)).toEqual([2000]);
  });

  test('that was sent before is settled by a decision about the link, and by no other refusal', async () => {
    const { form, booking, requests, settled, said } = await unanswered();
    for (const code of ['role_not_allowed', 'token_missing', 'too_many_requests', 'unavailable']) {
      void booking.send();
      requests.at(-1)?.answer.reject(refusal(code));
      await settled();
      expect([code, form.view.sent]).not.toContain(undefined);
    }
    expect([said.loggedOut, said.refused.map(([code, isSettled]) => `${code} ${isSettled}`)]).toEqual([
      1,
      ['role_not_allowed false', 'too_many_requests false', 'unavailable false'],
    ]);
    void booking.send();
    requests
      .at(-1)
      ?.answer.reject(refusal('bandwidth_unavailable', [{ loc: ['Bandwidth'], msg: 'No.', type: '' }]));
    await settled();
    expect([form.view.sent, form.view.answer.kind]).toEqual([undefined, 'refused']);
  });

  test('that is forgotten leaves its draft, unless it was found to be done', async () => {
    const one = await unanswered();
    one.booking.forget(false);
    expect([one.form.view.sent, one.form.view.draft]).toEqual([undefined, DRAFT]);
    const other = await unanswered();
    void other.booking.send();
    // It is under way again.
    other.booking.forget(true);
    other.requests[0]?.answer.reject(new Unanswered('away'));
    await other.settled();
    expect(other.form.view.sent).toBeDefined();
    other.booking.forget(true);
    expect([other.form.view.sent, other.form.view.isLeft]).toEqual([undefined, true]);
  });

  test('is found in a list by what it asked for, or by its id', async () => {
    const { form } = await unanswered({ ...DRAFT, name: 'mine', ending: NOW + 3_600_000 });
    const { sent } = form.view;
    if (!sent) throw new Error('nothing was sent');
    const own = { ...OWN, site1: 'pl-poznan1', site2: 'be-gent1', bandwidth: 1000, name: 'mine' };
    const made = { ...own, end: NOW + 3_600_000 };
    expect(madeBy(sent, [{ ...made, name: 'other' }, { ...made, bandwidth: 1 }, own, made])).toBe(made);
    const update = { ...sent, wish: { ...sent.wish, id: made.id } };
    expect(madeBy(update, [{ ...made, name: 'kept' }])).toMatchObject({ name: 'kept' });
    expect(madeBy(update, [{ ...made, id: 'con_other' }])).toBeUndefined();
  });

  test('that is refused keeps what was typed, and has another key the next time', async () => {
    const form = opened();
    const { booking, requests, settled, said } = form;
    booking.fill(DRAFT);
    void booking.send();
    requests[0]?.answer.reject(refusal('token_missing'));
    await settled();
    expect([form.view.draft, said.loggedOut]).toEqual([DRAFT, 1]);
    expect(form.kept).toBe(JSON.stringify({ draft: DRAFT }));
    void booking.send();
    expect(requests[1]?.asked.key).not.toBe(requests[0]?.asked.key);
  });

  test('to change a reservation gives back what stood in the form before', async () => {
    const form = opened();
    const { booking, requests, settled } = form;
    booking.type({ ...DRAFT, name: 'half-typed' });
    booking.fill({ ...DRAFT, id: 'con_x' });
    void booking.send();
    expect(requests[0]?.asked.key).toBeUndefined();
    requests[0]?.answer.resolve(OWN);
    await settled();
    expect(form.view.draft).toEqual({ ...DRAFT, name: 'half-typed' });
  });
});
