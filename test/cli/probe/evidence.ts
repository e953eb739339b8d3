import type { Device } from '../../../src/cli/probe/devices.ts';
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

/** The devices that `vlan` makes at {@link BE}; see {@link devicesIn}. */
export const PAIR = 'scq@eth1 88a8:1001 1504, scq.17@scq 8100:17 1500';

/** Network devices by name, parent, tag and MTU. @example devicesIn('eth1 1508 down, scq@eth1 88a8:1001 1504') */
export function devicesIn(text: string): readonly Device[] {
  return text.split(', ').map((each) => {
    const parts = /^([^@ ]+)(?:@(\S+))?(?: (\w+:\d+))? (\d+)(?: (down|unplugged))?$/.exec(each);
    const [, name = each, parent, tag, mtu, state] = parts ?? [];
    const [isUp, hasCarrier] = [state !== 'down', state !== 'unplugged'];
    return { name, parent, tag, mtu: Number(mtu), isUp, hasCarrier, isMute: false, received: 0 };
  });
}
