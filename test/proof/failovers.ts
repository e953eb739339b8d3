import { setTimeout as sleep } from 'node:timers/promises';
import type { Rows } from '../allocator/sweep.ts';
import { ask, type RunningPostgres, startPostgres, startStandby } from '../fixtures/postgres-server.ts';
import { openProxy } from '../fixtures/proxy.ts';
import { inspector, recovered } from './database-kills.ts';
import { CLIENTS, quiet, startFleet } from './fleet.ts';
import { Journal } from './journal.ts';
import { acknowledged } from './load.ts';
import type { Finding, Report } from './report.ts';
import { type ProofOptions, runProof } from './run.ts';

/**
 * PostgreSQL is killed under the load of two replicas, and its standby promoted in its place, over and over; nobody
 * touches the replicas. A synchronous standby has all that was confirmed, so nothing may be lost. An asynchronous one is
 * cut off before the kill: what is lost is lost, and everything else must be right, as if it had never been.
 */
export async function failOver({
  synchronous,
  ...options
}: Omit<ProofOptions, 'postgres'> & { synchronous: boolean }): Promise<Report> {
  const kind = synchronous ? 'a synchronous' : 'an asynchronous';
  let primary: RunningPostgres = await startPostgres();
  let standby: RunningPostgres | undefined;
  const address = await openProxy(primary.url);
  const all = { ...options, postgres: address.url };
  return runProof(`${kind} standby is promoted`, all, async (run) => {
    const { place, report, chance, round, atEnd } = run;
    atEnd(async () => {
      address.close();
      await Promise.all([primary.close(), standby?.close()]);
    });
    const journal = new Journal();
    const { inspect, note } = inspector();
    let lost = 0;
    const fleet = await startFleet(run, 2);
    const load = () => fleet.load(journal, { inspect, mayBreak: () => false });
    /** Without what is lost, which an asynchronous standby had not got. */
    const kept = (found: readonly Finding[]): Finding[] =>
      synchronous ? [...found] : found.filter(({ kind }) => kind !== 'lost');
    while (round()) {
      standby = await startStandby(primary);
      if (synchronous) {
        await ask(primary.url, "ALTER SYSTEM SET synchronous_standby_names = 'standby'");
        await ask(primary.url, 'SELECT pg_reload_conf()');
      }
      const before = await load();
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
      await before.stop();
      await quiet(place.rows);
      report.findings = kept(report.findings);
      if (!synchronous) await forgetLostBatches(journal, place.rows);
      const found = await journal.check(place.rows);
      report.findings.push(...kept(found));
      lost += found.length - kept(found).length;
      await primary.close();
      [primary, standby] = [standby, undefined];

      // The replicas remember what they decided before.
      const after = await load();
      await acknowledged(report, 4 * CLIENTS);
      await after.stop();
      await fleet.check(journal);
    }
    for (const { bugs } of fleet.servers) {
      report.findings.push(...bugs.map((line): Finding => ({ kind: 'wrong', what: line })));
    }
    if (!synchronous && lost === 0)
      report.findings.push({ kind: 'wrong', what: 'no promotion lost anything' });
    await fleet.finish(journal);
    report.notes.push(note());
    if (!synchronous) report.notes.push(`of what was confirmed the promoted standbys lacked ${lost}`);
  });
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
