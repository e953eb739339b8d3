import { describe, expect, test } from 'vitest';
import type { Machine, ProgramResult } from '../../../src/cli/context.ts';
import { watchStacks } from '../../../src/cli/probe/watched-stacks.ts';
import { BE } from './evidence.ts';

/** The end, with names as long as they are. */
const END = { ...BE, names: { outer: 'sc1001abcd', inner: 'sc1001abcd.17' } };
const { outer, inner } = END.names;

interface VlanDevice {
  readonly link: string;
  /** Such as `88a8:1001`. */
  readonly tag: string;
  flags: string[];
  mode: string;
  received: number;
  ipv6: number;
  isLearnt: boolean;
}

/** The VLAN devices of a machine, as the kernel has them: what arrives with tags goes up as far as there are devices. */
class Kernel implements Machine {
  readonly devices = new Map<string, VlanDevice>();
  /** Runs before each batch of changes. */
  onBatch = (_batch: string): void => undefined;
  readonly isRoot = (): boolean => true;

  constructor() {
    this.#add(outer, 'eth1', '88a8:1001');
    this.#add(inner, outer, '8100:17');
    for (const one of this.devices.values()) one.flags = ['BROADCAST', 'MULTICAST', 'UP'];
  }

  #add(name: string, link: string, tag: string): void {
    const counters = { received: 0, ipv6: 0, isLearnt: false };
    this.devices.set(name, { link, tag, flags: ['BROADCAST', 'MULTICAST'], mode: 'eui64', ...counters });
  }

  /** Takes a frame. @param stack such as `88a8:1001 8100:17` */
  take(stack: string, protocol: 'ARP' | 'IPv6' = 'ARP'): void {
    let below = 'eth1';
    for (const [at, tag] of stack.split(' ').entries()) {
      const found = [...this.devices].find(([, one]) => one.link === below && one.tag === tag);
      if (!found?.[1].flags.includes('UP')) return;
      const [name, device] = found;
      below = name;
      device.received += 1;
      if (at + 1 < stack.split(' ').length) continue;
      if (protocol === 'IPv6') device.ipv6 += 1;
      else if (!device.flags.includes('NOARP')) device.isLearnt = true;
    }
  }

  #change(line: string): void {
    const words = line.split(' ');
    const after = (word: string): string => words[words.indexOf(word) + 1] ?? '';
    const kind = after('proto') === '802.1Q' ? '8100' : '88a8';
    if (words[1] === 'add') this.#add(after('name'), words[3] ?? '', `${kind}:${after('id')}`);
    if (words[1] === 'del') this.#remove(words[2] ?? '');
    const device = this.devices.get(after('dev'));
    if (!device) return;
    if (line.includes('arp off multicast off')) device.flags = ['BROADCAST', 'NOARP'];
    if (line.includes('addrgenmode none')) device.mode = 'none';
    if (line.endsWith(' up')) device.flags.push('UP');
  }

  #remove(name: string): void {
    this.devices.delete(name);
    for (const [above, { link }] of this.devices) if (link === name) this.#remove(above);
  }

  runProgram: Machine['runProgram'] = async (call, { input = '' } = {}): Promise<ProgramResult> => {
    const ok = (stdout = ''): ProgramResult => ({ exitCode: 0, stdout, stderr: '' });
    if (call.includes('-batch')) {
      this.onBatch(input);
      for (const line of input.split('\n')) this.#change(line);
      return ok();
    }
    if (call.includes('neigh')) {
      const device = this.devices.get(call.at(-1) ?? '');
      return ok(device?.isLearnt ? '10.0.0.2 lladdr 02:00:00:00:00:02 STALE\n' : '');
    }
    if (call[0] === 'grep') {
      const line = (name: string, count: number) => `/proc/net/dev_snmp6/${name}:Ip6InReceives \t${count}\n`;
      return ok([...this.devices].map(([name, { ipv6 }]) => line(name, ipv6)).join(''));
    }
    const links = [...this.devices].map(([ifname, { link, tag, flags, mode, received }]) => {
      const [kind, id] = tag.split(':');
      const info_data = { protocol: kind === '88a8' ? '802.1ad' : '802.1Q', id: Number(id) };
      const linkinfo = { info_kind: 'vlan', info_data };
      const stats64 = { rx: { packets: received } };
      return { ifname, link, flags, mtu: 1500, inet6_addr_gen_mode: mode, linkinfo, stats64 };
    });
    return ok(JSON.stringify(links));
  };

  /** The names of the devices that were made. */
  get made(): string[] {
    return [...this.devices.keys()].filter((name) => ![outer, inner].includes(name));
  }
}

const never = new AbortController().signal;

describe('devices that watch', () => {
  test('are mute before they are up, have names of 15 characters, and are removed', async () => {
    const kernel = new Kernel();
    const watching = await watchStacks(END, kernel, never);
    const made = kernel.made;
    expect(made.length).toBeGreaterThan(15);
    for (const name of made) {
      const { flags, mode } = kernel.devices.get(name) ?? {};
      expect([name.length, flags, mode]).toEqual([15, ['BROADCAST', 'NOARP', 'UP'], 'none']);
    }
    expect(await watching.heard()).toEqual([]);
    await watching.stop();
    expect(kernel.made).toEqual([]);
  });

  test('stay down where the kernel would send from them', async () => {
    const kernel = new Kernel();
    const run = kernel.runProgram;
    kernel.runProgram = (call, { input = '' } = {}) =>
      run(call, { input: input.replace(/^.*addrgenmode none$/m, '') });
    await watchStacks(END, kernel, never);
    const talking = kernel.made.filter((name) => kernel.devices.get(name)?.mode === 'eui64');
    expect(talking).toHaveLength(1);
    expect(kernel.devices.get(talking[0] ?? '')?.flags).not.toContain('UP');
  });

  test('are removed by the next probe, where one was killed, and by a signal', async () => {
    const kernel = new Kernel();
    await watchStacks(END, kernel, never);
    const left = kernel.made;
    const stop = new AbortController();
    kernel.onBatch = (batch) => {
      if (!batch.includes('add')) return;
      expect(kernel.made).toEqual([]);
      stop.abort();
    };
    await expect(watchStacks(END, kernel, stop.signal)).rejects.toThrow();
    expect([left.length > 0, kernel.made]).toEqual([true, []]);
  });
});

/** What arrives, and which stacks are heard. */
const HEARD: [what: string, arrives: (kernel: Kernel) => void, heard: string[]][] = [
  ['the right stack', (kernel) => kernel.take('88a8:1001 8100:17'), ['88a8:1001 8100:17']],
  ['the tags swapped', (kernel) => kernel.take('88a8:17 8100:1001'), ['88a8:17 8100:1001']],
  ['802.1Q outside', (kernel) => kernel.take('8100:1001 8100:17'), ['8100:1001 8100:17']],
  ["the other site's tags", (kernel) => kernel.take('88a8:2002 8100:23'), ['88a8:2002 8100:23']],
  ['an unknown C-tag', (kernel) => kernel.take('88a8:1001 8100:99'), ['88a8:1001 8100:?']],
  ["an unknown C-tag behind the other's", (kernel) => kernel.take('88a8:2002 8100:99'), ['88a8:2002 8100:?']],
  ['one tag, ARP', (kernel) => kernel.take('88a8:1001'), ['88a8:1001']],
  ['one tag, IPv6', (kernel) => kernel.take('88a8:1001', 'IPv6'), ['88a8:1001']],
  ["one tag, the other site's, IPv6", (kernel) => kernel.take('88a8:2002', 'IPv6'), ['88a8:2002']],
  ['one tag, 802.1Q', (kernel) => kernel.take('8100:17'), ['8100:17']],
  ['frames of others', (kernel) => kernel.take('8100:5 8100:17'), []],
];

test.each(HEARD)('%s', async (_what, arrives, heard) => {
  const kernel = new Kernel();
  kernel.take('88a8:1001 8100:17');
  kernel.take('88a8:1001', 'IPv6');
  const watching = await watchStacks(END, kernel, never);
  arrives(kernel);
  expect(await watching.heard()).toEqual(heard);
});

test('frames with the right tags count from before the devices are made, which may take seconds', async () => {
  const kernel = new Kernel();
  kernel.onBatch = (batch) => {
    if (batch.includes('add')) kernel.take('88a8:1001 8100:17');
  };
  const watching = await watchStacks(END, kernel, never);
  expect(await watching.heard()).toEqual(['88a8:1001 8100:17']);
});

test('a frame counts that comes as soon as the devices are up', async () => {
  for (const stack of ['8100:1001 8100:17', '88a8:2002 8100:23']) {
    const kernel = new Kernel();
    const run = kernel.runProgram;
    kernel.runProgram = async (call, options) => {
      const result = await run(call, options);
      if (options?.input?.includes(' up\n')) kernel.take(stack);
      return result;
    };
    const watching = await watchStacks(END, kernel, never);
    expect(await watching.heard()).toEqual([stack]);
  }
});

test('a packet of IPv6 that comes between two readings is no frame with an unknown tag', async () => {
  const kernel = new Kernel();
  const run = kernel.runProgram;
  kernel.runProgram = async (call, options) => {
    const result = await run(call, options);
    if (call[0] === 'grep' || call.includes('-s')) kernel.take('88a8:1001', 'IPv6');
    return result;
  };
  const watching = await watchStacks(END, kernel, never);
  for (let look = 0; look < 3; look += 1) expect(await watching.heard()).toEqual(['88a8:1001']);
});
