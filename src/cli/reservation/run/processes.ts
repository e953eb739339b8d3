/** The hidden command that is the guardian of a `run`. */
export const GUARDIAN = '__guardian';

/** The processes that `run` starts. `main` gives the real ones, tests their own. */
export interface Processes {
  /**
   * Checks that a command can be started, before anything is booked for it.
   *
   * @param program its name, looked for on the PATH, or its path
   * @throws Failure `command_not_found`, `command_not_runnable`
   */
  check(program: string): Promise<void>;
  /**
   * Starts a command, which has this process's own streams. Until it ends, signals that would end this process are passed
   * on to it, unless it has got them itself, as after Ctrl-C.
   *
   * @param variables set in its environment, beside those of this process
   * @throws Failure `command_not_found`, `command_not_runnable`
   */
  start(command: readonly string[], variables: Readonly<Record<string, string>>): Promise<StartedCommand>;
  /**
   * Starts this program again as a process that outlives this one and its terminal, and has no output.
   *
   * @param args without the program's own name; {@link GUARDIAN} first
   */
  startGuardian(args: readonly string[]): Promise<Pipe>;
  /**
   * A path for a file that only this user can read, in a folder that no other user can enter.
   *
   * @param name the file's name
   */
  privateFile(name: string): Promise<string>;
}

/** A command that runs. */
export interface StartedCommand {
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
