/** A flag as `operate` declares it; see there for what the members mean. */
export interface DeclaredOption {
  readonly flags: string;
  readonly help: string;
  /** Turns text into the value. @throws RangeError with a sentence that says what it must be */
  readonly parse?: (text: string, before?: never) => unknown;
  readonly choices?: readonly string[];
  readonly default?: unknown;
  readonly defaultText?: string;
  readonly conflicts?: readonly string[];
}

/** The flags of a command, by the members that hold their values. */
export type DeclaredOptions = Readonly<Record<string, DeclaredOption>>;

/** The declared flags of `serve` and of the commands below it. */
export type ServerOptions = Readonly<Record<'serve' | 'rotateKeys' | 'backup' | 'audit', DeclaredOptions>>;

/** The flags of `serve` that the command itself reads; all flags are passed on. */
export interface ServeFlags {
  readyFile?: string;
  trust?: readonly string[];
  /** Default: `text` where stderr is a terminal, else `json`. */
  log?: 'text' | 'json';
}

/** The facts of an event: names, numbers, reasons; never a secret. */
export type EventFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** Shows an event of a server to a person. */
export type ShowEvent = (level: 'info' | 'error', event: string, fields: EventFields) => void;

/** What a server is started with besides its flags. */
export interface ServeWith {
  /** To trust besides the usual ones when the issuers' keys are fetched, in PEM. */
  certificates: string | undefined;
  /** Takes the events; undefined: they go to stderr as JSON. */
  show: ShowEvent | undefined;
}

/** A user who can log in, with the roles: each in an experiment of a project, or in the project itself. */
export interface UserRow {
  name: string;
  roles: readonly { role: string; project: string; experiment: string | null }[];
}

/** A reference server that takes requests, as `serve` prints it. */
export interface ServingServer {
  addresses: { connectivity: string; portal: string; identity: string };
  /** The page on which people log in. */
  loginPage: string;
  /** Everyone who can log in; empty where other issuers are trusted. */
  users: readonly UserRow[];
  /** Where the data is kept: a folder, the address of a database, or `memory`. */
  data: string;
  /** The dangers that a flag has allowed, in sentences. */
  warnings: readonly string[];
  /** The address of the metrics; absent without `--metrics`. */
  metrics?: string;
  /** Answers the requests that are under way, then ends the server. */
  stop(): Promise<void>;
}

/** The flags of `serve rotate-keys` that the command itself reads; all flags are passed on. */
export interface RotateKeysFlags {
  data?: string;
  database?: string;
}

/** A signing key of a service, as it is shown. Instants are RFC 3339 in UTC with milliseconds. */
export interface KeyRow {
  service: string;
  kid: string;
  state: 'signing' | 'next' | 'old';
  signs_from: string;
  /** When an old key is removed; null for other keys. */
  published_until: string | null;
}

/** The flags of `serve audit` that the command itself reads, as typed; other flags are passed on. */
export interface AuditFlags {
  reservation?: string;
  link?: readonly string[];
  since?: string;
  until?: string;
  limit: number;
}

/** The flags of `serve audit`, read. */
export interface AuditRequest {
  reservation?: string;
  experiment?: string;
  link?: readonly [site1: string, site2: string];
  /** Milliseconds since the Unix epoch. */
  since?: number;
  until?: number;
  limit: number;
}

/** A decision of a server's allocator, as it is shown. Instants are RFC 3339 in UTC with milliseconds. */
export interface AuditItem {
  at: string;
  /** The link's sites in alphabetical order, with a `~` between. */
  link: string;
  /** The link's version that the decision made or, refused, was decided on. */
  version: number;
  action: 'create' | 'update' | 'delete';
  accepted: boolean;
  /** The id of the user who asked. */
  by: string;
  experiment: string;
  /** The reservation's id; null for a refused booking. */
  reservation: string | null;
  /** The requested period; of a deletion, the period of the reservation. */
  start_date: string;
  end_date: string;
  /** Mbps. */
  bandwidth: number;
  /** Granted or released, `site1` being the link's first site; null when it was refused. */
  tags: { site1_s_tag: number; site1_c_tag: number; site2_s_tag: number; site2_c_tag: number } | null;
  /** Of a refusal, the limits that it broke; of a deletion, the reason that was given. */
  why: string | null;
  /** How many decisions this row counts: above 1,000 refusals of one experiment in an hour, a row counts a minute's. */
  count: number;
}

/**
 * The commands of an operator, which the composition root hands to the command line (`operate/`). Each takes the values
 * of the flags that `options` declares, unchanged.
 */
export interface ServerCommands {
  readonly options: ServerOptions;
  /** Starts a reference server. @throws Failure */
  serve(options: ServeFlags, given: ServeWith): Promise<ServingServer>;
  /**
   * Rotates the signing keys in a server's database.
   *
   * @param confirm is called before keys in use are removed; throws when that is not wanted
   * @returns the keys after that
   * @throws Failure
   */
  rotateKeys(options: RotateKeysFlags, confirm: () => Promise<void>): Promise<KeyRow[]>;
  /**
   * Copies the database of a server, which may be running. `file` must not exist yet.
   *
   * @returns the size of the copy, and how many reservations it holds
   * @throws Failure `file_unusable`
   */
  backUp(options: object, file: string): Promise<{ bytes: number; reservations: number }>;
  /**
   * Reads a server's audit, oldest first; changes nothing.
   *
   * @param take is given each portion
   * @returns whether older decisions match too, and were left out
   * @throws Failure
   */
  readAudit(options: AuditRequest, take: (portion: readonly AuditItem[]) => Promise<void>): Promise<boolean>;
}
