import type { FailureFacts } from '../contract/failure.ts';
import type { Connection } from '../session/login/connection.ts';
import type { TrustByKind } from '../session/login/trust.ts';
import type { Profile, Profiles } from '../session/profiles/profiles.ts';
import type { Session } from '../session/session.ts';
import type { KeySet } from '../tokens/key-set.ts';
import type { GlobalFlags } from './global-options.ts';
import type { Output } from './print/output.ts';
import type { ServerCommands } from './serve/server.ts';
import type { TimeContext } from './times.ts';
import type { Clock, Network, Terminal, World } from './world.ts';

/** The issuers whose keys are stored here, for `verify --offline` (cli/README.md, "Global flags"). */
export interface KeptTrust {
  /** The profile's services. */
  trust: TrustByKind;
  /** Any other issuer's keys. */
  keysOf(issuer: string): KeySet;
}

/** One run of a command, with all that its action may use. Sessions are opened on demand. */
export interface Invocation
  extends Pick<World, 'environment' | 'files' | 'processes'>,
    Pick<Clock, 'now' | 'sleep'>,
    Pick<Terminal, 'openBrowser' | 'stdinIsTerminal'>,
    Pick<Network, 'newKey'> {
  /** The commands of an operator, with their flags. */
  readonly server: ServerCommands;
  readonly flags: GlobalFlags;
  /** The whole command line as it was typed, without the program's own name. */
  readonly typed: readonly string[];
  readonly output: Output;
  /** A command of this program as it is to be typed here, for the same services; for results, which are printed as they are. */
  advised(command: string): string;
  /** Profiles and preferences. */
  profiles(): Promise<Profiles>;
  /** The session with the services of the profile that the flags name, or of the one given. */
  session(profile?: string): Promise<Session>;
  /** The way to the services of a profile that is not kept. */
  connectTo(profile: Profile): Promise<Connection>;
  /** The issuers whose key sets are on this machine. */
  keptTrust(): Promise<KeptTrust>;
  /**
   * The current time and the time zone, for reading and printing times.
   *
   * @throws Failure `not_found` for an unknown profile, `state_unusable`: the profile can name the zone
   */
  times(): Promise<TimeContext>;
  /** Does some work; a terminal shows `Waiting for WHAT` when it takes long. */
  waitFor<Result>(what: string, work: () => Promise<Result>): Promise<Result>;
  /** Sets the exit code, 0 to 255, of a command whose action is done and has not failed. Default: 0. */
  exitWith(exitCode: number): void;
  /** Runs another command line in place of this one, when the action is done. @param typed without the program's own name */
  continueWith(typed: readonly string[]): void;
  /**
   * Sets what is said when the command is stopped (Ctrl-C, SIGTERM) from now on. Without it: which requests
   * were sent and may have taken effect.
   *
   * @param facts 'as expected': nothing is said on a terminal, since a stop is how the command ends
   */
  ifStopped(facts: FailureFacts | 'as expected'): void;
  /** Asks a person a question; see `Terminal.ask`. Undefined without a terminal, and with `--no-input`. */
  readonly ask: Terminal['ask'];
}

/** An action of a command: its invocation, its arguments, its own flags. */
export type CommandAction<Flags> = (
  invocation: Invocation,
  args: readonly string[],
  flags: Flags,
) => Promise<void>;

/**
 * Makes commander's callback of an action. The action is loaded when its command runs, so that help starts
 * quickly.
 */
export type Invoke = <Flags>(
  load: () => Promise<CommandAction<Flags>>,
) => (...received: unknown[]) => Promise<void>;
