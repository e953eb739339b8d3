import type { Device } from '../../../src/cli/probe/devices.ts';
import type { Evidence } from '../../../src/cli/probe/verdict.ts';
import type { End } from '../../../src/vlan/end.ts';

/** The other end's address. */
export const PEER = '10.0.0.2';

/** One end of a link whose sites have tags of their own. */
export const BE: End = {
  reservation: {
    id: 'con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
    start_date: '2026-12-01T10:00:00.000Z',
    end_date: '2026-12-01T12:00:00.000Z',
  },
  ...{ site: 'be-gent1', otherSite: 'pl-poznan1', device: 'eth1', outer: '802.1ad', address: null },
  ...{ sTag: 1001, cTag: 17, otherSTag: 2002, otherCTag: 23 },
  mtu: { device: 1508, outer: 1504, inner: 1500 },
  names: { outer: 'scq', inner: 'scq.17' },
};

/** A network device without a fault. @param tag as `probe` prints it, such as `88a8:1001` */
export function device(
  name: string,
  { parent, tag, mtu = 1500 }: { parent?: string; tag?: string; mtu?: number } = {},
): Device {
  const [ethertype = '', id] = tag?.split(':') ?? [];
  return {
    ...{ name, parent, isUp: true, hasCarrier: true, isMute: false, mtu, received: 0 },
    tag: tag === undefined ? undefined : { ethertype, id: Number(id) },
  };
}

/** The devices that `vlan` makes at {@link BE}. */
export const PAIR: readonly Device[] = [
  device('scq', { parent: 'eth1', tag: '88a8:1001', mtu: 1504 }),
  device('scq.17', { parent: 'scq', tag: '8100:17', mtu: 1500 }),
];

/** Evidence of a link that works, with changes. */
export function evidence(changes: Partial<Evidence>): Evidence {
  return {
    devices: [device('eth1', { mtu: 1508 }), ...PAIR],
    addresses: ['10.0.0.1/24'],
    ...{ small: true, full: 'answered', again: null, shorter: null, arp: null, heard: null },
    ...changes,
  };
}
