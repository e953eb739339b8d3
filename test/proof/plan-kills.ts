import { setTimeout as sleep } from 'node:timers/promises';
import type { Ended } from '../fixtures/program.ts';
import { openProxy, PROXY_POINTS, type TcpProxy } from '../fixtures/proxy.ts';
import type { Chance } from './chance.ts';
import { sweepAll, TWENTY } from './links.ts';
import { type ProxiedServer, proxiedServer } from './machine.ts';
import { replayAll } from './replay.ts';
import type { Report } from './report.ts';
import { dawn, HOUR, type ProofOptions, type Run, runProof } from './run.ts';

/** An `apply` that is let alone takes less, in milliseconds. */
const LIFETIME = 1200;
const FILE = 'plan.json';

/** What a file asks for, and what stands: Mbps by name. */
type State = ReadonlyMap<string, number>;

/** What a proof of `apply` works with. */
interface Scene extends Pick<Run, 'place' | 'chance' | 'report'>, ProxiedServer {
  /** Between the server and PostgreSQL. */
  databaseProxy: TcpProxy | undefined;
  /** When all that is asked for begins, in milliseconds. */
  dawn: number;
  /** The changes that were asked for so far, dry runs left out. */
  writes: { count: number };
}

/**
 * Row 39, plans: while `slices-conn apply --prune` makes what exists as a file says, on twenty links and by one batch, it
 * is killed with SIGKILL, or the server is. At any time all of the file stands, or all that stood before it. `apply`
 * again ends at the file's state, and a third run sends no change.
 */
export async function killPlans(options: ProofOptions): Promise<Report> {
  return runProof('kill -9 during apply', options, async (run) => {
    const { place, report, round, atEnd } = run;
    const writes = { count: 0 };
    const seen = (bytes: Buffer): void => {
      const [first = ''] = bytes.toString('latin1').split('\r\n', 1);
      if (/^(?:POST|PUT|DELETE) .*\/connectivity/.test(first) && !first.includes('dry_run'))
        writes.count += 1;
    };
    const databaseProxy = options.postgres === undefined ? undefined : await openProxy(options.postgres);
    atEnd(() => databaseProxy?.close());
    const where = databaseProxy && ['--database', databaseProxy.url];
    const served = await proxiedServer(run, { topology: TWENTY, where, seen });
    const scene: Scene = { ...run, ...served, databaseProxy, writes, dawn: dawn(24) };
    let standing: State = new Map();
    // 20 links, of which the 13th can't be had, leave nothing behind: at first, and beside what stands.
    await refused(scene, standing);
    while (round()) {
      standing = await once(scene, standing);
      if (report.rounds % 4 === 0) await refused(scene, standing);
    }
    report.findings.push(...(await sweepAll(place.rows, TWENTY.links)));
    report.findings.push(...(await replayAll(place.rows, { links: TWENTY.links })));
  });
}

/** One file, with one kill. @returns what stands after it */
async function once(scene: Scene, before: State): Promise<State> {
  const { machine, chance, report, writes, server } = scene;
  const after = drawn(chance, before);
  writePlan(scene, after);
  const stopWatching = watch(scene, [before, after]);
  const first = machine.start(['apply', FILE, '--prune', '--yes']);
  const isClient = chance.is(50);
  let isKilled = false;
  const kill = (): void => {
    isKilled = true;
    report.kills += 1;
    if (isClient) first.kill();
    else process.kill(server.pid, 'SIGKILL');
  };
  const over = new AbortController();
  if (chance.is(30)) {
    sleep(chance.below(LIFETIME), undefined, { signal: over.signal }).then(kill, () => undefined);
  } else armAtBatch(scene, isClient, kill);
  // The server is back before the command gives up, or after.
  const restarted = isClient ? Promise.resolve() : server.gone().then(() => sleep(chance.below(2000)));
  const back = restarted.then(() => (isClient || !isKilled ? undefined : server.start()));
  const ended = await first.ended;
  over.abort();
  scene.proxy.disarm();
  scene.databaseProxy?.disarm();
  if (!isClient && isKilled) await back;
  told(scene, ended, isKilled ? [0, 7, null] : [0]);
  told(scene, await machine.run(['apply', FILE, '--prune', '--yes']), [0]);
  const asked = writes.count;
  told(scene, await machine.run(['apply', FILE, '--prune', '--yes']), [0]);
  if (writes.count !== asked) wrong(report, `a third run asked for ${writes.count - asked} changes`);
  await stopWatching();
  const standing = await standingIn(scene);
  if (!isSame(standing, after)) wrong(report, `the file says ${text(after)}, and there is ${text(standing)}`);
  return standing;
}

/** Kills at a point of the batch's way: to the server, in the database, or back. */
function armAtBatch({ proxy, databaseProxy, chance }: Scene, isClient: boolean, kill: () => void): void {
  const point = chance.of(PROXY_POINTS) ?? 'after it was passed on';
  if (isClient || chance.is(40)) {
    proxy.arm('connectivity:batch HTTP', 1, point, kill);
    return;
  }
  const [wait, nth] = [chance.below(40), 1 + chance.below(12)];
  const isCommit = chance.is(50);
  proxy.arm('connectivity:batch HTTP', 1, 'after it was passed on', () => {
    if (databaseProxy) databaseProxy.arm(isCommit ? 'COMMIT' : '', isCommit ? 1 : nth, point, kill);
    else void sleep(wait).then(kill);
  });
}

/** A plan of 20 links, of which the 13th does not fit, is refused as a whole. */
async function refused(scene: Scene, before: State): Promise<void> {
  const { machine, report } = scene;
  writePlan(scene, new Map(TWENTY.links.map((_, index) => [nameOf(index), index === 12 ? 1001 : 7])));
  const stopWatching = watch(scene, [before]);
  told(scene, await machine.run(['apply', FILE]), [6]);
  await stopWatching();
  const standing = await standingIn(scene);
  if (!isSame(standing, before)) wrong(report, `after a refusal there is ${text(standing)}`);
}

/** About half of the links, of which some are as before, some change, some are new. */
function drawn(chance: Chance, before: State): State {
  const entries = TWENTY.links.flatMap((_, index): [string, number][] => {
    if (chance.is(45)) return [];
    const name = nameOf(index);
    const kept = chance.is(30) ? before.get(name) : undefined;
    return [[name, kept ?? 10 + chance.below(900)]];
  });
  // One that is new or gone at least, so that there is something to do.
  const [first = nameOf(0)] = before.keys();
  return new Map(before.size > 0 ? entries.filter(([name]) => name !== first) : [...entries, [nameOf(0), 5]]);
}

const nameOf = (index: number): string => `link-${index + 1}`;

function writePlan({ machine, dawn }: Scene, state: State): void {
  const reservations = TWENTY.links.flatMap(({ site1, site2 }, index) => {
    const bandwidth = state.get(nameOf(index));
    return bandwidth === undefined ? [] : [[nameOf(index), { sites: [site1, site2], bandwidth }]];
  });
  const defaults = { start: new Date(dawn).toISOString(), end: new Date(dawn + HOUR).toISOString() };
  machine.write(
    FILE,
    JSON.stringify({ version: 1, defaults, reservations: Object.fromEntries(reservations) }),
  );
}

async function standingIn({ place }: Scene): Promise<State> {
  const live = 'SELECT name, bandwidth FROM reservation WHERE deleted_ms IS NULL';
  return new Map((await place.rows(live)).map(({ name, bandwidth }) => [String(name), Number(bandwidth)]));
}

/** Looks over and over, as anyone may: what stands is always one of these. @returns ends it */
function watch(scene: Scene, allowed: readonly State[]): () => Promise<void> {
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      const standing = await standingIn(scene);
      if (!allowed.some((each) => isSame(each, standing))) {
        wrong(scene.report, `${text(standing)} stands, which is none of ${allowed.map(text).join(' and ')}`);
        return;
      }
      await sleep(30);
    }
  })();
  return async () => {
    isOver = true;
    await watching;
  };
}

function told({ report }: Scene, { exitCode, stderr }: Ended, allowed: readonly (number | null)[]): void {
  report.requests += 1;
  if (exitCode === 0) report.acknowledged += 1;
  else if (exitCode === 6) report.refused += 1;
  else report.unanswered += 1;
  if (!allowed.includes(exitCode)) wrong(report, `apply ended with ${exitCode}: ${stderr.slice(-500)}`);
}

function wrong(report: Report, what: string): void {
  report.findings.push({ kind: 'wrong', what });
}

function isSame(one: State, other: State): boolean {
  return one.size === other.size && [...one].every(([name, bandwidth]) => other.get(name) === bandwidth);
}

function text(state: State): string {
  return JSON.stringify(Object.fromEntries([...state].toSorted()));
}
