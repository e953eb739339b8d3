import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import type { Role } from '../../src/contract/roles.ts';
import { RING } from '../fixtures/ring.ts';
import {
  at,
  type Caller,
  CONNECTIVITY,
  LINKS,
  MINUTE,
  openService,
  type TestService,
} from '../fixtures/service.ts';

/** How many periods of ten minutes are taken on one link of each route in turn, and when they end. */
const COUNT = 10;
const END = 20 * COUNT + 10;

const between = (site1: string, site2: string, from: number, to: number) => ({
  ...{ site1, site2, start_date: at(from * MINUTE), end_date: at(to * MINUTE) },
});

/** Until `END`, one of the two routes is taken at any time, so two reservations never fit. */
async function take(lead: Caller): Promise<void> {
  for (let index = 0; index < COUNT; index += 1) {
    const items = [
      between('site-a', 'site-b', 20 * index + 10, 20 * index + 20),
      between('site-e', 'site-f', 20 * index + 20, 20 * index + 30),
    ].map((each) => ({ action: 'create', bandwidth: '1000', direct: true, ...each }));
    expect((await change(lead, ':batch', { items })).status).toBe(200);
  }
}

const change = (caller: Caller, address: string, body: object) =>
  caller.send('POST', `${CONNECTIVITY}${address}`, { body: { tokens: [], ...body } });

/** Looks for a time from an instant on at which two fit. */
function searchFrom(caller: Caller, from: number) {
  const one = { action: 'create', bandwidth: '1000', ...between('site-a', 'site-d', from, from + 10) };
  return change(caller, ':batch?dry_run=true&earliest=true', { items: [one, one] });
}

const WHOLE = between('site-a', 'site-d', 10, END);
const WINDOW = `start=${WHOLE.start_date}&end=${WHOLE.end_date}`;
const ROUTE = `${LINKS}/site-a/site-d`;
type Ask = (caller: Caller) => Promise<unknown>;
/** Questions that need more than a turn of the event loop, and much less than a search from the first minute on. */
const HEAVY: Record<string, Ask> = {
  'a batch': (caller) => searchFrom(caller, END - 20),
  'a refusal': (caller) => change(caller, '?dry_run=true', { ...WHOLE, bandwidth: '900' }),
  'a volume': (caller) => change(caller, '?dry_run=true', { ...WHOLE, volume: '1000000000' }),
};
const READ: Record<string, Ask> = {
  steps: (caller) => caller.send('GET', `${ROUTE}/availability?${WINDOW}`),
  slots: (caller) => caller.send('GET', `${ROUTE}/slots?${WINDOW}&bandwidth=1000&duration=PT5M`),
};
const LIGHT: Record<string, Ask> = {
  'the use of all links': (caller) => caller.send('GET', `${LINKS}/use?${WINDOW}&points=1`),
};

/** Lets each look at the clock take a millisecond, so that a question takes as many turns on any machine. */
function countedTurns(): () => number {
  let looks = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => {
    looks += 1;
    return looks;
  });
  onTestFinished(() => clock.mockRestore());
  return () => looks;
}

let service: TestService;
beforeAll(async () => {
  service = await openService({ topology: RING });
  await take(await service.as('lead'));
});

/** What is answered first: a search of the lead's that is under way, or a question that is asked then. */
async function first(user: Role, ask: Ask): Promise<'the search' | 'the question'> {
  const [lead, other] = [await service.as('lead'), await service.as(user)];
  // Their tokens are verified: after that a question goes to its line at once, on a slow machine too.
  for (const caller of [lead, other]) await caller.list();
  const looks = countedTurns();
  const search = searchFrom(lead, 10);
  while (looks() <= 100) await nextTurn();
  const question = ask(other);
  const answered = await Promise.race([
    search.then(() => 'the search' as const),
    question.then(() => 'the question' as const),
  ]);
  await question;
  expect((await search).status).toBe(200);
  return answered;
}

test.each(Object.entries({ ...HEAVY, ...READ }))(
  'row 116: of one user, a second heavy question waits for the first: %s',
  async (_, ask) => {
    expect(await first('lead', ask)).toBe('the search');
  },
);

test.each(Object.entries({ ...READ, ...LIGHT }))(
  'row 116: that of another user does not wait: %s',
  async (_, ask) => {
    expect(await first('admin', ask)).toBe('the question');
  },
);
