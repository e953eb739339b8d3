import type { FailureFacts } from '../contract/failure.ts';
import type { Connection, NetworkConnectionOptions } from '../session/login/connection.ts';
import type { Folders, Variables } from '../session/profiles/folders.ts';
import type { Profile, UnderLock } from '../session/profiles/profiles.ts';
import type { LedgerDatabase } from '../session/reservations/ledger.ts';
import type { Session } from '../session/session.ts';
import type { CommandLine } from './command-line.ts';
import type { ExitCode } from './exit-codes.ts';
import type { GlobalFlags } from './global-options.ts';
import type { Output, TextStream } from './print/output.ts';
import type { OpenProgressLine } from './print/progress.ts';
import type { Stopped } from './sent-changes.ts';
import type { ServerCommands } from './serve/server.ts';
import type { TimeContext } from './times.ts';

/**
 * The machine, its person and its services, as this program finds them. `src/main/` has the real ones, and
 * `test/fixtures/command-world.ts` those of tests; {@link Context} is made from them for each command.
 */
export interface Surroundings {
  clock: MachineClock;
  env: Environment;
  terminal: Terminal;
  files: Files;
  processes: Processes;
  /** Opens the way to a profile's services; called when a command first needs it. */
  connect: (profile: Profile, settings: NetworkSettings) => Promise<Connection>;
  /** The commands of an operator, with their flags. */
  server: ServerCommands;
}

/** All that a command may use. */
export interface Context {
  readonly clock: Clock;
  readonly env: Environment;
  readonly terminal: Terminal;
  readonly files: Files;
  readonly processes: CommandProcesses;
  readonly output: Output;
  /** The global flags. */
  readonly flags: GlobalFlags;
  /** The whole command line as it was typed. */
  readonly typed: CommandLine;
  /** The commands of an operator, with their flags. */
  readonly server: ServerCommands;
  /** The session with the services of the profile that the flags name, or of the one given. It is closed at the end. */
  session(profile?: string): Promise<Session>;
  /** The way to the services of a profile that is not kept. It is closed at the end. */
  connect(profile: Profile): Promise<Connection>;
}

/** The time, and waiting. */
export interface MachineClock {
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Waits so many milliseconds, or rejects when the signal is aborted. */
  sleep: (milliseconds: number, signal?: AbortSignal) => Promise<void>;
  /** The machine's time zone, an IANA name, whatever `TZ` says. */
  localZone: () => string;
}

/** The clock of a command. */
export interface Clock extends Pick<MachineClock, 'now' | 'sleep'> {
  /**
   * The current time and the time zone, for reading and printing times.
   *
   * @throws Failure `not_found` for an unknown profile, `state_unusable`: the profile can name the zone
   */
  times: () => Promise<TimeContext>;
}

/** The program, its user's folders and the variables that it was started with. */
export interface Environment {
  /** The version of the package. */
  version: string;
  variables: Variables;
  /** A single executable as it was typed; undefined for the package. */
  executable?: string;
  folders: Folders;
  /** The user's home folder. */
  home: string;
  /** Makes a new idempotency key, different each time. */
  newKey: () => string;
  /** The licences of all packages inside the program; undefined where it runs from its sources. */
  licences: () => Promise<Uint8Array | undefined>;
}

/** The standard streams, and the person who may sit in front of them. */
export interface Terminal {
  stdout: TextStream;
  stderr: TextStream;
  /** Whether a person types the text that standard input gives. */
  stdinIsTerminal?: boolean;
  /** Opens a line on stderr that shows the work under way; undefined where stderr is not a terminal. */
  progressLine?: OpenProgressLine;
  /**
   * Shows a person a question and reads the line that answers it; undefined without a terminal.
   *
   * @returns undefined when the input ends without an answer (Ctrl-D)
   */
  ask?: (question: string) => Promise<string | undefined>;
  /** Opens an address in the person's browser. @returns false where no browser was opened */
  openBrowser: (address: string) => Promise<boolean>;
}

/** The files that a person names on the command line, and those that this program keeps. */
export interface Files {
  /** A file's bytes, or standard input's for `-`. @throws Failure `file_unusable` */
  read(path: string): Promise<Uint8Array>;
  /** Makes a folder where there is none. @throws Failure `file_unusable` */
  makeFolder(path: string): Promise<void>;
  /** Removes a file, where there is one. @throws Failure `file_unusable` */
  remove(path: string): Promise<void>;
  /** Checks that there is no file at the path, which would be lost. @throws Failure `file_unusable` */
  checkAbsent(path: string): Promise<void>;
  /** Whether there is something at the path that writing would replace. */
  exists(path: string): Promise<boolean>;
  /** Checks that a file can be written, before anything depends on it. @throws Failure `file_unusable` */
  checkWritable(path: string): Promise<void>;
  /** Writes a file that only its owner can read, whole or not at all. @throws Failure `file_unusable` */
  writePrivate(path: string, text: string): Promise<void>;
  /** Writes a file that everyone may read. @throws Failure `file_unusable` */
  writePublic(path: string, text: string): Promise<void>;
  /**
   * The text of a file below a folder; undefined where there is none. Neither the file nor a folder on the
   * way may be a symbolic link.
   *
   * @param path absolute; it is taken as below the folder
   * @throws Failure `file_unusable`
   */
  contentBelow(folder: string, path: string): Promise<string | undefined>;
  /**
   * Writes a file below a folder, see {@link Files.contentBelow}, whole or not at all, with the folders that
   * it needs.
   *
   * @param isPrivate whether only its owner can read it
   * @throws Failure `file_unusable`
   */
  writeBelow(folder: string, path: string, text: string, isPrivate: boolean): Promise<void>;
  /** The bytes of a shell's start-up file; undefined where there is none. @throws Failure `file_unusable` */
  readStartup(path: string): Promise<Uint8Array | undefined>;
  /**
   * Writes a shell's start-up file whole or not at all, with the folders that it needs. Of a symbolic link,
   * the target is written, and keeps its mode.
   *
   * @throws Failure `file_unusable`
   */
  writeStartup(path: string, content: Uint8Array): Promise<void>;
  /** A path for a file that only this user can read, in a folder that no other user can enter. */
  privatePath(name: string): Promise<string>;
  /** Opens the database of the ledger; called when a command first needs it. */
  openLedger: () => Promise<LedgerDatabase>;
  /** Runs work while no other process runs work under the same file. */
  underLock: UnderLock;
}

/** Settings of the requests that leave this machine. */
export type NetworkSettings = Pick<
  NetworkConnectionOptions,
  'underLock' | 'timeout' | 'certificates' | 'experiment' | 'project' | 'trace'
>;

/** This process, its signals, and the processes that it starts. */
export interface Processes {
  /**
   * Checks that a command can be started, before anything is booked for it.
   *
   * @param program its name, looked for on the PATH, or its path
   * @throws Failure `command_not_found`, `command_not_runnable`
   */
  check(program: string): Promise<void>;
  /**
   * Starts a command, which has this process's own streams. Until it ends, signals that would end this
   * process are passed on to it, unless it has got them itself, as after Ctrl-C.
   *
   * @throws Failure `command_not_found`, `command_not_runnable`
   */
  start(command: readonly string[], environment: CommandEnvironment): Promise<StartedCommand>;
  /**
   * Starts this program again as the guardian of a `run`: a process that outlives this one and its terminal,
   * and has no output.
   *
   * @param flags the guardian's flags
   */
  startGuardian(flags: readonly string[]): Promise<Pipe>;
  /** Sends SIGTERM to another process, where it is still there. */
  terminate(pid: number): void;
  /** Whether this process may change network devices: it has the rights of root. */
  isRoot(): boolean;
  /**
   * Runs a program to its end, without a shell, in the C locale. It is looked for on the PATH, and in
   * /usr/sbin and /sbin, where the programs for root are.
   *
   * @throws Failure `command_not_found`, `command_not_runnable`
   */
  runProgram(call: readonly string[], options?: RunOptions): Promise<ProgramResult>;
  /** Resolves when the process is told to stop, by SIGINT or SIGTERM, which do not end it from then on. */
  stopSignal: () => Promise<Stopped>;
  /**
   * Takes a function that is called when SIGINT or SIGTERM stops the process, unless `stopSignal` waits for
   * that, or an error of standard output does. It reports the stop, and returns the exit code with which the
   * process then ends.
   */
  onStop: (tell: (stopped: Stopped | Error) => ExitCode) => void;
}

/** The processes of a command, which can say what a stop means. */
interface CommandProcesses extends Processes {
  /**
   * Sets what is said when the command is stopped (Ctrl-C, SIGTERM) from now on. Without it: which requests
   * were sent and may have taken effect.
   *
   * @param facts 'as expected': nothing is said on a terminal, since a stop is how the command ends
   */
  ifStopped: (facts: FailureFacts | 'as expected') => void;
}

/** The programs that `vlan` and `probe` run on this machine: `ip`, `ping`, `tcpdump`. */
export type Machine = Pick<Processes, 'isRoot' | 'runProgram'>;

/** The variables that a command gets in addition to those of this process. */
export interface CommandEnvironment {
  variables: Readonly<Record<string, string>>;
  /** Whether it gets this process's tokens too. Default false. */
  withTokens?: boolean;
}

/** A command that runs. */
export interface StartedCommand {
  readonly pid: number;
  /** Its exit code; 128 plus the number of the signal that ended it. */
  readonly ended: Promise<number>;
  signal(name: 'SIGTERM' | 'SIGKILL'): void;
}

/** The standard input of another process. It ends by itself when this process ends, however that happens. */
export interface Pipe {
  /** Writes a line. A reader that is gone is no failure. */
  tell(line: string): Promise<void>;
  /** Ends it. */
  close(): void;
}

/** The end of a program, and the text that it wrote. */
export interface ProgramResult {
  /** Its exit code; 128 plus the number of the signal that ended it. */
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Options of a program that is run. */
export interface RunOptions {
  /** Its standard input. Default: empty. */
  input?: string;
  /** Ends the program with SIGTERM. The result is then the text that it wrote until it ended. */
  signal?: AbortSignal;
  /** Takes each line of standard output at once. */
  onLine?: (line: string) => void;
  /** Takes each line of standard error at once. */
  onNotice?: (line: string) => void;
}

/**
 * What is left to do when a command's action is done: nothing, which is exit code 0; end with an exit code; or run another
 * command line in its place, without the program's own name.
 */
export type Outcome = number | readonly string[] | undefined;
