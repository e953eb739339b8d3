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
export function withPrograms(machine: Machine): Machine {
  const runProgram: Machine['runProgram'] = (call, options) =>
    machine.runProgram(call, options).catch((cause: unknown) => {
      const found = PACKAGES[call[0] ?? ''];
      if (!isMissingProgram(cause) || found === undefined) throw cause;
      throw new Failure('not_supported', cause.says, { why: `It is in the package ${found}.`, cause });
    });
  return { ...machine, runProgram };
}

/** The last line of what a program has printed. */
export function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}

/** Whether a program is not on this machine. */
export function isMissingProgram(error: unknown): error is Failure {
  return error instanceof Failure && error.code === 'command_not_found';
}

const Device = v.pipe(
  v.object({
    ifname: v.string(),
    link: v.optional(v.string()),
    flags: v.optional(v.array(v.string()), []),
    mtu: v.number(),
    inet6_addr_gen_mode: v.optional(v.string(), 'none'),
    linkinfo: v.optional(
      v.object({
        info_kind: v.optional(v.string()),
        info_data: v.optional(v.object({ protocol: v.optional(v.string()), id: v.optional(v.number()) }), {}),
      }),
    ),
    stats64: v.optional(v.object({ rx: v.object({ packets: v.number() }) })),
  }),
  v.transform(({ ifname, link, flags, mtu, inet6_addr_gen_mode, linkinfo, stats64 }) => {
    const has = (flag: string): boolean => flags.includes(flag);
    const { protocol, id } = (linkinfo?.info_kind === 'vlan' && linkinfo.info_data) || {};
    return {
      name: ifname,
      /** The device that it is made on; undefined for a real one. */
      parent: link,
      isUp: has('UP'),
      /** Whether the device, and what it is made on, has a connection. */
      hasCarrier: has('LOWER_UP') && !has('NO-CARRIER'),
      /** Whether the kernel sends nothing from it by itself: no ARP, no multicast, and no address of IPv6. */
      isMute: has('NOARP') && !has('MULTICAST') && inet6_addr_gen_mode === 'none',
      /** Bytes. */
      mtu,
      /** Of a VLAN device its tag, such as `88a8:1001`; else undefined. */
      tag: id === undefined ? undefined : `${protocol === '802.1ad' ? '88a8' : '8100'}:${id}`,
      /** How many frames have arrived. */
      received: stats64?.rx.packets ?? 0,
    };
  }),
);
/** A network device of this machine. */
export type Device = v.InferOutput<typeof Device>;

/** What `ip -j -d -s link` prints. Some versions leave an empty object for what they do not show. */
const Devices = v.pipe(
  v.array(v.union([v.strictObject({}), Device])),
  v.transform((list) => list.filter((one) => 'name' in one)),
);

const Addresses = v.array(
  v.object({
    addr_info: v.optional(v.array(v.object({ local: v.optional(v.string()), prefixlen: v.number() })), []),
  }),
);

/** How often the devices are read again that came and went meanwhile. */
const MOST_READINGS = 5;

/** The network devices of this machine. @throws Failure `not_supported` where `ip` is not that of iproute2 */
export async function devicesOf({ runProgram }: Machine): Promise<readonly Device[]> {
  for (let reading = 1; ; reading += 1) {
    const printed = await runProgram(['ip', '-j', '-d', '-s', 'link']);
    // "Dump was interrupted and may be inconsistent.": a device may be missing.
    if (!/interrupted/i.test(printed.stderr) || reading === MOST_READINGS) return read(Devices, printed);
  }
}

/** The addresses of a device, such as `10.0.0.1/24`. */
export async function addressesOf(device: string, { runProgram }: Machine): Promise<readonly string[]> {
  const found = read(Addresses, await runProgram(['ip', '-j', 'address', 'show', 'dev', device]));
  return found.flatMap(({ addr_info }) =>
    addr_info.flatMap(({ local, prefixlen }) => (local === undefined ? [] : [`${local}/${prefixlen}`])),
  );
}

function read<Kind>(
  schema: v.GenericSchema<unknown, Kind>,
  { exitCode, stdout }: { exitCode: number; stdout: string },
): Kind {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), schema), stdout);
  if (exitCode === 0 && parsed.success) return parsed.output;
  throw new Failure('not_supported', "The network devices of this machine can't be read.", {
    why: '"ip -j -d -s link" does not print what iproute2 4.15 and later does. Of busybox, it has no -j.',
  });
}
