import { ansible } from './ansible.ts';
import type { Configuration } from './configuration.ts';
import { assumedOf, type End, ETHERTYPE, protocolName } from './end.ts';
import { ifupdown } from './ifupdown.ts';
import { iproute2 } from './iproute2.ts';
import { netplan } from './netplan.ts';
import { networkd } from './networkd.ts';
import { nmcli } from './nmcli.ts';

/** The text of each format for one end of a reservation. */
export const CONFIGURATION_OF = {
  iproute2,
  networkd,
  netplan,
  nmcli,
  ifupdown,
  ansible,
  json: iproute2,
} as const satisfies Readonly<Record<string, (end: End) => Configuration>>;

/** The name of a format, as `vlan --format` takes it. */
export type Format = keyof typeof CONFIGURATION_OF;

/** A device with a VLAN tag, in JSON. */
interface DescribedDevice {
  name: string;
  /** The tag. */
  id: number;
  protocol: string;
  ethertype: string;
  mtu: number;
}

/** An end and its configuration, as JSON. Members are only added. */
interface DescribedEnd {
  reservation: string;
  site: string;
  device: string;
  device_mtu: number;
  outer: DescribedDevice;
  inner: DescribedDevice;
  /** Of the inner device, with its prefix length. */
  address: string | null;
  files: { path: string; mode: '0600' | '0644'; content: string }[];
  /** Lines for a shell of root, after the files are in place. With `--remove` the lines of the removal. */
  commands: readonly string[];
  /** Lines for a shell of root that undo everything. */
  remove: readonly string[];
  assumed: readonly string[];
}

/** See {@link DescribedEnd}. @param removing whether the end is to be removed */
export function describeEnd(
  end: End,
  { names, files, commands, remove }: Configuration,
  removing: boolean,
): DescribedEnd {
  const { reservation, site, device, sTag, cTag, outer, mtu, address } = end;
  return {
    reservation: reservation.id,
    site,
    device,
    device_mtu: mtu.device,
    outer: {
      name: names.outer,
      id: sTag,
      protocol: protocolName(outer),
      ethertype: ETHERTYPE[outer],
      mtu: mtu.outer,
    },
    inner: {
      name: names.inner,
      id: cTag,
      protocol: protocolName('802.1q'),
      ethertype: ETHERTYPE['802.1q'],
      mtu: mtu.inner,
    },
    address,
    files: removing
      ? []
      : files.map(({ path, content, isPrivate }) => ({ path, mode: isPrivate ? '0600' : '0644', content })),
    commands: removing ? remove : commands,
    remove,
    assumed: assumedOf(end),
  };
}
