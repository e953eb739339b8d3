import * as v from 'valibot';
import { Failure } from '../../contract/failure.ts';
import type { Machine } from '../context.ts';

/** The programs that nothing takes the place of, and where they are found. */
const PACKAGES: Readonly<Record<string, string>> = {
  ip: 'iproute2',
  ping: 'iputils, which Debian and Ubuntu call iputils-ping',
  grep: 'grep',
};

/** A machine on which a program that is needed and missing is a failure `not_supported`, which says what to install. */
export function withPrograms<Kind extends Machine>(machine: Kind): Kind {
  const runProgram: Machine['runProgram'] = async (call, options) => {
    try {
      return await machine.runProgram(call, options);
    } catch (cause) {
      const [program = ''] = call;
      const found = PACKAGES[program];
      const isMissing = cause instanceof Failure && cause.code === 'command_not_found';
      if (!isMissing || found === undefined) throw cause;
      throw new Failure('not_supported', cause.says, { why: `It is in the package ${found}.`, cause });
    }
  };
  return { ...machine, runProgram };
}

const Link = v.object({
  ifname: v.string(),
  /** The device that it is made on. */
  link: v.optional(v.string()),
  flags: v.optional(v.array(v.string()), []),
  mtu: v.number(),
  inet6_addr_gen_mode: v.optional(v.string()),
  linkinfo: v.optional(
    v.object({
      info_kind: v.optional(v.string()),
      info_data: v.optional(v.object({ protocol: v.optional(v.string()), id: v.optional(v.number()) })),
    }),
  ),
  stats64: v.optional(v.object({ rx: v.object({ packets: v.number() }) })),
});

/** A network device of this machine. */
export interface Device {
  readonly name: string;
  /** The device that it is made on; undefined for a real one. */
  readonly parent: string | undefined;
  readonly isUp: boolean;
  /** Whether the device, and what it is made on, has a connection. */
  readonly hasCarrier: boolean;
  /** Whether the kernel sends nothing from it by itself: no ARP, no multicast, and no address of IPv6. */
  readonly isMute: boolean;
  /** Bytes. */
  readonly mtu: number;
  /** Of a VLAN device: its tag, with four hexadecimal digits of its ethertype. */
  readonly tag: { readonly ethertype: string; readonly id: number } | undefined;
  /** How many frames have arrived. */
  readonly received: number;
}

/** Reads what `ip -j -d -s link` prints. @throws Failure `not_supported` for anything else */
export function readDevices(text: string): readonly Device[] {
  const list = parsedJson(text);
  if (!Array.isArray(list)) throw unreadable();
  // Some versions leave an empty object for what they do not show.
  const links = list.flatMap((item: unknown) => (v.is(v.strictObject({}), item) ? [] : [item]));
  const parsed = v.safeParse(v.array(Link), links);
  if (!parsed.success) throw unreadable();
  return parsed.output.map(({ ifname, link, flags, mtu, inet6_addr_gen_mode, linkinfo, stats64 }) => {
    const { protocol, id } = (linkinfo?.info_kind === 'vlan' && linkinfo.info_data) || {};
    return {
      name: ifname,
      parent: link,
      isUp: flags.includes('UP'),
      hasCarrier: flags.includes('LOWER_UP') && !flags.includes('NO-CARRIER'),
      // Without IPv6 it is not shown.
      isMute:
        flags.includes('NOARP') && !flags.includes('MULTICAST') && (inet6_addr_gen_mode ?? 'none') === 'none',
      mtu,
      tag: id === undefined ? undefined : { ethertype: protocol === '802.1ad' ? '88a8' : '8100', id },
      received: stats64?.rx.packets ?? 0,
    };
  });
}

/** How often the devices are read again that came and went meanwhile. */
const MOST_READINGS = 5;

/** The network devices of this machine. */
export async function devicesOf({ runProgram }: Machine): Promise<readonly Device[]> {
  for (let reading = 1; ; reading += 1) {
    const { exitCode, stdout, stderr } = await runProgram(['ip', '-j', '-d', '-s', 'link']);
    // "Dump was interrupted and may be inconsistent.": a device may be missing.
    if (/interrupted/i.test(stderr) && reading < MOST_READINGS) continue;
    if (exitCode !== 0) throw unreadable();
    return readDevices(stdout);
  }
}

const Addresses = v.array(
  v.object({
    addr_info: v.optional(v.array(v.object({ local: v.optional(v.string()), prefixlen: v.number() })), []),
  }),
);

/** The addresses of a device, such as `10.0.0.1/24`. */
export async function addressesOf(device: string, { runProgram }: Machine): Promise<readonly string[]> {
  const { exitCode, stdout } = await runProgram(['ip', '-j', 'address', 'show', 'dev', device]);
  const parsed = v.safeParse(Addresses, exitCode === 0 ? parsedJson(stdout) : undefined);
  if (!parsed.success) throw unreadable();
  return parsed.output.flatMap(({ addr_info }) =>
    addr_info.flatMap(({ local, prefixlen }) => (local === undefined ? [] : [`${local}/${prefixlen}`])),
  );
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unreadable(): Failure {
  return new Failure('not_supported', "The network devices of this machine can't be read.", {
    why: '"ip -j -d -s link" does not print what iproute2 4.15 and later does. Of busybox, it has no -j.',
  });
}
