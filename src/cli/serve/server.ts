import type { OptionTable } from '../../contract/flags.ts';
import type { AuditItem } from '../../operate/audit.ts';
import type { backUp } from '../../operate/backup.ts';
import type {
  AuditOptions,
  BackupOptions,
  RotateKeysOptions,
  SERVER_OPTIONS,
  ServeOptions,
} from '../../operate/options.ts';
import type { KeyRow } from '../../operate/rotate-keys.ts';
import type { RunningServer, ServeSurroundings } from '../../operate/serve.ts';

/** The declared flags of `serve` and of the commands below it. */
export type ServerOptions = Readonly<Record<keyof typeof SERVER_OPTIONS, OptionTable>>;

/** The parts that a server is started with, in addition to its flags. */
export type ServeWith = Pick<ServeSurroundings, 'certificates' | 'show'>;

/** Shows an event of a server to a person. */
export type ShowEvent = NonNullable<ServeWith['show']>;

/** The facts of an event: names, numbers, reasons; never a secret. */
export type EventFields = Parameters<ShowEvent>[2];

/**
 * The commands of an operator, which the composition root hands to the command line (`operate/`, of which only types are
 * known here). Each takes the values of the flags that `options` declares.
 */
export interface ServerCommands {
  readonly options: ServerOptions;
  /**
   * Names the data of a server that these flags choose: its folder, by the whole path, or the address of its database. Not
   * checked: see the commands that open it.
   */
  databaseOf(options: Pick<RotateKeysOptions, 'data' | 'database'>): string;
  /** Starts a reference server. @throws Failure */
  serve(options: ServeOptions, given: ServeWith): Promise<RunningServer>;
  /**
   * Rotates the signing keys in a server's database.
   *
   * @param confirm is called before keys in use are removed; throws when that is not wanted
   * @returns the keys after that
   * @throws Failure
   */
  rotateKeys(options: RotateKeysOptions, confirm: () => Promise<void>): Promise<KeyRow[]>;
  /** Copies the database of a server, which may be running. `file` must not exist yet. @throws Failure `file_unusable` */
  backUp(options: BackupOptions, file: string): ReturnType<typeof backUp>;
  /**
   * Reads a server's audit, oldest first; changes nothing.
   *
   * @param take is given each portion
   * @returns whether older decisions match too, and were left out
   * @throws Failure
   */
  readAudit(options: AuditOptions, take: (portion: readonly AuditItem[]) => Promise<void>): Promise<boolean>;
}
