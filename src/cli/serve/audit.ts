import * as v from 'valibot';
import { formatBandwidth } from '../../contract/amounts.ts';
import { Failure } from '../../contract/failure.ts';
import { ExperimentId, RESERVATION_NAME } from '../../contract/fields.ts';
import { instantOf } from '../../contract/reservation-request.ts';
import type { AuditItem } from '../../operate/audit.ts';
import type { AuditFlags, AuditOptions } from '../../operate/options.ts';
import { clockOf, logText } from '../../words/civil-time.ts';
import { linkName } from '../../words/links.ts';
import { parsePastTime } from '../../words/typed-time.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context } from '../context.ts';
import type { TimeContext } from '../times.ts';
import { reservationId, siteName } from '../values.ts';

/** `slices-conn serve audit`: the decisions of a server, read from its database. */
export const command: CommandDeclaration = {
  about:
    'Lists what a server has decided, newest last: who asked for what and when, and whether it was granted, or why not. It only reads the database, next to the servers that run on it, and does not slow them down.',
  notes:
    '--experiment ID, a global flag, picks what was decided in one experiment.\nA server forgets decisions that are older than its --keep, by default 400 days.',
  examples: [
    'slices-conn serve audit',
    'slices-conn serve audit --data /var/lib/slices-conn --since 2d --refused',
    'slices-conn serve audit --link be-gent1 pl-poznan1 --since 2d --until 1d',
    'PGPASSWORD=… slices-conn serve audit --database postgres://slices@db.example.org/slices --limit 1000000 --json',
  ],
};

/** Lists what a server has decided. */
export async function run(context: Context, _args: readonly string[], flags: AuditFlags): Promise<void> {
  const { output, server } = context;
  const times = await context.clock.times();
  const request = requestOf(context, flags, times);
  const tell: Tell = (instant) => logText(instantOf(instant), clockOf(times.zone));
  // On a terminal that is too narrow for the table, each decision is a card, so that no id is cut. A pipe always gets the table.
  const printed = output.portions<AuditItem>((print, items) =>
    print.tableOrCards(
      [`when (${times.zone})`, ...HEAD],
      items.map((item) => rowOf(item, tell)),
    ),
  );
  const more = await output.waitFor('the database', () =>
    server.readAudit(request, (portion) => printed.take(portion)),
  );
  const database = server.databaseOf(request);
  printed.end({ more, database }, `No decision on ${database} matches.`);
  if (request.data === undefined && request.database === undefined) {
    output.notice(`Read on ${database}; --data and --database name another server's.`);
  }
  const { limit } = request;
  if (more) {
    const newest = limit === 1 ? 'This is the newest one that matches' : `These are the newest ${limit}`;
    output.notice(`${newest}; there are older ones. To see more: --limit ${limit * 10}`);
  }
}

function requestOf(context: Context, flags: AuditFlags, times: TimeContext): AuditOptions {
  const { reservation, link, since, until, ...others } = flags;
  const { experiment } = context.flags;
  const request: AuditOptions = {
    ...others,
    reservation:
      reservation === undefined || RESERVATION_NAME.test(reservation)
        ? reservation
        : reservationId(reservation),
    experiment: experiment === undefined ? undefined : experimentId(experiment),
    link: link && linkOf(link),
    since: since === undefined ? undefined : parsePastTime(since, times),
    until: until === undefined ? undefined : parsePastTime(until, times, { isEnd: true }),
  };
  if (request.since === undefined || request.until === undefined || request.since < request.until) {
    return request;
  }
  throw new Failure('usage', '--since is not before --until.', { why: 'There is no time between them.' });
}

/** Checks the form of an experiment id. The audit has no names: only the portal knows them. */
function experimentId(text: string): string {
  if (v.is(ExperimentId, text)) return text;
  throw new Failure('usage', `${JSON.stringify(text)} is not an experiment id.`, {
    why: 'The audit holds ids only, such as exp_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q.',
    fix: 'slices-conn experiment list',
  });
}

function linkOf(words: readonly string[]): [site1: string, site2: string] {
  const [site1, site2, ...others] = words.flatMap((word) => word.split('~')).map(siteName);
  if (site1 !== undefined && site2 !== undefined && others.length === 0) return [site1, site2];
  throw new Failure('usage', '--link takes the two sites of a link.', {
    fix: { link: ['be-gent1', 'pl-poznan1'] },
  });
}

const HEAD = ['what', 'outcome', 'link', 'S/C tags', 'bandwidth', 'period', 'reservation', 'by', 'why'];

type Tell = (instant: string) => string;

/** An instant to the second, in the reader's zone; JSON has the milliseconds. */
function rowOf(item: AuditItem, tell: Tell): string[] {
  const { at, action, accepted, count, bandwidth, tags, reservation, reservation_name, by, name, why } = item;
  return [
    tell(at),
    action,
    `${accepted ? 'accepted' : 'refused'}${count === 1 ? '' : ` ${count} times`}`,
    linkText(item),
    tags === null ? '–' : `${tags.site1_s_tag}/${tags.site1_c_tag} – ${tags.site2_s_tag}/${tags.site2_c_tag}`,
    bandwidth === null ? '–' : formatBandwidth(bandwidth),
    periodText(item, tell),
    `${reservation ?? '–'}${reservation_name === null ? '' : ` (${reservation_name})`}`,
    name ?? by,
    why ?? '–',
  ];
}

/** A link, and of a reservation over several its two ends. @example 'gr-uth – hu-sztaki, of be-gent1 – gr-uth' */
function linkText({ link, site1, site2 }: AuditItem): string {
  if (link === null) return '–';
  const name = link.replace('~', ' – ');
  const ends = site1 === null || site2 === null ? name : linkName({ site1, site2 });
  return ends === name ? name : `${name}, of ${ends}`;
}

/** A period; the end's date is left out where it equals the start's. */
function periodText({ start_date, end_date }: AuditItem, tell: Tell): string {
  if (start_date === null || end_date === null) return '–';
  const [start, end] = [tell(start_date), tell(end_date)];
  return `${start} – ${start.slice(0, 10) === end.slice(0, 10) ? end.slice(11) : end}`;
}
