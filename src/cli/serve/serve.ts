import { loginWords } from '../../contract/addresses.ts';
import { shellWord } from '../../contract/failure.ts';
import type { ServeOptions } from '../../operate/options.ts';
import type { RunningServer } from '../../operate/serve.ts';
import { readCertificates } from '../ca-file.ts';
import type { CommandDeclaration } from '../command.ts';
import type { Context } from '../context.ts';
import { asStarted, startedAs } from '../print/as-started.ts';
import type { CardLine } from '../print/output.ts';
import { eventLine } from './events.ts';
import type { ShowEvent } from './server.ts';

/** `slices-conn serve`: the reference server on a socket. Its flags, as those of the commands below it, are declared in `operate/`. */
export const command: CommandDeclaration = {
  about:
    'Runs all three services on one port of this machine: the connectivity service at /, the portal at /portal, the identity provider at /auth. With --trust it is the connectivity service alone, for the users of another portal and identity provider. SIGINT and SIGTERM end it; SIGHUP reads the certificate anew, where there is one, and never ends it.',
  // It runs without a command too.
  usage: '[command] [flags]',
  first: [
    ...['host', 'port', 'baseUrl', 'data', 'memory', 'database', 'topology', 'directory', 'autoApprove'],
    ...['trust', 'tlsCert', 'tlsKey'],
  ],
  examples: [
    'slices-conn serve',
    'slices-conn serve --port 0 --memory --auto-approve lead --ready-file ready.json',
    'slices-conn serve --memory --directory users.json --auto-approve alice',
    'slices-conn serve --metrics 9464 --drain 5 --administrator user_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
    'slices-conn serve --host 0.0.0.0 --port 443 --base-url https://slices.example.org --tls-cert cert.pem --tls-key key.pem --trust https://login.example.org=user --trust https://portal.example.org=project,experiment --audience https://slices.example.org',
    'PGPASSWORD=… slices-conn serve --behind-proxy --base-url https://slices.example.org --trust https://portal.example.org --audience https://slices.example.org --database postgres://slices@db.example.org/slices',
  ],
};

/** Runs a reference server until SIGINT or SIGTERM. */
export async function run(context: Context, _args: readonly string[], flags: ServeOptions): Promise<void> {
  const { output, files, server: commands, processes } = context;
  const { caFile } = context.flags;
  // First of all: a script that waits for this file must not find that of an earlier server.
  if (flags.readyFile !== undefined) await files.remove(flags.readyFile);
  const fetchesKeys = flags.trust !== undefined || flags.ciIssuer !== undefined;
  const certificates =
    caFile !== undefined && fetchesKeys ? await readCertificates(files, caFile) : undefined;
  const format = flags.log ?? (output.isForPerson ? 'text' : 'json');
  const { zone } = await context.clock.times();
  const show: ShowEvent = (level, event, fields) => {
    const line = eventLine({ level, event, fields }, { now: context.clock.now(), zone });
    if (line !== undefined) output.notice(line);
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
    const said = roles.map(({ role, project, experiment }) => {
      return `${role} of ${experiment === null ? `project ${project}` : `experiment ${project}/${experiment}`}`;
    });
    return `${name.padEnd(width)}  ${said.join(', ') || 'no role'}`;
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
