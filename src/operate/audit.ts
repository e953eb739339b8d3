import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { linkId } from '../allocator/network.ts';
import type { AuditItem, AuditSettings } from '../cli/invocation.ts';
import { Failure } from '../contract/failure.ts';
import { formatInstant } from '../contract/instants.ts';
import { dataFolder } from '../files/private.ts';
import { type AuditRecord, readAudit } from '../store/audit.ts';
import { openToRead, SERVER_FILE } from '../store/stores.ts';
import { databaseFailure } from './database-failure.ts';

/**
 * Reads the audit in a server's database, whether or not servers run on it (CLI.md, "Commands", serve). Nothing is made
 * or changed.
 *
 * @param defaultFolder where the data is when nothing else is said
 * @param take is given each portion, oldest first
 * @returns whether older decisions match too, and were left out
 * @throws Failure `file_unusable` or `network` for a database that can't be read
 */
export async function readServerAudit(
  { data, database: address, link, ...query }: AuditSettings,
  defaultFolder: string,
  take: (portion: readonly AuditItem[]) => Promise<void>,
): Promise<boolean> {
  const where = address ?? join(data ?? defaultFolder, SERVER_FILE);
  const isFile = address === undefined;
  if (isFile && !existsSync(where)) {
    throw new Failure('file_unusable', `There is no database at ${where}.`, {
      why: 'A server makes it when it starts.',
      fix: 'slices-conn serve audit --data DIR',
    });
  }
  if (isFile) dataFolder(data ?? defaultFolder);
  try {
    const database = await openToRead(where);
    try {
      const asked = link ? { ...query, link: linkId(...link) } : query;
      return await readAudit(database, asked, (portion) => take(portion.map(toItem)));
    } finally {
      await database.close();
    }
  } catch (cause) {
    throw databaseFailure(cause, isFile ? where : undefined);
  }
}

function toItem(record: AuditRecord): AuditItem {
  const { at, link, version, action, granted, by, experiment, reservation, demand, tags, why, count } =
    record;
  return {
    at: formatInstant(at),
    link,
    version,
    action,
    granted,
    by,
    experiment,
    reservation,
    start_date: formatInstant(demand.start),
    end_date: formatInstant(demand.end),
    bandwidth: demand.bandwidth,
    tags,
    why,
    count,
  };
}
