import { isIPv6 } from 'node:net';
import { Failure } from '../../contract/failure.ts';
import { type End, TAG_BYTES } from '../../vlan/end.ts';
import type { Machine } from '../context.ts';
import { addressesOf, type Device, devicesOf } from './devices.ts';
import { type Deaf, type Listener, listenWithTcpdump } from './listening.ts';
import { heardIn, rightStack, type Stack, stackText } from './stacks.ts';
import { type Evidence, isOfAnother, ownFault, type Pair, pairOf } from './verdict.ts';
import { watchStacks } from './watched-stacks.ts';

/** One thing that was looked at, as `probe --json` has it. */
export interface Check {
  readonly check: string;
  readonly ok: boolean;
  /** The observation, in a few words. */
  readonly saw: string;
}

/** The needs of {@link gather}. */
interface Gathering {
  machine: Machine;
  sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  /** Milliseconds. */
  now: () => number;
  /** Does some work; a terminal shows that it is waited for. */
  waitFor: <Result>(what: string, work: () => Promise<Result>) => Promise<Result>;
  /** From its first call on, a stop aborts this signal, and the command removes what it has made. */
  stopped: () => AbortSignal;
  /** Takes each check. */
  note: (check: Check) => void;
}

/** How often each size is tried. */
const TRIES = 3;
/** The longest listening, in milliseconds: an end that tries to reach the other sends ARP each second. */
export const LISTENING = 6000;
/** The longest wait for ARP after the right tags were heard, in milliseconds from the first request. */
const ANSWERING = 3000;
/** The end of a program that asks the other end, should this process be gone, in seconds. */
const MOST_ASKING = 60;
/** How often what was heard is looked at meanwhile, in milliseconds. */
const LOOK = 500;
/** The data of a small packet, as `ping` has it without a flag, in bytes. */
const SMALL = 56;

/**
 * Collects the evidence for a verdict, and stops where a row of the table decides. Frames are sent with the
 * reservation's own tags only.
 *
 * @param peer an IP address
 */
export async function gather(end: End, peer: string, gathering: Gathering): Promise<Evidence> {
  const { machine, note, waitFor } = gathering;
  const devices = await devicesOf(machine);
  const none: Evidence = {
    ...{ devices, addresses: null, small: null, full: null, again: null },
    ...{ shorter: null, arp: null, heard: null },
  };
  const fault = ownFault(end, none);
  const pair = pairOf(end, devices);
  note({ check: 'devices', ok: !fault, saw: described(end, pair, devices) });
  if (fault || !pair) return none;

  const addresses = (await addressesOf(pair.inner.name, machine)).filter(
    (address) => isIPv6(peer) === address.includes(':'),
  );
  const local: Evidence = { ...none, addresses };
  const own = addresses.some((address) => address.split('/')[0] === peer);
  if (own) {
    throw new Failure('usage', `${peer} is the address of this end.`, {
      why: `${pair.inner.name} has it. --peer takes the address of ${end.otherSite}.`,
    });
  }
  note({ check: 'address', ok: addresses.length > 0, saw: addresses.join(', ') || 'none' });
  if (ownFault(end, local)) return local;

  const ping = async (check: string, data: number): Promise<Evidence['full']> => {
    const call = ['ping', '-n', '-M', 'do', '-c', String(TRIES), '-i', '0.2', '-W', '2', '-s', String(data)];
    const tried = await waitFor(`an answer from ${peer}`, () =>
      machine.runProgram([...call, '-I', pair.inner.name, peer]),
    );
    const { result, saw } = pingResult(tried);
    note({ check, ok: result === 'answered', saw: `${data + headersOf(peer)} bytes: ${saw}` });
    return result;
  };
  const dataOf = (size: number): number => size - headersOf(peer);

  let evidence: Evidence = { ...local, small: (await ping('small_packets', SMALL)) === 'answered' };
  if (evidence.small) {
    const full = await ping('full_size', dataOf(end.mtu.inner));
    evidence = { ...evidence, full };
    if (full !== 'lost') return evidence;
    const again = (await ping('small_packets_again', SMALL)) === 'answered';
    evidence = { ...evidence, again };
    if (again) {
      const shorter = await ping('shorter_packets', dataOf(end.mtu.inner - TAG_BYTES));
      return { ...evidence, shorter: shorter === 'answered' };
    }
  }
  const { arp, heard } = await waitFor(`frames from ${end.otherSite}`, () =>
    listen(end, peer, { pair, devices }, gathering),
  );
  return { ...evidence, arp, heard };
}

/** How many devices are described at most. */
const MOST_DESCRIBED = 8;

/** The end's device with the reservation's two; where those are missing, with every VLAN device on it. */
function described({ device }: End, pair: Pair | undefined, devices: readonly Device[]): string {
  const below = devices.find(({ name }) => name === device);
  if (!below) return `no ${device}`;
  const outer = devices.filter(({ parent, tag }) => parent === device && tag);
  const on = outer.flatMap((one) => [one, ...devices.filter(({ parent }) => parent === one.name)]);
  const above = pair ? [pair.outer, pair.inner] : on.slice(0, MOST_DESCRIBED);
  const texts = [below, ...above].map(({ name, tag, mtu, isUp, hasCarrier }) => {
    const state = isUp ? (hasCarrier ? '' : ' no carrier') : ' down';
    return `${name}${tag ? ` ${stackText([tag])}` : ''} MTU ${mtu}${state}`;
  });
  return [...texts, ...(above.length === 0 ? ['no VLAN device on it'] : [])].join(', ');
}

/** The bytes of the headers of IP and ICMP. */
function headersOf(peer: string): number {
  return isIPv6(peer) ? 48 : 28;
}

/** Reads what `ping` printed. @throws Failure `not_supported` for another program than that of iputils */
function pingResult({ exitCode, stdout, stderr }: Awaited<ReturnType<Machine['runProgram']>>): {
  result: NonNullable<Evidence['full']>;
  saw: string;
} {
  const [, sent, received] = /(\d+) packets transmitted, (\d+) received/.exec(stdout) ?? [];
  if (sent === undefined && /invalid option|unrecognized option|usage:/i.test(stderr)) {
    throw new Failure('not_supported', 'The ping of this machine has not the options that are needed.', {
      why: 'It needs -M do, so that packets are not cut in pieces: ping of iputils has it.',
    });
  }
  if (exitCode === 0) return { result: 'answered', saw: `${received} of ${sent} answered` };
  if (/message too long/i.test(stdout + stderr)) {
    const mtu = /mtu\s*=\s*(\d+)/i.exec(stdout + stderr)?.[1];
    return {
      result: 'too_long',
      saw: `too long to be sent${mtu === undefined ? '' : `, the MTU is ${mtu}`}`,
    };
  }
  const why = stderr.trim().split('\n').at(-1);
  return {
    result: 'lost',
    saw: sent === undefined && why ? why : `${received ?? 0} of ${sent ?? TRIES} answered`,
  };
}

/** Listens to what arrives, and asks by ARP all the time: what one end asks is what the other one hears. */
async function listen(
  end: End,
  peer: string,
  { pair, devices }: { pair: Pair; devices: readonly Device[] },
  gathering: Gathering,
): Promise<Pick<Evidence, 'arp' | 'heard'>> {
  const { machine, note, now, sleep } = gathering;
  // From here on something is left behind where the process ends at once.
  const stop = gathering.stopped();
  const begun = now();
  const over = new AbortController();
  const asking = ask(peer, pair.inner.name, machine, AbortSignal.any([stop, over.signal]));
  // A failure is thrown below, where it is waited for.
  asking.catch(() => undefined);
  let listener: Listener | Deaf | undefined;
  try {
    listener = await listenWithTcpdump(end, machine);
    if ('why' in listener && listener.isMissing && machine.isRoot()) {
      listener = await watchStacks(end, machine, stop);
    }
    const isOurs = (stack: Stack): boolean => !isOfAnother(stack, pair, devices);
    const isRight = (stack: Stack): boolean => heardIn(stack, end) === 'right';
    const arrived = 'why' in listener ? null : await heardWithin(end, isOurs, listener, gathering, stop);
    // With wrong tags it does not matter whether ARP is answered.
    const matters = !arrived || arrived.length === 0 || arrived.some(isRight);
    if (matters) {
      const left = Math.max(0, begun + ANSWERING - now());
      await Promise.race([asking, sleep(left, AbortSignal.any([stop, over.signal]))]);
    }
    over.abort();
    const { arp, saw: answer } = await asking;
    // An answer to ARP has come with the right tags.
    const heard = arp && !arrived?.some(isRight) ? [...(arrived ?? []), rightStack(end)] : arrived;
    if (matters && answer !== undefined) note({ check: 'arp', ok: arp === true, saw: answer });
    const without = 'why' in listener ? `nobody listened: ${listener.why}` : 'nothing';
    const saw = (heard ?? []).map(stackText).join(', ') || without;
    note({ check: 'listening', ok: heard?.some(isRight) === true, saw });
    return { arp: matters ? arp : null, heard };
  } finally {
    over.abort();
    if (listener && 'stop' in listener) await listener.stop();
    stop.throwIfAborted();
  }
}

/** Listens until a frame decides, or the time is over. */
async function heardWithin(
  end: End,
  isOurs: (stack: Stack) => boolean,
  listener: Listener,
  { sleep, now }: Gathering,
  stop: AbortSignal,
): Promise<readonly Stack[]> {
  const begun = now();
  for (;;) {
    const heard = (await listener.heard()).filter(isOurs);
    const kinds = heard.filter((stack) => stack.every(({ id }) => id !== undefined));
    // The outer device of a right end sends by itself when it is turned on, with one tag.
    const decides = kinds.some((stack) => !['single', undefined].includes(heardIn(stack, end)));
    if (decides || now() - begun >= LISTENING) return heard;
    await sleep(LOOK, stop);
  }
}

/**
 * Asks for the peer's address until it is answered or the signal comes: by ARP, else by ping.
 *
 * @returns `arp`: whether ARP was answered, null where it was not used; `saw`: the same in words, absent with
 *   IPv6
 */
async function ask(
  peer: string,
  inner: string,
  { runProgram }: Machine,
  signal: AbortSignal,
): Promise<{ arp: boolean | null; saw?: string }> {
  const most = String(MOST_ASKING);
  // With -w it would end as soon as the other end is said to be unreachable.
  const ping = (): Promise<unknown> => runProgram(['ping', '-n', '-c', most, '-I', inner, peer], { signal });
  if (isIPv6(peer)) {
    await ping();
    return { arp: null };
  }
  try {
    const { exitCode, stdout, stderr } = await runProgram(['arping', '-f', '-w', most, '-I', inner, peer], {
      signal,
    });
    if (exitCode === 0) return { arp: true, saw: 'answered' };
    if (signal.aborted || /Received 0 response/i.test(stdout)) return { arp: false, saw: 'no answer' };
    const isRefused = /permi/i.test(stderr);
    return {
      arp: null,
      saw: isRefused ? 'not asked: arping needs root' : (stderr.trim().split('\n').at(-1) ?? ''),
    };
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'command_not_found') throw error;
    await ping();
    return { arp: null, saw: 'not asked: there is no arping on this machine' };
  }
}
