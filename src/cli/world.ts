import type { Connection } from '../session/login/connection.ts';
import type { Environment, Folders } from '../session/profiles/folders.ts';
import type { Profile, UnderLock } from '../session/profiles/profiles.ts';
import type { LedgerDatabase } from '../session/reservations/ledger.ts';
import type { ExitCode } from './exit-codes.ts';
import type { Machine } from './machine.ts';
import type { TextStream } from './print/output.ts';
import type { ProgressLine } from './print/progress.ts';
import type { Processes } from './reservation/run/processes.ts';
import type { Stopped } from './sent-changes.ts';
import type { ServerCommands } from './serve/server.ts';

/** Reads and writes the files that a person names on the command line. */
export interface UserFiles {
  /** A file's bytes, or standard input's for `-`. @throws Failure `file_unusable` */
  read(path: string): Promise<Uint8Array>;
  /** Makes a folder where there is none. @throws Failure `file_unusable` */
  makeFolder(path: string): Promise<void>;
  /** Removes a file, where there is one. @throws Failure `file_unusable` */
  remove(path: string): Promise<void>;
  /** Checks that no file exists there, which would be lost. @throws Failure `file_unusable` */
  checkAbsent(path: string): Promise<void>;
  /** Whether something exists there, which writing would replace. */
  exists(path: string): Promise<boolean>;
  /** Checks that a file can be written where a person wants it, before anything depends on it. @throws Failure `file_unusable` */
  checkWritable(path: string): Promise<void>;
  /** Writes a file that only its owner can read, whole or not at all. @throws Failure `file_unusable` */
  writePrivate(path: string, text: string): Promise<void>;
  /**
   * The text of a file below a folder; undefined where there is none. Neither the file nor a folder on the way may be a
   * symbolic link.
   *
   * @param path absolute; it is taken as below the folder
   * @throws Failure `file_unusable`
   */
  contentBelow(folder: string, path: string): Promise<string | undefined>;
  /**
   * Writes a file below a folder, see {@link UserFiles.contentBelow}, whole or not at all, with the folders that it
   * needs.
   *
   * @param isPrivate whether only its owner can read it
   * @throws Failure `file_unusable`
   */
  writeBelow(folder: string, path: string, text: string, isPrivate: boolean): Promise<void>;
  /** Writes a file that everyone may read. @throws Failure `file_unusable` */
  writePublic(path: string, text: string): Promise<void>;
}

/** A person's home folder, and the start-up files of shells in it. */
export interface ShellHome {
  /** The home folder. */
  readonly path: string;
  readonly env: Environment;
  /** A file's bytes; undefined where there is none. @throws Failure `file_unusable` */
  read(path: string): Promise<Uint8Array | undefined>;
  /**
   * Writes a file whole or not at all, with the folders that it needs. Of a symbolic link, the target is written, and
   * keeps its mode.
   *
   * @throws Failure `file_unusable`
   */
  write(path: string, content: Uint8Array): Promise<void>;
}

/** How requests leave this machine. */
export interface NetworkSettings {
  /** Runs work while no other process runs work under the same file. */
  underLock: UnderLock;
  /** Milliseconds. */
  timeout: number;
  /** Certificates to trust besides the usual ones, in PEM. */
  certificates?: string;
  /** Takes a line about each request and reply, without secrets. */
  trace?: (line: string) => void;
}

/** The surroundings of a command: clock, files, streams, network. `main.ts` gives the real ones, tests their own. */
export interface World {
  version: string;
  env: Environment;
  folders: Folders;
  stdout: TextStream;
  stderr: TextStream;
  /** Opens a line on stderr that shows what is waited for; undefined where stderr is not a terminal. */
  progressLine?: () => Promise<ProgressLine>;
  files: UserFiles;
  /** The start-up files of the person's shells. */
  shellHome: ShellHome;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** The machine's time zone, an IANA name, whatever `TZ` says. */
  localZone: () => string;
  /** Opens the way to a profile's services; called when a command first needs it. */
  connect: (profile: Profile, network: NetworkSettings) => Promise<Connection>;
  /** Opens the database of the ledger; called when a command first needs it. */
  openLedger: () => Promise<LedgerDatabase>;
  /** Runs work while no other process runs work under the same file. */
  underLock: UnderLock;
  /** Makes a new idempotency key, different each time. */
  newKey: () => string;
  /** Waits so many milliseconds, or rejects when the signal is aborted. */
  sleep: (milliseconds: number, signal?: AbortSignal) => Promise<void>;
  /** Opens an address in the person's browser. @returns false where no browser was opened */
  openBrowser: (address: string) => Promise<boolean>;
  /** The commands of an operator, with their flags. */
  server: ServerCommands;
  /** The processes that `run` starts. */
  processes: Processes;
  /** The programs of this machine that look at network devices and change them. */
  machine: Machine;
  /** Resolves when the process is told to stop, by SIGINT or SIGTERM, which do not end it from then on. */
  stopSignal: () => Promise<Stopped>;
  /**
   * Takes a function that is called when SIGINT or SIGTERM stops the process, unless `stopSignal` waits for that, or an error
   * of standard output does. It reports the stop, and returns the exit code with which the process then ends.
   */
  onStop: (tell: (stopped: Stopped | Error) => ExitCode) => void;
  /**
   * Shows a person a question and reads the line that answers it; undefined without a terminal.
   *
   * @returns undefined when the input ends without an answer (Ctrl-D)
   */
  /** Whether a person types what standard input gives. */
  stdinIsTerminal?: boolean;
  ask?: (question: string) => Promise<string | undefined>;
}
