import { setTimeout as sleep } from 'node:timers/promises';
import { halfRoutes, type Rows } from '../allocator/sweep.ts';
import type { Finding } from './report.ts';

/** The name of a reservation that a batch makes: it says how many the batch makes, and which of them it is. */
export function nameInBatch(batch: string, size: number, index: number): string {
  return `${batch}-${size}-${index}`;
}

/** What the names of a batch's reservations have in common. */
export function batchOf(name: string): string {
  return name.replace(/-\d+$/, '');
}

/** Batches of which some reservations are there and others are not. Deleted ones keep their row. */
export async function halfBatches(rows: Rows): Promise<Finding[]> {
  const named = await rows('SELECT name FROM reservation WHERE name IS NOT NULL');
  const made = Map.groupBy(named, ({ name }) => batchOf(String(name)));
  return [...made].flatMap(([batch, { length }]): Finding[] => {
    if (length === Number(batch.split('-').at(-1))) return [];
    return [{ kind: 'wrong', what: `of the batch ${batch} ${length} are there` }];
  });
}

/** Looks for half batches and half routes over and over, as anyone may who reads meanwhile. @returns ends it, and gives what was found */
export function watchHalves(rows: Rows): () => Promise<{ looks: number; findings: Finding[] }> {
  const findings: Finding[] = [];
  let looks = 0;
  let isOver = false;
  const watching = (async () => {
    while (!isOver && findings.length === 0) {
      findings.push(...(await halfBatches(rows)));
      findings.push(
        ...(await halfRoutes(rows)).map((what): Finding => ({ kind: 'wrong', what: `meanwhile: ${what}` })),
      );
      looks += 1;
      await sleep(20);
    }
  })();
  return async () => {
    isOver = true;
    await watching;
    return { looks, findings };
  };
}
