import {
  DEFAULT_PORT,
  isServiceAddress,
  issuerName,
  issuerProblem,
  readAdministrator,
  TRUSTED_KINDS,
  type TrustedIssuer,
} from '../contract/addresses.ts';
import { parseDuration } from '../contract/amounts.ts';
import { CI_NAMES, CI_SYSTEMS, type CiIssuers } from '../contract/ci-rules.ts';
import { DAY, HOUR, secondsIn } from '../contract/durations.ts';
import type { OptionsOf, OptionTable } from '../contract/flags.ts';
import { ROLES } from '../contract/roles.ts';
import { API_GROUP, EXPERIMENTS_API_GROUP, PROJECTS_API_GROUP } from '../contract/routes.ts';

/** Where to listen; port 0 is any that is free. */
export interface ListeningPlace {
  host: string;
  port: number;
}

/** Milliseconds: tokens that a younger key has signed may still be valid. */
const SHORTEST_KEY_AGE = HOUR;
/** Milliseconds: an idempotency key and its reservation are kept for a day. */
const SHORTEST_KEEPING = DAY;
/** Milliseconds: a yearly review finds the whole year. */
const AUDIT_KEPT_MS = 400 * DAY;

const count = wholeNumber(1, 999_999_999_999, 'It must be a whole number, 1 or more.');

const SERVE = {
  host: { group: 'Address:', flags: '--host <address>', help: 'where to listen', default: '127.0.0.1' },
  port: {
    flags: '--port <number>',
    help: '0 picks a free one',
    parse: wholeNumber(0, 65_535, 'It must be a number from 0 to 65535.'),
    default: DEFAULT_PORT,
  },
  baseUrl: {
    flags: '--base-url <url>',
    help: 'the address in tokens, links and the ready file',
    parse: baseAddress,
  },
  name: {
    flags: '--name <text>',
    help: 'who serves this, as its pages say above their title (default: the address alone)',
    parse: serverName,
  },
  readyFile: {
    flags: '--ready-file <file>',
    help: 'write the addresses there once requests are taken',
  },
  data: { group: 'Data:', flags: '--data <dir>', help: 'where the data is kept' },
  memory: { flags: '--memory', help: 'keep the data in memory only', conflicts: ['data'] },
  database: {
    flags: '--database <url>',
    help: 'keep the data in PostgreSQL, which several servers may share',
    conflicts: ['data', 'memory'],
  },
  topology: { flags: '--topology <file>', help: 'the sites and links, as JSON' },
  /** Milliseconds. */
  keep: {
    flags: '--keep <duration>',
    help: 'how long the audit and deleted reservations are kept',
    parse: duration(SHORTEST_KEEPING + 1, 'It must be a duration of more than a day, such as 400d.'),
    default: AUDIT_KEPT_MS,
    defaultText: '400d',
  },
  directory: {
    group: 'Users:',
    flags: '--directory <file>',
    help: 'users, projects, experiments and roles in place of the built-in ones, as JSON',
    conflicts: ['trust'],
  },
  autoApprove: {
    flags: '--auto-approve <role>',
    help: 'approve every login at once as a user with this role (with --directory: as this user), for tests',
    choices: ROLES,
    // With --directory there are other users; `checkUser` checks it.
    parse: (text: string) => text,
  },
  /** Seconds. */
  accessTokenTtl: {
    flags: '--access-token-ttl <seconds>',
    help: 'lifetime of a user token (default: 3600)',
    parse: wholeNumber(
      1,
      99_999_999,
      'It must be a whole number of seconds, or a duration such as 1h.',
      secondsIn,
    ),
  },
  /** Milliseconds. */
  rotateKeysEvery: {
    flags: '--rotate-keys-every <duration>',
    help: 'the age at which signing keys are followed by new ones (default: never)',
    parse: duration(SHORTEST_KEY_AGE, 'It must be a duration of an hour or more, such as 90d.'),
  },
  /** Each a user id, or USER_ID@ISSUER_URL. */
  administrator: {
    flags: '--administrator <user-id>',
    help: 'a user who may delete any reservation; may be given several times',
    parse: administrator,
  },
  ciIssuer: {
    flags: '--ci-issuer <name[=url]>',
    help: `let CI jobs act by rules that leads add (experiment ci add), with ID tokens of ${CI_NAMES.join(' or ')}: of its public service, or of the one there; repeatable`,
    parse: ciIssuers,
    conflicts: ['trust'],
  },
  insecureBuiltInUsers: {
    flags: '--insecure-built-in-users',
    help: 'let anyone who reaches it log in, without a password',
  },
  ui: {
    flags: '--no-ui',
    help: 'serve no page on the network at the base address, where people see links and book',
  },
  uiClientId: {
    flags: '--ui-client-id <id>',
    help: "the page's public client at the identity provider of --trust (default: nobody can log in to the page)",
    conflicts: ['ui'],
  },
  trust: {
    group: 'Trust:',
    flags: '--trust <url[=kinds]>',
    help: 'take the tokens of the issuer there, in place of built-in users: of every kind, or only user, project, experiment, separated by commas; repeatable',
    parse: trustedIssuers,
    conflicts: ['autoApprove', 'accessTokenTtl', 'insecureBuiltInUsers'],
  },
  audience: {
    flags: '--audience <audience>',
    help: 'what their user tokens must name as aud (default: not checked, on loopback only)',
  },
  anyAudience: {
    flags: '--any-audience',
    help: 'let others reach it without an audience',
    conflicts: ['audience'],
  },
  authUrl: {
    flags: '--auth-url <url>',
    help: 'where their users log in (default: the first issuer of user tokens)',
    parse: baseAddress,
  },
  portalUrl: {
    flags: '--portal-url <url>',
    help: 'where their portal is (default: the last issuer of other tokens)',
    parse: baseAddress,
  },
  projectsApiGroup: {
    flags: '--projects-api-group <name>',
    help: "name of the portal's API of projects",
    parse: apiGroup,
    default: PROJECTS_API_GROUP,
  },
  experimentsApiGroup: {
    flags: '--experiments-api-group <name>',
    help: "name of the portal's API of experiments",
    parse: apiGroup,
    default: EXPERIMENTS_API_GROUP,
  },
  tlsCert: {
    group: 'TLS and proxy:',
    flags: '--tls-cert <file>',
    help: 'serve https with this certificate and those above it, in PEM',
  },
  tlsKey: { flags: '--tls-key <file>', help: 'its private key, in PEM' },
  behindProxy: {
    flags: '--behind-proxy',
    help: 'a proxy ends TLS; its X-Forwarded-For says where requests come from',
  },
  insecureHttp: { flags: '--insecure-http', help: 'let others reach it over plain http' },
  /** Percent. */
  maxShare: {
    group: 'Limits:',
    flags: '--max-share <percent>',
    help: 'how much of a link one project may hold at any instant (default: 100)',
    parse: wholeNumber(1, 100, 'It must be a whole number from 1 to 100.'),
  },
  maxLive: {
    flags: '--max-live <number>',
    help: 'how many reservations that have not ended one project may have (default: no limit)',
    parse: count,
  },
  /** Each leaves some 200 bytes to 1 KiB for as long as `--keep`. A program that makes one each second is far below it. */
  maxChanges: {
    flags: '--max-changes <number>',
    help: 'how often one user, or one experiment, may ask to make or update a reservation in an hour',
    parse: count,
    default: 10_000,
  },
  /** At most as many as the HTTP server serves at once in all. */
  maxConnectionsPerAddress: {
    flags: '--max-connections-per-address <number>',
    help: 'connections served at once of one address; with --behind-proxy, requests at once',
    parse: wholeNumber(1, 1000, 'It must be a number from 1 to 1000.'),
    default: 100,
  },
  log: {
    group: 'Log:',
    flags: '--log <format>',
    help: 'how events are written to stderr (default: text on a terminal, else json)',
    choices: ['text', 'json'],
  },
  metrics: {
    flags: '--metrics <address>',
    help: 'serve Prometheus metrics at /metrics of PORT, on loopback, or HOST:PORT',
    parse: listeningPlace,
  },
  /** Seconds. */
  drain: {
    flags: '--drain <seconds>',
    help: 'once told to stop, go on for so long with /readyz at 503',
    parse: wholeNumber(0, 600, 'It must be a whole number of seconds, 600 at most.', secondsIn),
    default: 0,
  },
} as const satisfies OptionTable;

/** Whose data a command beside the server works on. */
const DATA = {
  flags: '--data <dir>',
  help: "the server's data folder (default: where serve keeps it)",
} as const;
const DATABASE = {
  flags: '--database <url>',
  help: 'the PostgreSQL database that the servers share',
  conflicts: ['data'],
} as const;

const ROTATE_KEYS = {
  data: DATA,
  database: DATABASE,
  retireNow: {
    flags: '--retire-now',
    help: 'for a key that leaked: sign with the new keys at once, and let no earlier token verify any more',
  },
} as const satisfies OptionTable;

const BACKUP = { data: DATA } as const satisfies OptionTable;

const AUDIT = {
  data: DATA,
  database: DATABASE,
  reservation: { flags: '--reservation <id|name>', help: 'only about this reservation, or all of this name' },
  user: { flags: '--user <id|name>', help: 'only what this user asked for' },
  link: {
    flags: '--link <site...>',
    help: 'only on the link between two sites, SITE1 SITE2 or SITE1~SITE2',
  },
  since: { flags: '--since <time>', help: 'only from then on; a duration such as 2d is that long ago' },
  until: { flags: '--until <time>', help: 'only before then; a day is through that day' },
  refused: { flags: '--refused', help: 'only what was refused' },
  limit: { flags: '--limit <number>', help: 'the newest so many', parse: count, default: 100 },
} as const satisfies OptionTable;

/**
 * The flags of `serve` and of the commands below it (cli/README.md, "Commands", serve). The composition root hands them to the
 * command line, which reads them and hands the values back unchanged. Nothing of the server is loaded with them.
 */
export const SERVER_OPTIONS = {
  serve: SERVE,
  rotateKeys: ROTATE_KEYS,
  backup: BACKUP,
  audit: AUDIT,
} as const;

/** The flags of `serve`, each read; `settings.ts` checks them together. */
export type ServeOptions = OptionsOf<typeof SERVE>;
/** The flags of `serve rotate-keys`. */
export type RotateKeysOptions = OptionsOf<typeof ROTATE_KEYS>;
/** The flags of `serve backup`. */
export type BackupOptions = OptionsOf<typeof BACKUP>;
/** The flags of `serve audit`, as typed. */
export type AuditFlags = OptionsOf<typeof AUDIT>;
/** The flags of `serve audit`, with the times and the link read; an experiment is picked by a global flag. */
export type AuditOptions = Omit<AuditFlags, 'since' | 'until' | 'link'> & {
  /** Decided at this instant or later, in milliseconds. */
  since?: number;
  /** Decided before this instant, in milliseconds. */
  until?: number;
  /** The sites of a link, in either order. */
  link?: readonly [site1: string, site2: string];
  experiment?: string;
};

function wholeNumber(
  least: number,
  most: number,
  problem: string,
  numberIn: (text: string) => number = digitsIn,
): (text: string) => number {
  return (text) => {
    const value = numberIn(text);
    if (Number.isInteger(value) && value >= least && value <= most) return value;
    throw new RangeError(problem);
  };
}

function digitsIn(text: string): number {
  return /^[0-9]{1,12}$/.test(text) ? Number(text) : Number.NaN;
}

/** A duration in milliseconds. */
function duration(least: number, problem: string): (text: string) => number {
  return (text) => {
    try {
      const value = parseDuration(text);
      if (value >= least) return value;
    } catch {
      // The problem below says what it must be.
    }
    throw new RangeError(problem);
  };
}

/** The longest name of a server, in characters. */
const MAX_SITE_NAME = 80;

/** Reads one line of text, without control characters and characters that turn the direction of writing. */
function serverName(text: string): string {
  const name = text.trim();
  if (name.length >= 1 && name.length <= MAX_SITE_NAME && !/\p{C}/u.test(name)) return name;
  throw new RangeError(`It must be one line of 1 to ${MAX_SITE_NAME} characters.`);
}

function baseAddress(text: string): string {
  if (isServiceAddress(text)) return text.replace(/\/+$/, '');
  throw new RangeError('It must be an http or https address without a user, a query or a fragment.');
}

function apiGroup(text: string): string {
  if (API_GROUP.pattern.test(text)) return text;
  throw new RangeError(API_GROUP.problem);
}

/** PORT or HOST:PORT; a port alone is on loopback. */
function listeningPlace(text: string): ListeningPlace {
  const found = /^(?:(?<host>[^:[\]]+|\[[0-9A-Fa-f:.]+\]):)?(?<port>[0-9]{1,5})$/.exec(text);
  const { host = '127.0.0.1', port = '' } = found?.groups ?? {};
  if (found && Number(port) <= 65_535) return { host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) };
  throw new RangeError('It must be a port of this machine, or HOST:PORT.');
}

function administrator(text: string, before: readonly string[] = []): readonly string[] {
  if (readAdministrator(text)) return [...before, text];
  throw new RangeError(
    'It must be a user id, user_<host>_<id>, or for a user of another issuer user_<host>_<id>@ISSUER_URL.',
  );
}

/** ISSUER_URL or ISSUER_URL=KIND,KIND. */
function trustedIssuers(text: string, before: readonly TrustedIssuer[] = []): readonly TrustedIssuer[] {
  const [, issuer = text, names] = /^(.*)=([a-z,]*)$/.exec(text) ?? [];
  checkIssuer(issuer);
  if (names === undefined) return [...before, { issuer }];
  const kinds = names.split(',').map((name) => TRUSTED_KINDS.find((kind) => kind === name));
  if (kinds.every((kind) => kind !== undefined)) return [...before, { issuer, kinds }];
  throw new RangeError(`The kinds of tokens are ${TRUSTED_KINDS.join(', ')}.`);
}

/** NAME, or NAME=ISSUER_URL where its address is not the public one. */
function ciIssuers(text: string, before: CiIssuers = {}): CiIssuers {
  const [, named = text, url] = /^([^=]*)=(.*)$/.exec(text) ?? [];
  const name = CI_NAMES.find((one) => one === named);
  if (name === undefined || before[name] !== undefined) {
    throw new RangeError(`The names are ${CI_NAMES.join(' and ')}, each once.`);
  }
  const issuer = url ?? CI_SYSTEMS[name].issuer;
  checkIssuer(issuer);
  return { ...before, [name]: issuerName(issuer) };
}

function checkIssuer(issuer: string): void {
  const problem = issuerProblem(issuer);
  if (problem !== undefined) throw new RangeError(problem);
}
