import { Failure } from '../contract/failure.ts';
import { idKind } from '../contract/fields.ts';
import { formatInstant } from '../contract/instants.ts';
import { linkId } from '../contract/links.ts';
import { type AuditRecord, CI_TOKEN, readAudit, readNames } from '../store/audit.ts';
import { openToRead } from '../store/stores.ts';
import { databaseFailure, existingData } from './database.ts';
import type { AuditOptions } from './options.ts';

/**
 * Reads the audit in a server's database, while servers run on it or not (cli/README.md, "Commands", serve). It creates and
 * changes nothing.
 *
 * @param defaultFolder holds the data when no flag says where it is
 * @param take is given each portion, oldest first
 * @returns whether older decisions match too, and were left out
 * @throws Failure `file_unusable` or `network` for a database that can't be read
 */
export async function readServerAudit(
  { data, database, link, user, reservation, ...query }: AuditOptions,
  defaultFolder: string,
  take: (portion: readonly AuditItem[]) => Promise<void>,
): Promise<boolean> {
  const place = existingData({ data, database }, defaultFolder);
  try {
    const opened = await openToRead(place.database);
    try {
      const names = await readNames(opened);
      const asked = {
        ...query,
        by: user && userId(user, names),
        link: link && linkId(...link),
        ...(reservation === undefined || idKind(reservation) !== undefined
          ? { reservation }
          : { name: reservation }),
      };
      return await readAudit(opened, asked, (portion) =>
        take(portion.map((record) => toItem(record, names.get(record.by)))),
      );
    } finally {
      await opened.close();
    }
  } catch (cause) {
    throw databaseFailure(cause, place);
  }
}

/**
 * A decision as `--json` shows it. Instants are RFC 3339 in UTC with milliseconds, `bandwidth` is in Mbps. What is said of a
 * link and a period is null for a CI job that asked for a token.
 */
export type AuditItem = ReturnType<typeof toItem>;

/** The id of a user who is named by it, or by a name. @throws Failure `usage` for a name that no user of this server has */
function userId(user: string, names: ReadonlyMap<string, string>): string {
  const [id] = [...names].find(([, name]) => name === user) ?? [];
  if (id !== undefined) return id;
  if (/^user_/.test(user)) return user;
  throw new Failure('usage', `This server has no user ${JSON.stringify(user)}.`, {
    why: names.size > 0 ? `Its users are: ${[...names.values()].slice(0, MOST_NAMED).join(', ')}.` : NO_NAMES,
    fix: 'slices-conn serve audit --help',
  });
}

const NO_NAMES = 'Its users are those of another provider: name them by their ids.';
/** How many users are named. */
const MOST_NAMED = 20;

function toItem(record: AuditRecord, name: string | undefined) {
  const { at, link, version, action, accepted, by, experiment, reservation, demand, tags, why, count, of } =
    record;
  const isOfLink = action !== CI_TOKEN;
  return {
    at: formatInstant(at),
    link: isOfLink ? link : null,
    version: isOfLink ? version : null,
    action,
    accepted,
    by,
    name: name ?? null,
    experiment,
    reservation,
    reservation_name: of?.name ?? null,
    site1: of?.site1 ?? null,
    site2: of?.site2 ?? null,
    start_date: isOfLink ? formatInstant(demand.start) : null,
    end_date: isOfLink ? formatInstant(demand.end) : null,
    bandwidth: isOfLink ? demand.bandwidth : null,
    tags,
    why,
    count,
  };
}
