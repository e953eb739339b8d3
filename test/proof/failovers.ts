import { setTimeout as sleep } from 'node:timers/promises';
import type { Rows } from '../allocator/sweep.ts';
import { ask, type RunningPostgres, startPostgres, startStandby } from '../fixtures/postgres-server.ts';
import { chanceFrom } from './chance.ts';
import { inspector, recovered } from './database-kills.ts';
import { watchBatches } from './half-batches.ts';
import { Journal, unansweredNote } from './journal.ts';
import { openLine } from './line.ts';
import { sweepAll } from './links.ts';
import { acknowledged, startLoad } from './load.ts';
import { newPlace } from './place.ts';
import { replayAll } from './replay.ts';
import { type Finding, goesOn, newReport, type Report, type Until } from './report.ts';
import { quiet, startFleet } from './server-kills.ts';

const CLIENTS = 16;
const HOUR = 3_600_000;

/**
 * PostgreSQL is killed under the load of two replicas, and its standby promoted in its place, over and over; nobody
 * touches the replicas. A synchronous standby has all that was confirmed, so nothing may be lost. An asynchronous one is
 * cut off before the kill: what is lost is lost, and everything else must be right, as if it had never been.
 */
export async function failOver({
  until,
  seed,
  synchronous,
}: {
  until: Until;
  seed: number;
  synchronous: boolean;
}): Promise<Report> {
  const kind = synchronous ? 'a synchronous' : 'an asynchronous';
  const report = newReport(`${kind} standby is promoted`, 'PostgreSQL', seed);
  const began = performance.now();
  const more = goesOn(report, until);
  const chance = chanceFrom(seed);
  const journal = new Journal();
  const { inspect, note } = inspector();
  let lost = 0;
  let primary: RunningPostgres = await startPostgres();
  let standby: RunningPostgres | undefined;
  const address = await openLine(primary.url);
  const place = newPlace(address.url);
  const fleet = await startFleet(place, 2);
  const load = async (): Promise<() => Promise<void>> =>
    startLoad({
      doors: fleet.servers.map(({ door }) => door),
      headers: await fleet.headers(),
      journal,
      report,
      chance,
      dawn: HOUR * Math.ceil(Date.now() / HOUR + 1),
      name: `load${report.requests}`,
      clients: CLIENTS,
      inspect,
      mayBreak: () => false,
    }).stop;
  /** Without what is lost, which an asynchronous standby had not got. */
  const kept = (found: readonly Finding[]): Finding[] =>
    synchronous ? [...found] : found.filter(({ kind }) => kind !== 'lost');
  try {
    while (more()) {
      report.rounds += 1;
      standby = await startStandby(primary);
      if (synchronous) {
        await ask(primary.url, "ALTER SYSTEM SET synchronous_standby_names = 'standby'");
        await ask(primary.url, 'SELECT pg_reload_conf()');
      }
      const stop = await load();
      await acknowledged(report, 8 * CLIENTS);
      if (!synchronous) {
        await cutOff(standby, primary);
        await acknowledged(report, CLIENTS + chance.below(CLIENTS));
      }
      await sleep(chance.below(300));
      report.kills += 1;
      primary.kill();
      await ask(standby.url, 'SELECT pg_promote()');
      address.leadTo(standby.url);
      report.findings.push(...(await recovered(fleet)));
      await stop();
      await quiet(place.rows);
      report.findings = kept(report.findings);
      if (!synchronous) await forgetLostBatches(journal, place.rows);
      const found = await journal.check(place.rows);
      report.findings.push(...kept(found));
      lost += found.length - kept(found).length;
      await primary.close();
      [primary, standby] = [standby, undefined];

      // The replicas remember what they decided before.
      const stopWatching = watchBatches(place.rows);
      const stopAfter = await load();
      await acknowledged(report, 4 * CLIENTS);
      await stopAfter();
      report.findings.push(...(await stopWatching()).findings);
      await quiet(place.rows);
      report.findings.push(...(await journal.check(place.rows)), ...(await sweepAll(place.rows)));
    }
    for (const { bugs } of fleet.servers) {
      report.findings.push(...bugs.map((line): Finding => ({ kind: 'wrong', what: line })));
    }
    if (!synchronous && lost === 0)
      report.findings.push({ kind: 'wrong', what: 'no promotion lost anything' });
    report.findings.push(...(await replayAll(place.rows)));
  } finally {
    await fleet.close();
    address.close();
    place.close();
    await Promise.all([primary.close(), standby?.close()]);
  }
  report.seconds = (performance.now() - began) / 1000;
  report.notes.push(unansweredNote(journal), note());
  if (!synchronous) report.notes.push(`of what was confirmed the promoted standbys lacked ${lost}`);
  return report;
}

/** A batch that was confirmed and is lost has no key; its bookings are looked at one by one. */
async function forgetLostBatches({ batches }: Journal, rows: Rows): Promise<void> {
  const keys = await rows('SELECT key FROM idempotency_key WHERE items IS NOT NULL');
  const kept = new Set(keys.map(({ key }) => key));
  for (const { key, phase } of batches.values()) if (phase === 'done' && !kept.has(key)) batches.delete(key);
}

/** From now on a standby gets nothing more: what is confirmed is lost when its primary is. */
export async function cutOff(standby: RunningPostgres, primary: RunningPostgres): Promise<void> {
  await ask(standby.url, "ALTER SYSTEM SET primary_conninfo = ''");
  await ask(standby.url, 'SELECT pg_reload_conf()');
  while ((await ask(primary.url, 'SELECT 1 FROM pg_stat_replication')).length > 0) await sleep(10);
}
