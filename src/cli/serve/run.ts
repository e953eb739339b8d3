import { shellWord } from '../../contract/failure.ts';
import { loginWords } from '../../contract/loopback.ts';
import type { BackupOptions, RotateKeysOptions, ServeOptions } from '../../operate/options.ts';
import type { KeyRow } from '../../operate/rotate-keys.ts';
import type { RunningServer } from '../../operate/serve.ts';
import { readCertificates } from '../ca-file.ts';
import type { Context } from '../context.ts';
import { asStarted, startedAs } from '../print/as-started.ts';
import { type CardLine, escapeText } from '../print/output.ts';
import { confirm } from '../questions.ts';
import { shortTime } from '../times.ts';
import { eventLine, eventLines } from './events.ts';
import type { ShowEvent } from './server.ts';

/** Runs a reference server until SIGINT or SIGTERM. */
export async function serve(context: Context, _args: readonly string[], flags: ServeOptions): Promise<void> {
  const {
    flags: { caFile },
    output,
    files,
    server: commands,
    processes,
  } = context;
  // First of all: a script that waits for this file must not find that of an earlier server.
  if (flags.readyFile !== undefined) await files.remove(flags.readyFile);
  const fetchesKeys = flags.trust !== undefined || flags.ciIssuer !== undefined;
  const certificates =
    caFile !== undefined && fetchesKeys ? await readCertificates(files, caFile) : undefined;
  const format = flags.log ?? (output.isForPerson ? 'text' : 'json');
  const { zone } = await context.clock.times();
  const show: ShowEvent = (level, event, fields) => {
    const line = eventLine({ level, event, fields }, { now: context.clock.now(), zone });
    for (const part of line === undefined ? [] : eventLines(line, output.columns)) output.notice(part);
  };
  const stopped = processes.stopSignal();
  const running = await commands.serve(flags, { certificates, show: format === 'text' ? show : undefined });
  const started = startedAs(context.env);
  const { addresses, listen, loginPage, metrics, users, data, warnings, stop } = running;
  const result = { addresses, listen, users, data, metrics };
  await output.result(result, (print) =>
    print.card(`Serving at ${print.paint.bold(addresses.connectivity)}`, [
      ...(new URL(addresses.connectivity).host === listen ? [] : [['listens', `at ${listen}`] as const]),
      ['log in', loginPage],
      ['API', `${addresses.connectivity}/api-docs`],
      ['portal', addresses.portal],
      ...(metrics === undefined ? [] : [['metrics', metrics] as const]),
      ...usersLines(users),
      ['data', data === 'memory' ? 'in memory only: it is gone when the server ends' : data],
      ['use it', asStarted(started, clientCommand(addresses))],
      ['stop', 'Ctrl-C'],
    ]),
  );
  for (const warning of warnings) output.notice(warning);
  if (format === 'text') output.notice(`Events are shown here, with times in ${zone}.`);
  await stopped;
  // The line holds the terminal's own ^C.
  if (output.isForPerson) output.prompt('');
  await stop();
}

/** How many users are listed. */
const MOST_USERS = 12;

/** A line for each user: the roles, and where. */
function usersLines(users: RunningServer['users']): CardLine[] {
  const width = Math.max(0, ...users.map(({ name }) => name.length));
  const lines = users.slice(0, MOST_USERS).map(({ name, roles }): string => {
    const said = [...Map.groupBy(roles, ({ role }) => role)].map(([role, held]) => {
      const places = held.map(({ project, experiment }) =>
        experiment === null ? `project ${project}` : `experiment ${project}/${experiment}`,
      );
      return `${role} of ${places.join(', ')}`;
    });
    return `${name.padEnd(width)}  ${said.join('; ') || 'no role'}`;
  });
  const more = users.length - lines.length;
  return [...lines, ...(more > 0 ? [`and ${more} more`] : [])].map((line, index) => [
    index === 0 ? 'users' : '',
    line,
  ]);
}

/** The command to type in another terminal. */
function clientCommand(addresses: RunningServer['addresses']): string {
  const command = loginWords(addresses);
  if (command !== undefined) return command;
  const { connectivity, portal, identity } = addresses;
  const keys = [`baseUrl=${connectivity}`, `portalUrl=${portal}`, `authUrl=${identity}`].map(shellWord);
  return `slices-conn profile set here ${keys.join(' ')} && slices-conn --profile here login`;
}

/** Gives the servers on a database new signing keys; asks before it removes keys that are in use. */
export async function rotateKeys(
  context: Context,
  _args: readonly string[],
  flags: RotateKeysOptions,
): Promise<void> {
  const { output, server } = context;
  const database = server.databaseOf(flags);
  const items = await output.waitFor('the database', () =>
    server.rotateKeys(flags, () => confirmed(context, database)),
  );
  const times = await context.clock.times();
  // A single result would have the kids masked: they look like tokens.
  const printed = output.portions<KeyRow>((print, rows) => {
    const table = print.table(
      ['service', 'key', 'state', `from (${times.zone})`, 'until'],
      rows.map((row) => cells(row, (instant) => shortTime(Date.parse(instant), times))),
    );
    return `Keys of the server on ${escapeText(database)}\n\n${table}`;
  });
  await printed.take(items);
  printed.end({ database }, '');
}

/** Copies a server's database while it runs. */
export async function serveBackup(
  { server, output }: Context,
  [file = '']: readonly string[],
  flags: BackupOptions,
): Promise<void> {
  const { bytes, reservations } = await output.waitFor('the database', () => server.backUp(flags, file));
  const database = server.databaseOf(flags);
  await output.result({ file, bytes, reservations, database }, (print) =>
    print.card(`Backed up to ${print.paint.bold(escapeText(file))}`, [
      ['of', database],
      ['holds', `${reservations} reservation${reservations === 1 ? '' : 's'}, ${bytes} bytes`],
      ['secret', 'the signing keys are in it'],
    ]),
  );
}

function cells(row: KeyRow, tell: (instant: string) => string): string[] {
  const { service, kid, state, signs_from, published_until } = row;
  return [service, kid, state, tell(signs_from), published_until === null ? '–' : tell(published_until)];
}

/** Asks before keys that are in use are removed; see {@link confirm}. */
async function confirmed(context: Context, database: string): Promise<void> {
  const question = `Retire every signing key of ${database} now? No token that they have signed will verify.`;
  await confirm(context, question, { unasked: 'Retiring the keys was not confirmed.' });
}
