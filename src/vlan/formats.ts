import { ansible } from './ansible.ts';
import type { Configuration } from './configuration.ts';
import { assumedOf, type End, ETHERTYPE, type OuterProtocol, protocolName } from './end.ts';
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

/**
 * An end and its configuration, as JSON. Members are only added. `commands` are lines for a shell of root, after the files are
 * in place, and `remove` those that undo everything.
 *
 * @param removing whether the end is to be removed: then there are no files, and the commands are those of the removal
 */
export function describeEnd(end: End, { names, files, commands, remove }: Configuration, removing: boolean) {
  const { reservation, site, device, sTag, cTag, outer, mtu, address } = end;
  const tagged = (which: 'outer' | 'inner', id: number, protocol: OuterProtocol) => ({
    ...{ name: names[which], id, protocol: protocolName(protocol) },
    ...{ ethertype: ETHERTYPE[protocol], mtu: mtu[which] },
  });
  const written = files.map(({ path, content, isPrivate }) => {
    return { path, mode: isPrivate ? '0600' : '0644', content };
  });
  return {
    ...{ reservation: reservation.id, site, device, device_mtu: mtu.device },
    outer: tagged('outer', sTag, outer),
    inner: tagged('inner', cTag, '802.1q'),
    address,
    files: removing ? [] : written,
    commands: removing ? remove : commands,
    remove,
    assumed: assumedOf(end),
  };
}
