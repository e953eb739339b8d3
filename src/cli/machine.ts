/** How a program ended, and what it wrote. */
export interface ProgramResult {
  /** Its exit code; 128 plus the number of the signal that ended it. */
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** How a program is run. */
export interface ProgramOptions {
  /** Its standard input. Default: empty. */
  input?: string;
  /** Ends the program with SIGTERM. The result is then what it wrote until it ended. */
  signal?: AbortSignal;
  /** Takes each line of standard output at once. */
  onLine?: (line: string) => void;
  /** Takes each line of standard error at once. */
  onNotice?: (line: string) => void;
}

/**
 * The programs that `vlan` and `probe` run on this machine: `ip`, `ping`, `tcpdump`. `main` gives the real ones, tests
 * their own.
 */
export interface Machine {
  /** Whether this process may change network devices: it has the rights of root. */
  isRoot(): boolean;
  /**
   * Runs a program to its end, without a shell, in the C locale. It is looked for on the PATH, and in /usr/sbin and /sbin,
   * where it is for root.
   *
   * @throws Failure `command_not_found`, `command_not_runnable`
   */
  runProgram(call: readonly string[], options?: ProgramOptions): Promise<ProgramResult>;
}
