import { join } from 'node:path';
import * as v from 'valibot';
import { Reservation } from '../../src/contract/reservation.ts';
import { withoutPassword } from '../fixtures/postgres-server.ts';
import { type Ended, environmentIn, startCommand } from '../fixtures/program.ts';

export type { Ended } from '../fixtures/program.ts';

import { temporaryFolder } from '../fixtures/temporary-folder.ts';

/** How a command is run. */
export interface Running {
  /** What it reads; nothing where this is left out. */
  stdin?: string;
  env?: Readonly<Record<string, string>>;
  /** A stream that is closed before the command has started. */
  closed?: 'stdout' | 'stderr';
  /** Lets it print into a file on a full disk. */
  onFullDisk?: boolean;
  /** Lets others into the files that it makes, if it does not see to it itself. */
  withoutUmask?: boolean;
  /** Runs it as a process of its own; default: only where the other options need one. */
  ownProcess?: boolean;
  /** Takes the length in milliseconds of each pause that the command asks for, unless it is a process of its own. */
  pauses?: number[];
  /** How far the machine's clock is ahead, in milliseconds, unless it is a process of its own. Default 0. */
  clock?: number;
}

/** A person's machine: a home folder, and the command line in it. */
export type Machine = ReturnType<typeof newMachine>;

/** Runs a command in a home folder, with this environment and no other. */
export type Runner = (home: string, args: readonly string[], running: Running) => Promise<Ended>;

/** Runs a command as a process of its own, with the program that was built before the run. */
const asProcess: Runner = (home, args, { stdin = '', env, closed, onFullDisk, withoutUmask = false }) => {
  const shell = withoutUmask ? 'umask 0; exec "$@"' : onFullDisk ? 'exec "$@" >/dev/full' : undefined;
  const started = startCommand(args, {
    ...{ home, input: stdin, closed },
    // Who looks at the files of a new home folder looks at its own compiled code too.
    env: withoutUmask ? { ...env, NODE_COMPILE_CACHE: undefined } : env,
    ...(shell && { under: (command) => ['/bin/sh', '-c', shell, 'sh', ...command] }),
  });
  return started.ended;
};

/** Runs a command in the process of the test, unless an option needs a process of its own. */
const asNeeded: Runner = async (home, args, running) => {
  const { ownProcess, closed, onFullDisk, withoutUmask, env } = running;
  // Node.js and the driver of PostgreSQL read these variables from the process.
  const fromProcess = env?.['NODE_EXTRA_CA_CERTS'] ?? withoutPassword(args).env['PGPASSWORD'];
  if (ownProcess || closed || onFullDisk || withoutUmask || fromProcess)
    return asProcess(home, args, running);
  // Loaded late: test files that only start processes do not need the sources of the command line.
  return (await import('./here.ts')).here(home, args, running);
};

/**
 * See {@link Machine}. Nothing of the environment that the tests run in reaches a command. Its home folder is removed
 * after the test file that asked for it.
 *
 * @param ownProcess whether each of its commands is a process of its own; default: only where it needs one
 */
export function newMachine({ ownProcess = false }: Pick<Running, 'ownProcess'> = {}) {
  const home = temporaryFolder();
  const [config, state] = [join(home, 'config', 'slices-conn'), join(home, 'state', 'slices-conn')];
  const folders = environmentIn(home);
  /** Runs a command in the home folder and waits for its end. */
  const run = (args: readonly string[], running: Running = {}): Promise<Ended> =>
    asNeeded(home, args, { ownProcess, ...running, env: { ...folders, ...running.env } });
  /** Runs a command with `--json` that must succeed, and reads what it prints. */
  const result = async (args: readonly string[], env: Running['env']) => {
    const { exitCode, stdout, stderr } = await run(['--json', ...args], { env });
    if (exitCode !== 0) throw new Error(`${args.join(' ')} ended with ${exitCode}: ${stderr}`);
    return v.parse(v.record(v.string(), v.unknown()), JSON.parse(stdout));
  };
  return {
    ...{ home, config, state, run, resultOf: result },
    /** The database of the built-in server. */
    database: join(state, 'offline', 'reservations.sqlite'),
    /** The same of a command with `--offline`. */
    json: (...args: readonly string[]) => result(['--offline', ...args], {}),
  };
}

/** The reservation in what `--json` printed. */
export function reservationIn(printed: Readonly<Record<string, unknown>>): Reservation {
  return v.parse(v.object({ reservation: Reservation }), printed).reservation;
}

/** The four tags of a reservation. */
export function tagsOf({ site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag }: Reservation): number[] {
  return [site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag];
}

const Report = v.object({
  error: v.strictObject({
    code: v.string(),
    message: v.pipe(v.string(), v.regex(/\S/)),
    why: v.nullable(v.string()),
    fix: v.nullable(v.string()),
    exitCode: v.number(),
    httpStatus: v.nullable(v.number()),
    retryable: v.boolean(),
    maybeDone: v.boolean(),
    details: v.array(v.object({ loc: v.array(v.string()), msg: v.string(), type: v.string() })),
    reservation: v.nullable(v.string()),
    alternatives: v.array(v.unknown()),
    standing: v.optional(v.picklist(['deleted_or_replaced', 'ended'])),
    items: v.optional(v.array(v.unknown())),
  }),
});
/** The error object that `--json` puts on the last line of stderr (cli/README.md, "Output"). */
export type Report = v.InferOutput<typeof Report>['error'];

/** A time as people read it, in their zone: "22 Nov 14:00". */
const LOCAL_TIME = /\b\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b.{0,6} \d\d:\d\d/;

/** The error object of a command that failed; its exit code is the command's, and its times are in UTC. */
export function reportOf({ exitCode, stdout, stderr }: Ended): Report {
  const last = stderr.replace(/\n$/, '').split('\n').at(-1) ?? '';
  const { error } = v.parse(Report, JSON.parse(last));
  if (stdout !== '') throw new Error(`a failure printed a result: ${stdout}`);
  if (error.exitCode !== exitCode) throw new Error(`${error.exitCode} is told, the exit code is ${exitCode}`);
  const local = LOCAL_TIME.exec(`${error.message} ${error.why}`)?.[0];
  if (local !== undefined) throw new Error(`${local} is a time for people, and --json is for programs`);
  return error;
}

/** The words of a command line that a failure advises, without the program’s name. */
export function typed(fix: string | null): string[] {
  const [program, ...words] = (fix ?? '').split(' ');
  if (program !== 'slices-conn') throw new Error(`no command: ${fix}`);
  return words;
}
