import { isIPv6 } from 'node:net';
import { Failure } from '../../contract/failure.ts';
import { type End, TAG_BYTES } from '../../vlan/end.ts';
import { setCall, shellLine } from '../../vlan/iproute2.ts';
import type { Context, Machine, ProgramResult } from '../context.ts';
import { addressesOf, type Device, devicesOf, isMissingProgram, lastLine, withPrograms } from './devices.ts';
import { type Listener, listenWithTcpdump, NO_TCPDUMP } from './listening.ts';
import { heardIn, tagsAt } from './stacks.ts';
import { heardVerdict, isOfAnother, ownEnd, ownFault, type Pair, type Verdict } from './verdict.ts';
import { watchStacks } from './watched-stacks.ts';

/** One thing that was looked at, as `probe --json` has it. */
export interface Check {
  readonly check: string;
  readonly ok: boolean;
  /** The observation, in a few words. */
  readonly saw: string;
}

/** The verdict on a link, and what it comes from. */
export interface Probed {
  readonly verdict: Verdict;
  /** The stacks that arrived, each once; null where nothing listened. */
  readonly heard: readonly string[] | null;
  readonly checks: readonly Check[];
}

/** How often each size is tried. */
const TRIES = 3;
/** The longest listening, in milliseconds: an end that tries to reach the other sends ARP each second. */
export const LISTENING = 6000;
/** The longest wait for ARP after the right tags were heard, in milliseconds from the first request. */
const ANSWERING = 3000;
/** The end of a program that asks the other end, should this process be gone, in seconds. */
const MOST_ASKING = '60';
/** How often what was heard is looked at meanwhile, in milliseconds. */
const LOOK = 500;
/** The data of a small packet, as `ping` has it without a flag, in bytes. */
const SMALL = 56;

type Pinged = 'answered' | 'lost' | 'too_long';

/** What the questions to the other end need. */
interface Probing {
  context: Context;
  machine: Machine;
  end: End;
  peer: string;
  devices: readonly Device[];
  pair: Pair;
  /** Takes a check. */
  note: (check: string, ok: boolean, saw: string) => void;
}

/**
 * Looks at this end, then asks the other one, and stops where a row of the table decides (vlan/README.md). Frames are sent
 * with the reservation's own tags only.
 *
 * @param peer an IP address
 */
export async function probeEnd(context: Context, end: End, peer: string): Promise<Probed> {
  const machine = withPrograms(context.processes);
  const checks: Check[] = [];
  const note: Probing['note'] = (check, ok, saw) => void checks.push({ check, ok, saw });
  const found = (verdict: Verdict, heard: Probed['heard'] = null): Probed => ({ verdict, heard, checks });

  const devices = await devicesOf(machine);
  const pair = ownEnd(end, devices);
  const isFaulty = 'verdict' in pair;
  note('devices', !isFaulty, described(end, isFaulty ? undefined : pair, devices));
  if (isFaulty) return found(pair);

  const { name } = pair.inner;
  const all = await addressesOf(name, machine);
  const addresses = all.filter((address) => isIPv6(peer) === address.includes(':'));
  if (addresses.some((address) => address.split('/')[0] === peer)) {
    throw new Failure('usage', `${peer} is the address of this end.`, {
      why: `${name} has it. --peer takes the address of ${end.otherSite}.`,
    });
  }
  note('address', addresses.length > 0, addresses.join(', ') || 'none');
  if (addresses.length === 0) {
    const repair = shellLine(['ip', 'address', 'add', 'ADDRESS/LENGTH', 'dev', name]);
    return found(ownFault('own_device', `${name} has no address, so nothing can be sent from it.`, repair));
  }
  const probing: Probing = { context, machine, end, peer, devices, pair, note };
  const verdict = await pingVerdict(probing);
  if (verdict) return found(verdict);
  const { arp, heard } = await context.output.waitFor(`frames from ${end.otherSite}`, () => listen(probing));
  return found(heardVerdict(end, peer, addresses, { heard, arp }), heard);
}

/** How many devices are described at most. */
const MOST_DESCRIBED = 8;

/** The end's device with the reservation's two; where those are missing, with every VLAN device on it. */
function described({ device }: End, pair: Pair | undefined, devices: readonly Device[]): string {
  const below = devices.find(({ name }) => name === device);
  if (!below) return `no ${device}`;
  const on = (name: string) => devices.filter(({ parent, tag }) => parent === name && tag !== undefined);
  const above = pair ? [pair.outer, pair.inner] : on(device).flatMap((one) => [one, ...on(one.name)]);
  const texts = [below, ...above.slice(0, MOST_DESCRIBED)].map(({ name, tag, mtu, isUp, hasCarrier }) => {
    const state = isUp ? (hasCarrier ? '' : ' no carrier') : ' down';
    return `${name}${tag === undefined ? '' : ` ${tag}`} MTU ${mtu}${state}`;
  });
  return [...texts, ...(above.length === 0 ? ['no VLAN device on it'] : [])].join(', ');
}

/** The verdict from packets of several sizes; undefined where small ones are not answered. */
async function pingVerdict(probing: Probing): Promise<Verdict | undefined> {
  const { context, machine, end, peer, note } = probing;
  const { name } = probing.pair.inner;
  const { inner } = end.mtu;
  // Of IP and ICMP.
  const headers = isIPv6(peer) ? 48 : 28;
  const ping = async (check: string, data: number): Promise<Pinged> => {
    const call = ['ping', '-n', '-M', 'do', '-c', String(TRIES), '-i', '0.2', '-W', '2', '-s', String(data)];
    const tried = () => machine.runProgram([...call, '-I', name, peer]);
    const [result, saw] = pingResult(await context.output.waitFor(`an answer from ${peer}`, tried));
    note(check, result === 'answered', `${data + headers} bytes: ${saw}`);
    return result;
  };
  if ((await ping('small_packets', SMALL)) !== 'answered') return undefined;
  const full = await ping('full_size', inner - headers);
  if (full === 'answered') {
    const says = `The link works: ${peer} answers packets of ${inner} bytes.`;
    return { verdict: 'ok', end: null, says };
  }
  if (full === 'too_long') {
    const says = `This machine does not send packets of ${inner} bytes: its route to ${peer} has a smaller MTU, see "ip route get ${peer}".`;
    return ownFault('own_mtu', says);
  }
  if ((await ping('small_packets_again', SMALL)) !== 'answered') return undefined;
  const less = inner - TAG_BYTES;
  const isShort = (await ping('shorter_packets', less - headers)) === 'answered';
  const what = isShort
    ? `${less} bytes pass: the network between is ${TAG_BYTES} bytes short.`
    : `${less} bytes are lost too.`;
  const says = `Small packets pass, packets of ${inner} bytes are lost on the way. ${what}`;
  const repair = [shellLine(setCall(name, 'mtu', String(less)))];
  return { verdict: 'path_mtu', end: 'path', says, ...(isShort ? { passes: less, repair } : {}) };
}

/**
 * Reads what `ping` printed.
 *
 * @returns the result, and the same in words; `too_long`: the system did not send them
 * @throws Failure `not_supported` for another program than that of iputils
 */
function pingResult({ exitCode, stdout, stderr }: ProgramResult): readonly [Pinged, string] {
  const [, sent, received] = /(\d+) packets transmitted, (\d+) received/.exec(stdout) ?? [];
  if (sent === undefined && /invalid option|unrecognized option|usage:/i.test(stderr)) {
    throw new Failure('not_supported', 'The ping of this machine has not the options that are needed.', {
      why: 'It needs -M do, so that packets are not cut in pieces: ping of iputils has it.',
    });
  }
  if (exitCode === 0) return ['answered', `${received} of ${sent} answered`];
  const [tooLong, mtu] = /message too long(?:.*?mtu\s*=\s*(\d+))?/i.exec(stdout + stderr) ?? [];
  if (tooLong !== undefined)
    return ['too_long', `too long to be sent${mtu === undefined ? '' : `, the MTU is ${mtu}`}`];
  const why = sent === undefined ? lastLine(stderr) : '';
  return ['lost', why || `${received ?? 0} of ${sent ?? TRIES} answered`];
}

/** Listens to what arrives, and asks by ARP all the time: what one end asks is what the other one hears. */
async function listen(probing: Probing): Promise<{ arp: boolean | null; heard: readonly string[] | null }> {
  const { context, machine, end, peer, devices, pair, note } = probing;
  const { now, sleep } = context.clock;
  // From here on something is left behind where the process ends at once.
  const stop = new AbortController();
  void context.processes.stopSignal().then((stopped) => {
    stop.abort(new Failure(stopped, 'Stopped.', { why: 'What was made for listening is removed.' }));
  });
  const over = new AbortController();
  const ended = AbortSignal.any([stop.signal, over.signal]);
  const begun = now();
  const asking = ask(peer, pair.inner.name, machine, ended);
  // A failure is thrown below, where it is waited for.
  asking.catch(() => undefined);
  const isRight = (stack: string): boolean => heardIn(stack, end) === 'right';
  /** Listens until a frame decides, or the time is over. */
  const heardBy = async (listener: Listener): Promise<readonly string[]> => {
    const from = now();
    for (;;) {
      const heard = (await listener.heard()).filter((stack) => !isOfAnother(stack, pair, devices));
      const kinds = heard.flatMap((stack) => (stack.endsWith('?') ? [] : [heardIn(stack, end)]));
      // The outer device of a right end sends by itself when it is turned on, with one tag.
      const decides = kinds.some((kind) => kind !== 'single' && kind !== undefined);
      if (decides || now() - from >= LISTENING) return heard;
      await sleep(LOOK, stop.signal);
    }
  };
  let listener: Listener | string | undefined;
  try {
    listener = await listenWithTcpdump(end, machine);
    if (listener === NO_TCPDUMP && machine.isRoot()) listener = await watchStacks(end, machine, stop.signal);
    const arrived = typeof listener === 'string' ? null : await heardBy(listener);
    // With wrong tags it does not matter whether ARP is answered.
    const matters = !arrived || arrived.length === 0 || arrived.some(isRight);
    if (matters) await Promise.race([asking, sleep(Math.max(0, begun + ANSWERING - now()), ended)]);
    over.abort();
    const { arp, saw: answer } = await asking;
    // An answer to ARP has come with the right tags.
    const heard = arp && !arrived?.some(isRight) ? [...(arrived ?? []), tagsAt(end).join(' ')] : arrived;
    if (matters && answer !== undefined) note('arp', arp === true, answer);
    const without = typeof listener === 'string' ? `nobody listened: ${listener}` : 'nothing';
    note('listening', heard?.some(isRight) === true, heard?.join(', ') || without);
    return { arp: matters ? arp : null, heard };
  } finally {
    over.abort();
    if (typeof listener === 'object') await listener.stop();
    stop.signal.throwIfAborted();
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
  // With -w it would end as soon as the other end is said to be unreachable.
  const ping = () => runProgram(['ping', '-n', '-c', MOST_ASKING, '-I', inner, peer], { signal });
  if (isIPv6(peer)) {
    await ping();
    return { arp: null };
  }
  try {
    const call = ['arping', '-f', '-w', MOST_ASKING, '-I', inner, peer];
    const { exitCode, stdout, stderr } = await runProgram(call, { signal });
    if (exitCode === 0) return { arp: true, saw: 'answered' };
    if (signal.aborted || /Received 0 response/i.test(stdout)) return { arp: false, saw: 'no answer' };
    const isRefused = /permi/i.test(stderr);
    return { arp: null, saw: isRefused ? 'not asked: arping needs root' : lastLine(stderr) };
  } catch (error) {
    if (!isMissingProgram(error)) throw error;
    await ping();
    return { arp: null, saw: 'not asked: there is no arping on this machine' };
  }
}
