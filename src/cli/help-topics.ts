import type { Command } from 'commander';
import { Failure } from '../contract/failure.ts';
import { hinted, nearest } from '../session/choice.ts';
import { EXIT_CODES } from './exit-codes.ts';
import { globalFlags } from './help-layout.ts';

const ENVIRONMENT = `Environment:

  SLICES_CONN_USER_TOKEN, SLICES_CONN_USER_TOKEN_FILE
      the user token, or a file with it, in place of a login
  SLICES_CONN_REFRESH_TOKEN, SLICES_CONN_REFRESH_TOKEN_FILE
      the token of slices-conn login --ci, for a CI job: access tokens come from it as needed
  ACTIONS_ID_TOKEN_REQUEST_URL, ACTIONS_ID_TOKEN_REQUEST_TOKEN
      where a job of GitHub has permissions: id-token: write; it acts by slices-conn experiment ci add, without a secret
  SLICES_CONN_ID_TOKEN, SLICES_CONN_ID_TOKEN_FILE
      the same for a job of GitLab: the ID token that its id_tokens name so
  SLICES_CONN_EXPERIMENT_TOKEN, SLICES_CONN_EXPERIMENT_TOKEN_FILE
      the experiment token: it names the experiment, and the portal is not asked
  SLICES_CONN_PROFILE
      the profile to use; else the one of slices-conn profile use, else local
  SLICES_CONN_EXPERIMENT
      the experiment to act in, by id or name; else SLICES_EXPERIMENT
  SLICES_CONN_PROJECT
      the project to act in
  SLICES_CONN_BASE_URL, SLICES_CONN_PORTAL_URL, SLICES_CONN_AUTH_URL, SLICES_CONN_CLIENT_ID, SLICES_CONN_PROJECTS_API_GROUP, SLICES_CONN_EXPERIMENTS_API_GROUP
      override the addresses of every profile but offline
  SLICES_CONN_CONFIG_DIR
      where profiles are; else $XDG_CONFIG_HOME/slices-conn
  SLICES_CONN_STATE_DIR
      logins, the history, the offline server's data; else $XDG_STATE_HOME/slices-conn
  SLICES_CONN_CACHE_DIR
      key sets, compiled code; else $XDG_CACHE_HOME/slices-conn
  BROWSER
      the program with which login opens an address; none is opened where CI is set, and over ssh
  HTTP_PROXY, HTTPS_PROXY, NO_PROXY, NODE_EXTRA_CA_CERTS, NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE, TERM=dumb
      with their usual meaning
  TZ
      the time zone in which times are read and printed, unless --tz or the profile's tz names one

A command that slices-conn run starts finds:

  SLICES_CONN_RESERVATION_ID
      the reservation's id
  SLICES_CONN_RESERVATION_FILE
      a file with the signed reservation, for verify; it is replaced when the reservation changes, and removed at the end
  SLICES_CONN_SITE1, SLICES_CONN_SITE2
      the two ends
  SLICES_CONN_SITE1_S_TAG, SLICES_CONN_SITE1_C_TAG, SLICES_CONN_SITE2_S_TAG, SLICES_CONN_SITE2_C_TAG
      the VLAN tags at each end
  SLICES_CONN_BANDWIDTH
      Mbps
  SLICES_CONN_END
      when the link ends (RFC 3339, UTC), as it was booked

It finds none of the tokens above, unless run has --with-token.

A flag overrides the environment, the environment overrides the profile, and the profile overrides the default.
slices-conn profile show prints where each value comes from; slices-conn profile set --help lists the keys.
`;

const OUTPUT = `Output:

Results are on stdout; notices and errors on stderr. --quiet silences the notices only.
On a terminal, tables, cards and charts fit its width: ids are short, wide cells are cut or stand below each other. Elsewhere ids are full, and each row is one line. For programs there is --json, which is the same everywhere.

With --json one object is printed, for version and help too: {"version":"…"}, {"help":"…"}. A list is {"items":[…]}. A reservation has the service's own field names, as in
  {"reservation":{…},"verified":true,"token":"eyJ…","claims":{…},"source":"service"}
In a list each item also has its state (scheduled, active, ended, deleted, or unknown when no answer came), its source (service or ledger) and the request. Times are RFC 3339 in UTC with milliseconds, bandwidth is in Mbps.

availability prints {"link":{…},"items":[…],"slots":[…]}: what is free in each part of the time, and with --bandwidth and --duration when such a reservation can start, else null; of all links of a site a list of these.

watch prints an object a line for each event (started, updated, ending_soon, ended, deleted), as in
  {"event":"started","at":"…","reservation":{…}}

plan and apply print each name, deleted ones too, as in
  {"items":[{"name":"…","action":"create","fits":true,"reservation":null,"requested":{…},"error":null}],"applies":true}
The action is create, update, delete or none. In plan, reservation is what exists now; in apply, what is left. An apply that does not fit is a failure with these items in error.items.

A failure with --json leaves stdout empty; the last line of stderr is an object, as in
  {"error":{"code":"bandwidth_unavailable","message":"…","why":"…","fix":"slices-conn …","exitCode":6, "httpStatus":422,"retryable":false,"maybeDone":false,"details":[…],"reservation":null, "alternatives":[…]}}
run leaves stdout to its command: with --json, what reserve prints is one line on stderr, before the command starts.

An alternative is what would be accepted instead, as in
  {"kind":"earliest","bandwidth":9000,"start_date":"…","end_date":"…","start_now":false,"command":"slices-conn …"}
in the order most_bandwidth, other_route (which has via), earliest, longest; fix is the first one's command.
`;

const TIMES = `Times

  An instant is written as
    2026-12-01T10:00:00Z           RFC 3339, with Z or an offset such as +01:00, from -12:00 to +14:00
    now                            for --start: at the time of the request
    +2h30m, in 2 h                 that long after now
    14:00, 9am, noon, midnight     the next one; for --end, the first one after the start
    friday 14:00                   the next one; next friday is the first one after today
    friday next week               of the week after this one; weeks begin on Monday
    tomorrow 9am, 4 dec 09:00, Fri 4 Dec 2026 09:00, 2026-12-04 09:00, 2026-12-04T09:00
  Times that are printed can be typed as they stand. A date without a year is the next one. A weekday must be the date's.
  A duration is written as 90m, 90 min, 2h30m, 1h30, 1.5h, 11 h 6 min, 2 hours, 3d, 1w or P3D. A day is 24 hours.

  An end that names a day without a time is through that day: --end friday ends as Saturday begins.
  In update, a time of day alone is on the reservation's own day.

  A period begins at its start and ends just before its end, so one can follow another without a gap.

  Of the letters of zones Z, UTC and GMT are read: in place of CET or EST write 09:00 +01:00 or 09:00 Europe/Brussels.
  A time without a zone is in the zone of --tz, else of the profile (slices-conn profile set local tz=Europe/Brussels),
  else of TZ, else of the system. Results show times in the same zone, and name it; --json has UTC.
  A plan file is for every machine: its times name their zone, or the file does for all of them: tz: Europe/Brussels.

  Flags that take seconds, such as --wait and --timeout, also take a duration: --wait 5m.

  --start-now --for 2h lasts two hours and not less: the end that is sent is 5 s later.

  With reserve --earliest the service finds the start: --for is the duration, --start means not before (default now), --end not after (default the experiment's end).
  With reserve --volume it finds rate and time: --end is the deadline, --start means not before (default now).
  availability looks from now for a week, unless --start, --end or --for say otherwise.
`;

function exitCodes(): string {
  const lines = Object.entries(EXIT_CODES).map(([code, meaning]) => `  ${code.padStart(3)}  ${meaning}\n`);
  return `Exit codes:

${lines.join('')}
run ends with the exit code of its command. When a signal ended the command, it is 128 plus the signal's number: 129 when the terminal was closed, 130 after Ctrl-C, 143 after SIGTERM.
`;
}

function flags(program: Command): string {
  return `Flags that every command takes, before and after its name.

${globalFlags(program)}
A flag overrides the environment (slices-conn help environment), the environment overrides the profile, and the profile overrides the default.
`;
}

const TOPICS: Readonly<Record<string, (program: Command) => string>> = {
  'exit-codes': exitCodes,
  environment: () => ENVIRONMENT,
  output: () => OUTPUT,
  times: () => TIMES,
  flags,
};

/** The names of the help topics (cli/README.md, "Commands"). */
export const HELP_TOPICS: readonly string[] = Object.keys(TOPICS);

/** A topic's text, one line for each sentence or item. @throws Failure `usage` for an unknown topic */
export function helpTopic(name: string, program: Command): string {
  const topic = Object.hasOwn(TOPICS, name) ? TOPICS[name] : undefined;
  if (topic) return topic(program);
  const meant = nearest(name, HELP_TOPICS);
  throw new Failure('usage', hinted(`There is no help on ${JSON.stringify(name)}.`, name, HELP_TOPICS), {
    why: `The topics are: ${[...HELP_TOPICS, LICENCES].join(', ')}.`,
    fix: meant === undefined ? 'slices-conn --help' : `slices-conn help ${meant}`,
  });
}

/** The topic of {@link licencesText}, which is printed as it stands. */
export const LICENCES = 'licences';

/** The licences of all packages inside the program. @throws Failure `usage` where it runs from its sources */
export async function licencesText(read: () => Promise<Uint8Array | undefined>): Promise<string> {
  const notices = await read();
  if (notices) return new TextDecoder().decode(notices);
  throw new Failure('usage', 'The licences are not here.', {
    why: 'This program runs from its sources: npm run build gathers them.',
    fix: 'npm run build',
  });
}
