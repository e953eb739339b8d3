import * as v from 'valibot';
import { Failure } from '../../../contract/failure.ts';
import { ExperimentId } from '../../../contract/ids.ts';
import type { AuditItem, AuditSettings, Invocation } from '../../invocation.ts';
import { reservationId, siteName } from '../../names.ts';
import { auditText } from '../../print/audit.ts';
import { parsePastTime } from '../../times.ts';
import { databaseAddress } from '../run.ts';

/** The flags of the command, as typed. */
export interface AuditFlags {
  data?: string;
  database?: string;
  reservation?: string;
  user?: string;
  link?: readonly string[];
  since?: string;
  until?: string;
  refused?: boolean;
  limit: number;
}

/** Lists what a server has decided. */
export async function serveAudit(
  invocation: Invocation,
  _args: readonly string[],
  flags: AuditFlags,
): Promise<void> {
  const { output } = invocation;
  const settings = await settingsOf(invocation, flags);
  const printed = output.portions<AuditItem>(auditText);
  const more = await invocation.readAudit(settings, (portion) => printed.take(portion));
  printed.end({ more }, 'No decision matches.');
  const { limit } = settings;
  if (more) {
    const those = limit === 1 ? 'This is the newest one that matches' : `These are the newest ${limit}`;
    output.notice(`${those}; there are older ones. To see more: --limit ${limit * 10}`);
  }
}

async function settingsOf(invocation: Invocation, flags: AuditFlags): Promise<AuditSettings> {
  const { data, database, reservation, user, link, since, until } = flags;
  const { experiment } = invocation.flags;
  const times = invocation.times();
  const settings: AuditSettings = {
    ...(data === undefined ? {} : { data }),
    ...(database === undefined ? {} : { database: databaseAddress(database) }),
    ...(reservation === undefined ? {} : { reservation: reservationId(reservation) }),
    ...(experiment === undefined ? {} : { experiment: experimentId(experiment) }),
    ...(user === undefined ? {} : { by: user }),
    ...(link === undefined ? {} : { link: linkOf(link) }),
    ...(since === undefined ? {} : { since: await parsePastTime(since, times, '--since') }),
    ...(until === undefined ? {} : { until: await parsePastTime(until, times, '--until') }),
    refused: flags.refused === true,
    limit: flags.limit,
  };
  if (settings.since === undefined || settings.until === undefined || settings.since < settings.until) {
    return settings;
  }
  throw new Failure('usage', '--since is not before --until.', { why: 'Nothing can be between them.' });
}

/** The audit knows ids; which experiment a name stands for, only the portal does. */
function experimentId(text: string): string {
  if (v.is(ExperimentId, text)) return text;
  throw new Failure('usage', `${JSON.stringify(text)} is no id of an experiment.`, {
    why: 'The audit knows experiments by their ids only, such as exp_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q.',
    fix: 'slices-conn experiment list',
  });
}

function linkOf(words: readonly string[]): [site1: string, site2: string] {
  const [site1, site2, ...others] = words.flatMap((word) => word.split('~')).map(siteName);
  if (site1 !== undefined && site2 !== undefined && others.length === 0) return [site1, site2];
  throw new Failure('usage', 'A link is named by its two sites.', { fix: '--link be-gent1 pl-poznan1' });
}
