import { isDeepStrictEqual } from 'node:util';
import type { CreateRequest } from '../../src/allocator/decide.ts';
import type { Demand, Holding } from '../../src/allocator/demand.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import { CommitUnknownError } from '../../src/allocator/store.ts';
import { type Link, linkId, type TagRange } from '../../src/contract/links.ts';
import { reservationStore } from '../../src/store/reservations.ts';
import type { SqlRow } from '../../src/store/sql.ts';
import { Allocator } from '../allocator/allocator.ts';
import { Oracle } from '../allocator/oracle.ts';
import { smallLink } from '../allocator/small-link.ts';
import { type Rows, sweep } from '../allocator/sweep.ts';
import { WITH_HOPS } from '../store/one-link.ts';
import { rowsOf } from '../store/opened-store.ts';
import { type FailurePlan, failingDatabase, noFailure } from './failing-database.ts';
import { type Finding, newReport, type Report } from './report.ts';
import type { OpenedStatements } from './statements.ts';

const NOW = 5;
const EXPIRY = 60;

/** How much is tried. */
export interface FailpointOptions {
  /** Every scenario and kind of failure; else those that meet the most steps, and half of the questions after. */
  thorough?: boolean;
  /** Makes the store; default: the real one. */
  storeOf?: typeof reservationStore;
  /** Only the scenarios of these names. */
  only?: readonly string[];
}

const KINDS: readonly FailurePlan['kind'][] = ['unavailable', 'defect'];

/** One thing that is asked for while a point fails. */
interface Request {
  what: string;
  /** @returns whether it was granted */
  ask: (subject: Allocator) => Promise<boolean>;
  /** Whether what it asks for is on disk. */
  isDone: (rows: readonly SqlRow[]) => boolean;
}

/** A link with reservations, each run's own. */
interface Scene {
  link: Link;
  id: string;
  /** The reservation that is changed, and the one that is deleted. */
  changed: string;
  deleted: string;
  /** The link behind it, and reservations over both, that are changed and deleted. */
  beyond: Link;
  routed: { changed: string; deleted: string };
  newSubject(plan?: FailurePlan): Allocator;
  /** Asks past the store. */
  query: Rows;
  reservations(): Promise<SqlRow[]>;
}

const PERIOD: Demand = { start: 12, end: 24, bandwidth: 150 };

function requestOn({ link }: Scene, demand: Demand): CreateRequest & { name?: undefined } {
  const { site1, site2 } = link;
  return { site1, site2, ...demand, experiment: 'exp', createdBy: 'user', expiry: EXPIRY };
}

const live = (rows: readonly SqlRow[]): SqlRow[] => rows.filter((row) => row['deleted_ms'] === null);
const isBooked = (rows: readonly SqlRow[], bandwidth: number): boolean =>
  live(rows).filter((row) => row['bandwidth'] === bandwidth).length === 1;

// Each reservation has a bandwidth of its own, by which it is recognised.
const REQUESTS: Readonly<Record<string, (scene: Scene) => Request>> = {
  create: (scene) => ({
    what: 'create',
    ask: async (subject) => (await subject.create(requestOn(scene, { ...PERIOD, bandwidth: 151 }))).ok,
    isDone: (rows) => isBooked(rows, 151),
  }),
  'create under a key': (scene) => ({
    what: 'create under a key',
    ask: async (subject) => (await subject.create(keyed(scene))).ok,
    isDone: (rows) => isBooked(rows, 152),
  }),
  update: ({ changed }) => ({
    what: 'update',
    ask: async (subject) =>
      (await subject.update(changed, { start: 11, end: 33, bandwidth: 253 }, UPDATING))?.ok === true,
    isDone: (rows) => isBooked(rows, 253),
  }),
  delete: ({ deleted }) => ({
    what: 'delete',
    ask: (subject) => subject.delete(deleted, { by: 'user' }),
    isDone: (rows) => !live(rows).some((row) => row['id'] === deleted),
  }),
  'create over a route': (scene) => ({
    what: 'create over a route',
    ask: async (subject) =>
      (await subject.create({ ...requestOn(scene, ROUTED), site2: scene.beyond.site2 })).ok,
    isDone: (rows) => isBooked(rows, ROUTED.bandwidth),
  }),
  'update over a route': ({ routed }) => ({
    what: 'update over a route',
    ask: async (subject) =>
      (await subject.update(routed.changed, { start: 51, end: 57, bandwidth: 255 }, UPDATING))?.ok === true,
    isDone: (rows) => isBooked(rows, 255),
  }),
  'delete over a route': ({ routed }) => ({
    what: 'delete over a route',
    ask: (subject) => subject.delete(routed.deleted, { by: 'user' }),
    isDone: (rows) => !live(rows).some((row) => row['id'] === routed.deleted),
  }),
};
const ROUTED = { start: 45, end: 50, bandwidth: 154 };
const UPDATING = { by: 'user', expiry: EXPIRY, check: () => undefined };

function keyed(scene: Scene) {
  return {
    ...requestOn(scene, { ...PERIOD, bandwidth: 152 }),
    key: scene.id,
    fingerprint: 'the same',
  };
}

/** Each alone, and all at once, so that some wait while one fails. */
const SCENARIOS: Readonly<Record<string, readonly string[]>> = {
  create: ['create'],
  'create under a key': ['create under a key'],
  update: ['update'],
  delete: ['delete'],
  'all at once': ['create', 'delete', 'create under a key', 'update'],
  'create over a route': ['create over a route'],
  'update over a route': ['update over a route'],
  'delete over a route': ['delete over a route'],
};

/** How the names of those end that go over two links. */
const OVER_A_ROUTE = ' over a route';
const MOST_STEPS: readonly string[] = ['create under a key', 'update', 'all at once', 'create over a route'];

/**
 * Row 38 and 39: each point between two steps fails, one after the other, until a run passes without any failing. After
 * each, what was granted is on disk and what was not is not, every allocator agrees with the disk, and nothing is half done.
 */
export async function proveFailpoints(
  opened: OpenedStatements,
  { thorough = true, storeOf = reservationStore, only }: FailpointOptions = {},
): Promise<Report> {
  const report = newReport('a failure at each step', opened.engine, 0);
  const began = performance.now();
  const probes = thorough ? PROBES : PROBES.filter((_, index) => index % 2 === 0);
  const chosen = only ?? (thorough ? Object.keys(SCENARIOS) : MOST_STEPS);
  for (const [scenario, names] of Object.entries(SCENARIOS)) {
    if (!chosen.includes(scenario)) continue;
    let points = 0;
    for (const kind of thorough ? KINDS : KINDS.slice(0, 1)) {
      for (let at = 0; ; at += 1) {
        const plan: FailurePlan = { ...noFailure(), at, kind };
        report.rounds += 1;
        const scene = await newScene(opened, {
          ...{ storeOf, number: report.rounds },
          isRouted: scenario.endsWith(OVER_A_ROUTE),
        });
        const found = await runOnce(scene, plan, { names, probes, report }).catch((error): Finding[] => [
          { kind: 'wrong', what: `what is asked without a failure fails: ${error}` },
        ]);
        const where = `${scenario}, ${kind} at point ${at} (${plan.fired ?? 'none'})`;
        report.findings.push(
          ...found.map(({ kind, what }): Finding => ({ kind, what: `${where}: ${what}` })),
        );
        if (plan.fired === undefined) break;
        points += 1;
      }
    }
    report.notes.push(`${scenario}: ${points} failures`);
  }
  report.seconds = (performance.now() - began) / 1000;
  return report;
}

async function newScene(
  { database, locking }: OpenedStatements,
  {
    storeOf,
    number,
    isRouted,
  }: {
    storeOf: typeof reservationStore;
    number: number;
    isRouted: boolean;
  },
): Promise<Scene> {
  const six: TagRange = [1, 6];
  const link = smallLink({
    site1: `a${number}`,
    site2: `b${number}`,
    site1_s_tags: [1, 5],
    site1_c_tags: six,
    site2_s_tags: six,
    site2_c_tags: [3, 8],
  });
  const beyond: Link = {
    ...link,
    site1: link.site2,
    site2: `c${number}`,
    site1_c_tags: [9, 14],
  };
  const id = linkId(link.site1, link.site2);
  let ids = 0;
  const scene: Scene = {
    link,
    id,
    changed: `${id}-0`,
    deleted: `${id}-1`,
    beyond,
    routed: { changed: `${id}-3`, deleted: `${id}-4` },
    newSubject(plan = noFailure()) {
      const options = {
        network: createNetwork({ sites: [link.site1, link.site2, beyond.site2], links: [link, beyond] }),
        store: storeOf(failingDatabase(database, plan), locking),
        now: () => NOW,
        newId: () => `${id}-${ids++}`,
      };
      return new Allocator(options);
    },
    query: rowsOf(database),
    reservations: () => database.all(`${WITH_HOPS} WHERE link = $id ORDER BY id`, { id }),
  };
  const setter = scene.newSubject();
  await setter.create(requestOn(scene, { start: 10, end: 20, bandwidth: 250 }));
  await setter.create(requestOn(scene, { start: 15, end: 30, bandwidth: 300 }));
  await setter.create(requestOn(scene, { start: 20, end: 40, bandwidth: 100 }));
  if (!isRouted) return scene;
  const overBoth = { ...requestOn(scene, { start: 51, end: 55, bandwidth: 155 }), site2: beyond.site2 };
  await setter.create(overBoth);
  await setter.create({ ...overBoth, bandwidth: 156 });
  return scene;
}

async function runOnce(
  scene: Scene,
  plan: FailurePlan,
  { names, probes, report }: { names: readonly string[]; probes: readonly Demand[]; report: Report },
): Promise<Finding[]> {
  const found: Finding[] = [];
  const subject = scene.newSubject(plan);
  const { at } = plan;
  plan.at = -1;
  const other = scene.newSubject();
  const extra = await other.create(requestOn(scene, { start: 40, end: 44, bandwidth: 700 }));
  await other.create(requestOn(scene, { start: 20, end: 26, bandwidth: 77 }));
  if (extra.ok) await other.delete(extra.record.id, { by: 'user' });
  plan.passed = 0;
  plan.at = at;
  const before = await scene.reservations();
  const requests = names.flatMap((name) => REQUESTS[name]?.(scene) ?? []);
  const answers = await Promise.allSettled(requests.map(({ ask }) => ask(subject)));
  // What is asked afterwards passes.
  plan.at = -1;
  const after = await scene.reservations();
  report.requests += requests.length;
  for (const [index, answer] of answers.entries()) {
    const request = requests[index];
    if (!request) continue;
    const { what, isDone } = request;
    const done = isDone(after);
    if (answer.status === 'fulfilled') {
      report[answer.value ? 'acknowledged' : 'refused'] += 1;
      if (answer.value && !done) found.push({ kind: 'lost', what: `${what} was granted and is not there` });
      if (!answer.value && done) found.push({ kind: 'doubled', what: `${what} was refused and is there` });
      if (!answer.value && names.length === 1) found.push({ kind: 'wrong', what: `${what} was refused` });
    } else {
      report.unanswered += 1;
      const unknown = answer.reason instanceof CommitUnknownError;
      if (done && !unknown)
        found.push({ kind: 'doubled', what: `${what} failed (${answer.reason}) and is there` });
      if (plan.fired === undefined) found.push({ kind: 'wrong', what: `${what}: ${answer.reason}` });
    }
  }
  const [only] = requests;
  if (
    requests.length === 1 &&
    only &&
    !only.isDone(after) &&
    JSON.stringify(after) !== JSON.stringify(before)
  ) {
    found.push({ kind: 'wrong', what: `${only.what} is half done` });
  }
  if (plan.fired === 'after COMMIT' && requests.length === 1 && !only?.isDone(after)) {
    found.push({ kind: 'lost', what: 'it was committed and is not there' });
  }
  found.push(...(await agreement(scene, after, [subject, scene.newSubject()], probes)));
  if (names.includes('create under a key')) found.push(...(await asksAgain(scene, after)));
  const isRouted = names.every((name) => name.endsWith(OVER_A_ROUTE));
  for (const link of isRouted ? [scene.link, scene.beyond] : [scene.link]) {
    const wrong = await sweep({ rows: scene.query }, linkId(link.site1, link.site2), link);
    found.push(...wrong.map((what): Finding => ({ kind: 'wrong', what })));
  }
  return found;
}

/** Demands that are asked about afterwards: some can be had, some break one limit, some both. */
const PROBES: readonly Demand[] = [
  { start: 10, end: 22, bandwidth: 100 },
  { start: 10, end: 22, bandwidth: 460 },
  { start: 15, end: 20, bandwidth: 300 },
  { start: 21, end: 33, bandwidth: 650 },
  { start: 30, end: 45, bandwidth: 900 },
  { start: 6, end: 50, bandwidth: 1 },
];

/** Compares an oracle that knows the rows with two allocators: the one that met the failure, and a new one. */
async function agreement(
  { link, changed, ...scene }: Scene,
  rows: readonly SqlRow[],
  subjects: readonly Allocator[],
  probes: readonly Demand[],
): Promise<Finding[]> {
  const oracle = new Oracle(link);
  for (const row of live(rows)) oracle.hold(String(row['id']), holdingIn(row));
  const found: Finding[] = [];
  for (const [index, subject] of subjects.entries()) {
    const who = index === 0 ? 'the same allocator' : 'a new allocator';
    for (const demand of probes) {
      const outcome = await subject.create(requestOn({ link, changed, ...scene }, demand), true);
      const answer = outcome.ok
        ? { accepted: true, tags: outcome.record.hops[0].tags }
        : { accepted: false, refusals: outcome.refusals };
      const due = oracle.plan(demand);
      if (!isDeepStrictEqual(answer, due)) {
        found.push({
          kind: 'wrong',
          what: `${who} says ${JSON.stringify(answer)}, the oracle ${JSON.stringify(due)}`,
        });
      }
    }
    const change: Demand = { start: 9, end: 35, bandwidth: 300 };
    const outcome = await subject.update(changed, change, { ...UPDATING, dryRun: true });
    const due = oracle.plan(change, changed);
    if (outcome?.ok !== due.accepted) {
      found.push({
        kind: 'wrong',
        what: `${who} says ${outcome?.ok} to a change, the oracle ${due.accepted}`,
      });
    }
  }
  return found;
}

function holdingIn(row: SqlRow): Holding {
  return {
    start: Number(row['start_ms']),
    end: Number(row['end_ms']),
    bandwidth: Number(row['bandwidth']),
    tags: {
      site1_s_tag: Number(row['site1_s_tag']),
      site1_c_tag: Number(row['site1_c_tag']),
      site2_s_tag: Number(row['site2_s_tag']),
      site2_c_tag: Number(row['site2_c_tag']),
    },
  };
}

/** Sends the same request under its key: an existing reservation is replayed, a missing one is created once. */
async function asksAgain(scene: Scene, before: readonly SqlRow[]): Promise<Finding[]> {
  const outcome = await scene.newSubject().create(keyed(scene));
  const again = await scene.newSubject().create(keyed(scene));
  const booked = live(await scene.reservations()).filter((row) => row['bandwidth'] === 152);
  if (booked.length > 1) return [{ kind: 'doubled', what: `${booked.length} under one key` }];
  const isRepeat = outcome.ok && 'replayed' in outcome;
  if (isRepeat !== isBooked(before, 152)) {
    return [{ kind: 'lost', what: 'the key does not stand for what is there' }];
  }
  const ids = [outcome, again].map((answer) => (answer.ok ? answer.record.id : undefined));
  if (ids[0] !== ids[1]) return [{ kind: 'doubled', what: `one key stands for ${ids.join(' and ')}` }];
  return [];
}
