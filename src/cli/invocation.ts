import type { TrustedIssuer } from '../contract/issuer-address.ts';
import type { Role } from '../contract/roles.ts';
import type { TrustByKind } from '../session/login/trust.ts';
import type { Profiles } from '../session/profiles/profiles.ts';
import type { Session } from '../session/session.ts';
import type { KeySet } from '../tokens/key-set.ts';
import type { ShellHome } from './completion/install.ts';
import type { GlobalFlags } from './global-options.ts';
import type { Output } from './print/output.ts';
import type { TimeContext } from './times.ts';

/** Reads and writes the files that a person names on the command line. */
export interface UserFiles {
  /** A file's bytes, or standard input's for `-`. @throws Failure `file_unusable` */
  read(path: string): Promise<Uint8Array>;
  /** Makes a folder where there is none. @throws Failure `file_unusable` */
  makeFolder(path: string): Promise<void>;
  /** Removes a file, where there is one. @throws Failure `file_unusable` */
  remove(path: string): Promise<void>;
  /** Checks that there is no file yet that would be lost. @throws Failure `file_unusable` */
  checkAbsent(path: string): Promise<void>;
  /** Checks that a file can be written where a person wants it, before anything depends on it. @throws Failure `file_unusable` */
  checkWritable(path: string): Promise<void>;
  /** Writes a file that only its owner can read, whole or not at all. @throws Failure `file_unusable` */
  writePrivate(path: string, text: string): Promise<void>;
  /** Writes a file that everyone may read. @throws Failure `file_unusable` */
  writePublic(path: string, text: string): Promise<void>;
}

/** How a reference server is to run (CLI.md, "Commands", serve). */
export interface ServeSettings {
  host: string;
  /** 0: any that is free. */
  port: number;
  baseUrl?: string;
  /** Folder of the data. */
  data?: string;
  memory: boolean;
  /** `postgres://…`, in place of a folder. */
  database?: string;
  /** A topology file. */
  topology?: string;
  readyFile?: string;
  autoApprove?: Role;
  /** Seconds. */
  accessTokenTtl?: number;
  /** Issuers whose tokens are taken, in place of users of its own; checked, of users and experiments at least one. */
  trust?: readonly TrustedIssuer[];
  /** What the `aud` of their tokens must name. */
  audience?: string;
  /** Tokens for any audience are taken, though others can reach the server (HOSTILE.md 50). */
  anyAudience?: boolean;
  /** Where their users find portal and identity provider, to be told. */
  portalUrl?: string;
  authUrl?: string;
  /** `{projects_api_group}` and `{experiments_api_group}` of the portal. */
  projectsApiGroup: string;
  experimentsApiGroup: string;
  /** Certificates to trust besides the usual ones when the issuers' keys are fetched, in PEM. */
  certificates?: string;
  /** Files in PEM: serves https with them. */
  tls?: { cert: string; key: string };
  /** A proxy before it ends TLS and says where requests come from. */
  behindProxy?: boolean;
  /** Connections of one address that are served at once; behind a proxy, its requests under way. */
  maxConnectionsPerAddress: number;
  /** Dangers of a server that others can reach, allowed in as many words (HOSTILE.md 42). */
  insecureBuiltInUsers?: boolean;
  insecureThrowAwayKey?: boolean;
  insecureHttp?: boolean;
  /** The age at which a signing key is followed by another, in milliseconds. */
  rotateKeysEvery?: number;
  /** User ids of this server's administrators, each with its issuer's address behind an @ where that is not plain. */
  administrators: readonly string[];
  /** Where metrics are read; nowhere where this is left out. Port 0: any that is free. */
  metrics?: { host: string; port: number };
  /** How long to go on, not ready, once told to stop. Seconds. */
  drain: number;
  /** How long the audit and cancelled reservations are kept, in milliseconds. */
  keep: number;
  /** How much of a link one experiment may hold at any instant, in percent. */
  maxShare?: number;
  /** How many reservations that have not ended one experiment may have. */
  maxLive?: number;
}

/** Whose signing keys are to be rotated, and how (CLI.md, "Commands", serve). */
export interface RotateKeysSettings {
  /** Folder of the data. */
  data?: string;
  /** `postgres://…`, in place of a folder. */
  database?: string;
  /** Whether the keys that are in use are removed. */
  retireNow: boolean;
}

/** A signing key of a service, as it is shown. */
export interface KeyRow {
  service: string;
  kid: string;
  state: 'signing' | 'next' | 'old';
  signs_from: string;
  /** When an old key goes. */
  published_until: string | null;
}

/** Which decisions of a server are asked for (CLI.md, "Commands", serve). */
export interface AuditSettings {
  /** Folder of the data. */
  data?: string;
  /** `postgres://…`, in place of a folder. */
  database?: string;
  reservation?: string;
  experiment?: string;
  /** A user's id. */
  by?: string;
  /** The sites of a link, either way round. */
  link?: readonly [site1: string, site2: string];
  /** Decided at this instant or later, in milliseconds. */
  since?: number;
  /** Decided before this instant, in milliseconds. */
  until?: number;
  /** Only what was refused. */
  refused: boolean;
  /** The newest so many. */
  limit: number;
}

/** A decision of a server's allocator, as it is shown. Instants are RFC 3339 in UTC with milliseconds. */
export interface AuditItem {
  at: string;
  /** The link's sites in alphabetical order, with a `~` between. */
  link: string;
  /** The link's version that it made or, refused, was decided on. */
  version: number;
  action: 'book' | 'amend' | 'cancel';
  granted: boolean;
  /** The id of the user who asked. */
  by: string;
  experiment: string;
  /** Null for a booking that was refused. */
  reservation: string | null;
  /** What was asked for; of a cancellation, what was held. */
  start_date: string;
  end_date: string;
  /** Mbps. */
  bandwidth: number;
  /** Granted or given back, `site1` being the link's first site; null when it was refused. */
  tags: { site1_s_tag: number; site1_c_tag: number; site2_s_tag: number; site2_c_tag: number } | null;
  /** Of a refusal, the limits that it broke; of a cancellation, the reason that was given. */
  why: string | null;
  /** How many decisions it stands for: refusals beyond 1,000 of one experiment in an hour are counted by the minute. */
  count: number;
}

/** A reference server that takes requests. */
export interface RunningServer {
  addresses: { connectivity: string; portal: string; identity: string };
  /** What is dangerous about it and was allowed in as many words, in sentences. */
  dangers: readonly string[];
  /** Reads the certificate anew, where there is one. What became of it is in the log. */
  reload?(): void;
  /** Where metrics are read. */
  metrics?: string;
  /** Finishes what is under way. */
  stop(): Promise<void>;
}

/** A copy of a server's database; see `store/sqlite/backup.ts`. */
export interface BackupMade {
  bytes: number;
  reservations: number;
}

/** The issuers that can be checked with what is on this machine alone (CLI.md, "Global flags", verify). */
export interface KeptTrust {
  /** The profile's services. */
  trust: TrustByKind;
  /** Any other issuer's keys. */
  keysOf(issuer: string): KeySet;
}

/** One run of a command: what its action may reach for, opened when it is first asked for. */
export interface Invocation {
  readonly flags: GlobalFlags;
  readonly output: Output;
  readonly files: UserFiles;
  readonly shellHome: ShellHome;
  /** Profiles and preferences. */
  profiles(): Promise<Profiles>;
  /** The session with the services of the profile that the flags name, or of the one given. */
  session(profile?: string): Promise<Session>;
  /** Whom the key sets on this machine let one believe, without a network. */
  keptTrust(): Promise<KeptTrust>;
  /** Starts a reference server. @throws Failure */
  serve(settings: ServeSettings): Promise<RunningServer>;
  /** Rotates the signing keys in a server's database. @returns the keys after that @throws Failure */
  rotateKeys(settings: RotateKeysSettings): Promise<KeyRow[]>;
  /**
   * Copies the database of a server, which may be running.
   *
   * @param folder the server's data folder; undefined for the usual one
   * @throws Failure `file_unusable`
   */
  backUp(folder: string | undefined, file: string): Promise<BackupMade>;
  /**
   * Reads a server's audit, oldest first; changes nothing.
   *
   * @param take is given each portion
   * @returns whether older decisions match too, and were left out
   * @throws Failure
   */
  readAudit(
    settings: AuditSettings,
    take: (portion: readonly AuditItem[]) => Promise<void>,
  ): Promise<boolean>;
  /** Resolves when the process is told to stop, by SIGINT or SIGTERM. */
  stopSignal(): Promise<void>;
  /** What times are read against. */
  times(): TimeContext;
  /** Opens an address in the person's browser, where there is a person in front of one. @returns whether it did */
  openBrowser(address: string): Promise<boolean>;
  /** Does some work; a terminal shows `Waiting for WHAT` when it takes long. */
  waitFor<Result>(what: string, work: () => Promise<Result>): Promise<Result>;
  /** Asks a person; undefined where there is none to ask. */
  confirm(question: string): Promise<boolean | undefined>;
}

/** An action of a command: its invocation, its arguments, its own flags. */
export type Action<Flags> = (invocation: Invocation, args: readonly string[], flags: Flags) => Promise<void>;

/**
 * Makes commander's callback of an action, which is loaded when the command is run: help needs none of what the
 * actions need.
 */
export type Invoke = <Flags>(load: () => Promise<Action<Flags>>) => (...received: unknown[]) => Promise<void>;
