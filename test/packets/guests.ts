import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Machine, RunOptions } from '../../src/cli/context.ts';
import { Failure, shellWord } from '../../src/contract/failure.ts';
import { PATIENCE } from '../fixtures/patience.ts';

/** What guests need on this machine, each with the Debian package that brings it. */
const NEEDED: readonly (readonly [path: string, debianPackage: string])[] = [
  ['/usr/bin/linux.uml', 'user-mode-linux'],
  ['/usr/bin/busybox', 'busybox-static'],
  ['/usr/bin/ping', 'iputils-ping'],
  ['/usr/bin/arping', 'iputils-arping'],
  ['/usr/bin/tcpdump', 'tcpdump'],
];

/** The Debian packages that are missing for guests to run here. */
export function missingPackages(): string[] {
  return NEEDED.flatMap(([path, name]) => (existsSync(path) ? [] : [name]));
}

/**
 * Parameters of a kernel without what costs most of its start: 256 pairs of terminals, each with its devices, and measuring
 * which checksum of a disk array is the fastest. About 1 s of processor time is left of 4 s.
 */
const QUICK_START = [
  'pty.legacy_count=0',
  'initcall_blacklist=raid6_select_algo,calibrate_xor_blocks',
] as const;

/**
 * Why no guest runs on this machine, though all of it is installed; undefined where one does. User Mode Linux as Debian 12
 * has it can't give a program its registers on processors that have more of them than it knows (AMX): each program crashes.
 */
export function processorFault(): string | undefined {
  const root = ['rootfstype=hostfs', 'rootflags=/', 'ro', 'init=/bin/true'];
  const call = ['mem=64M', ...root, 'con=null', 'con0=null,fd:1', 'quiet', ...QUICK_START];
  const { stdout } = spawnSync('/usr/bin/linux.uml', call, { encoding: 'utf8', timeout: PATIENCE });
  return /ptrace set fp regs failed/.test(stdout ?? '')
    ? 'User Mode Linux can not set the registers of this processor'
    : undefined;
}

const init = fileURLToPath(new URL('guest-init.sh', import.meta.url));
/** Each frame of the transport l2tpv3 over UDP starts with this: data of session 1. */
const HEADER = Buffer.from('0003000000000001', 'hex');

/** One of the two guests that are servers, each at one end of the link. */
export type Which = 0 | 1;

/**
 * An end of a wire: that of a server, or one of the two of a site between, towards the first server or the second. Two sites may be
 * between; one guest is both.
 */
export type WireEnd = Which | 2 | 3 | 4 | 5;

/** The two ends of each hop of a route. */
export function endsOf(hops: 1 | 2 | 3): [WireEnd, WireEnd][] {
  const sites = ([2, 4] as const).slice(0, hops - 1);
  const near = [0, ...sites.map((end) => (end + 1) as WireEnd)] as const;
  const far = [...sites, 1] as const;
  return near.map((end, hop) => [end, far[hop] ?? 1]);
}

/** Where what is sent at each end arrives. */
export function wiresOver(hops: 1 | 2 | 3): WireEnd[] {
  const wires: WireEnd[] = [];
  for (const [one, other] of endsOf(hops)) [wires[one], wires[other]] = [other, one];
  return wires;
}

/** A frame that a guest has sent, as it was. */
export interface Frame {
  readonly from: WireEnd;
  readonly bytes: Buffer;
}

/** What a command in a guest came to. */
export interface GuestRun {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * A server: a Linux kernel of its own, with a network device `eth1` whose wire ends in the {@link Provider}. The sites
 * between have two wires each instead, `vec0` and `vec1`, `vec2` and `vec3`.
 */
export interface Guest {
  /** A folder of this machine that the guest has as `/mnt`, its working folder. */
  readonly folder: string;
  /** Runs a shell script in the guest, beside those that run already. */
  run(script: string, options?: RunOptions): Promise<GuestRun>;
}

/** The programs of a guest, for a command that runs in this process. @param without programs that are not found */
export function machineOf(guest: Guest, without: readonly string[] = []): Machine {
  return {
    isRoot: () => true,
    async runProgram(call, options) {
      const [program = ''] = call;
      if (without.includes(program)) throw new Failure('command_not_found', `There is no ${program}.`);
      const input =
        options?.input === undefined
          ? ''
          : ` <<'END'
${options.input}END`;
      return guest.run(`exec ${call.map(shellWord).join(' ')}${input}`, options);
    },
  };
}

/** The network between the guests: it is this process, so it sees each frame, and decides what becomes of it. */
export class Provider {
  /** Every frame that has come since the test began. */
  frames: Frame[] = [];
  /** Makes the frame that arrives at the other end of what one end sends; undefined where it is dropped. */
  carry: (frame: Frame) => Buffer | undefined;
  /** See {@link wiresOver}; from server to server until a test changes it. */
  wires: readonly WireEnd[] = wiresOver(1);
  readonly #ends: readonly WireSocket[];

  constructor(ends: readonly WireSocket[], carry: (frame: Frame) => Buffer | undefined) {
    this.#ends = ends;
    this.carry = carry;
    for (const [from, { socket }] of ends.entries()) {
      socket.on('message', (message) =>
        this.#take({ from: from as WireEnd, bytes: message.subarray(HEADER.length) }),
      );
    }
  }

  #take(frame: Frame): void {
    this.frames.push(frame);
    const to = this.#ends[this.wires[frame.from] ?? frame.from];
    const carried = this.carry(frame);
    if (carried) to?.socket.send(Buffer.concat([HEADER, carried]), to.guestPort, '127.0.0.1');
  }
}

/** The guests and the network between them. */
export interface Bench {
  readonly guests: readonly [Guest, Guest];
  /** The sites between, where there are any. */
  readonly site?: Guest;
  readonly provider: Provider;
  /** Ends all, and removes what they wrote. */
  close(): Promise<void>;
}

/**
 * Starts two guests; about 2 s. They see the files of this machine and can't write to them. Only loopback is used. A guest
 * ends by itself when this process is gone.
 *
 * @param withSite whether a third one is started, the sites between; default false
 */
export async function startBench({
  carry,
  withSite = false,
}: Pick<Provider, 'carry'> & { withSite?: boolean }): Promise<Bench> {
  const folder = mkdtempSync(join(tmpdir(), 'slices-conn-guests-'));
  const started: { stop(): Promise<void> }[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(started.map((one) => one.stop()));
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const ends = await Promise.all(Array.from({ length: withSite ? 6 : 2 }, wireSocket));
    started.push({ stop: async () => void ends.map(({ socket }) => socket.close()) });
    const provider = new Provider(ends, carry);
    const start = (number: number, wires: readonly WireSocket[]): RunningGuest => {
      const guest = new RunningGuest(mkdtempSync(join(folder, `guest${number}-`)), number, wires);
      started.push(guest);
      return guest;
    };
    const guests = [start(0, ends.slice(0, 1)), start(1, ends.slice(1, 2))] as const;
    const site = withSite ? start(2, ends.slice(2)) : undefined;
    await Promise.all([...guests, ...(site ? [site] : [])].map(({ ready }) => ready));
    return { guests, provider, close, ...(site && { site }) };
  } catch (error) {
    await close();
    throw error;
  }
}

/** This process's end of a wire, and the port of the guest at the other one. */
interface WireSocket {
  readonly socket: Socket;
  readonly guestPort: number;
}

async function wireSocket(): Promise<WireSocket> {
  const [socket, theirs] = await Promise.all([boundSocket(), boundSocket()]);
  const guestPort = theirs.address().port;
  // The guest binds it next.
  await once(theirs.close(), 'close');
  return { socket, guestPort };
}

async function boundSocket(): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return socket;
}

class RunningGuest implements Guest {
  readonly folder: string;
  readonly ready: Promise<void>;
  readonly #child: ChildProcess;
  /** The guest's serial line: names of scripts to it, names and exit codes of those that have ended from it. */
  readonly #line: Duplex;
  readonly #ended: Promise<unknown>;
  /** Takes the exit code of each script that runs. */
  readonly #running = new Map<string, (exitCode: number) => void>();
  readonly #gone: Promise<never>;
  #console = '';
  #count = 0;

  /** @param wires one for a server, four for the sites between */
  constructor(folder: string, number: number, wires: readonly WireSocket[]) {
    this.folder = folder;
    const devices = wires.map(({ socket, guestPort }, at) =>
      [
        `vec${at}:transport=l2tpv3,udp=1,src=127.0.0.1,dst=127.0.0.1`,
        `srcport=${guestPort},dstport=${socket.address().port},rx_session=1,tx_session=1,mtu=1600`,
      ].join(','),
    );
    this.#child = spawn(
      '/usr/bin/linux.uml',
      [
        ...['mem=192M', 'rootfstype=hostfs', 'rootflags=/', 'ro', `init=${init}`, ...devices],
        ...['con=null', 'con0=null,fd:1', 'con1=null,fd:1', 'ssl=null', 'ssl0=fd:3', 'quiet'],
        ...QUICK_START,
        `uml_dir=${folder}`,
        `guest_folder=${folder}`,
        ...(wires.length === 1 ? [`guest_address=02:00:00:00:00:0${number + 1}`] : []),
      ],
      // A group of its own: the kernel is several processes, and all of them are ended together.
      { detached: true, stdio: ['ignore', 'pipe', 'pipe', 'pipe'] },
    );
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#console += text;
      });
    }
    this.#ended = once(this.#child, 'close');
    this.#gone = this.#ended.then(() => {
      throw new Error(`The guest has ended:\n${this.#console}`);
    });
    this.#gone.catch(() => undefined);
    process.once('exit', this.#kill);
    const line = this.#child.stdio[3];
    if (!(line instanceof Duplex)) throw new TypeError('a pipe was asked for');
    this.#line = line;
    this.#line.on('error', () => undefined);
    this.ready = this.#exitCode('ready').then(() => undefined);
    createInterface({ input: this.#line }).on('line', (said) => {
      const [name = '', exitCode] = said.split(' ');
      this.#running.get(name)?.(Number(exitCode));
    });
  }

  async run(script: string, { signal, onLine, onNotice }: RunOptions = {}): Promise<GuestRun> {
    this.#count += 1;
    const count = this.#count;
    const name = join(this.folder, String(count));
    const read = (kind: string): string => readFileSync(`${name}.${kind}`, 'utf8');
    const numbered = signal ? `read -r pid _ </proc/self/stat; echo $pid >${count}.pid\n` : '';
    writeFileSync(name, `${numbered}${script}\n`);
    const streams = [linesOf(`${name}.stdout`, onLine), linesOf(`${name}.stderr`, onNotice)];
    const look = (): void => {
      for (const readOn of streams) readOn();
    };
    const watcher = onLine || onNotice ? watch(this.folder, look) : undefined;
    const stop = (): void =>
      // Where the guest ends first, so does the script.
      void this.run(`read -r pid <${count}.pid; kill "$pid"`).catch(() => undefined);
    signal?.addEventListener('abort', stop, { once: true });
    try {
      const ended = this.#exitCode(String(count));
      this.#line.write(`${count}\n`);
      if (signal?.aborted) stop();
      return { exitCode: await ended, stdout: read('stdout'), stderr: read('stderr') };
    } finally {
      signal?.removeEventListener('abort', stop);
      watcher?.close();
      look();
    }
  }

  async stop(): Promise<void> {
    this.#kill();
    await this.#ended;
    process.removeListener('exit', this.#kill);
  }

  readonly #kill = (): void => {
    const { pid, exitCode, signalCode } = this.#child;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    process.kill(-pid, 'SIGKILL');
  };

  /** @throws Error with the guest's console where the guest ends before */
  async #exitCode(name: string): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<number>();
    this.#running.set(name, resolve);
    try {
      return await Promise.race([promise, this.#gone]);
    } finally {
      this.#running.delete(name);
    }
  }
}

/** Gives each whole line of a file that grows; to be called when it may have grown. */
function linesOf(path: string, take: ((line: string) => void) | undefined): () => void {
  let given = 0;
  return () => {
    if (!take || !existsSync(path)) return;
    const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
    for (const line of lines.slice(given)) take(line);
    given = lines.length;
  };
}
