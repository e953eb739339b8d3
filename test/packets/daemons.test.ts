import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Reservation } from '../../src/contract/reservation.ts';
import { endAt } from '../../src/vlan/end.ts';
import { CONFIGURATION_OF, type Format } from '../../src/vlan/formats.ts';
import { RESERVATION } from '../vlan/ends.ts';
import { type Frame, type Guest, missingPackages, processorFault, startBench } from './guests.ts';

/** Daemons take `/sys` that can't be written for a container, and don't wait for udev, which no guest has. */
const WITHOUT_UDEV = 'mount -o remount,ro /sys; mkdir -p /run/dbus; dbus-daemon --system --fork';
const until = (condition: string): string =>
  `i=0; until ${condition}; do i=$((i+1)); [ $i -lt 1200 ] || exit 1; sleep 0.1; done`;
const NETWORKD = `${WITHOUT_UDEV}; mount -t tmpfs t /etc/systemd/network
  (/lib/systemd/systemd-networkd >daemon.log 2>&1 &); ${until('networkctl >/dev/null 2>&1')}`;
const NM = `NetworkManager >daemon.log 2>&1; ${until('nmcli -t general status >/dev/null 2>&1')}`;
const NETWORK_MANAGER = `${WITHOUT_UDEV}; mkdir -p /run/NetworkManager
  for d in /etc/NetworkManager /var/lib/NetworkManager; do mount -t tmpfs t $d; done
  mkdir /etc/NetworkManager/system-connections
  printf '[main]\\nplugins=keyfile\\ndns=none\\nrc-manager=unmanaged\\nauth-polkit=false\\n[keyfile]\\nunmanaged-devices=interface-name:vec0;interface-name:port;interface-name:br0\\n' >/etc/NetworkManager/NetworkManager.conf
  ${NM}`;
const INTERFACES = `mount -t tmpfs t /etc/network; mkdir -p /run/network /etc/network/interfaces.d
  for s in if-pre-up if-up if-down if-post-down; do mkdir /etc/network/$s.d; done
  echo 'source /etc/network/interfaces.d/*' >/etc/network/interfaces`;
const NETPLAN = 'mount -t tmpfs t /etc/netplan';

/** How a format's own program is brought up in a guest, and what stands for a command that needs all of systemd. */
const DAEMONS: Partial<
  Record<Format, { needs: readonly string[]; start: string; replaced?: readonly [string, string] }>
> = {
  networkd: { needs: ['/lib/systemd/systemd-networkd', '/usr/bin/dbus-daemon'], start: NETWORKD },
  nmcli: { needs: ['/usr/sbin/NetworkManager', '/usr/bin/dbus-daemon'], start: NETWORK_MANAGER },
  netplan: {
    needs: ['/lib/systemd/systemd-networkd', '/usr/sbin/netplan', '/usr/bin/dbus-daemon'],
    start: `${NETWORKD}; ${NETPLAN}`,
    replaced: ['netplan apply', 'rm -f /run/systemd/network/*; netplan generate; networkctl reload'],
  },
  ifupdown: { needs: ['/lib/ifupdown/settle-dad.sh'], start: INTERFACES },
};

/** A server may be an end of several reservations: the first two share the device with the S-tag. */
const RESERVATIONS: readonly Reservation[] = [
  [1001, 17],
  [1001, 18],
  [1002, 17],
].map(([s = 0, c = 0]) => ({
  ...RESERVATION,
  id: `${RESERVATION.id}${s}${c}`,
  ...{ site1_s_tag: s, site2_s_tag: s, site1_c_tag: c, site2_c_tag: c },
}));

const isLong = process.env['PROVE_PACKETS'] !== undefined;
const missing = missingPackages();
const canRun = isLong && missing.length === 0 && processorFault() === undefined;

/** Bytes 12 to 21 of a frame: both tags and what they carry. */
const stackOf = ({ bytes }: Frame): string => bytes.subarray(12, 22).toString('hex');

async function succeed(guest: Guest, script: string): Promise<string> {
  const { exitCode, stdout, stderr } = await guest.run(script);
  if (exitCode !== 0) throw new Error(`${script}\nended with ${exitCode}: ${stdout}${stderr}`);
  return stdout;
}

/** The long proof of each format under its own daemon, in two guests; part of `npm run prove`. */
describe.runIf(canRun)('under its own daemon', () => {
  for (const [name, { needs, start, replaced }] of Object.entries(DAEMONS)) {
    const lacking = needs.filter((path) => !existsSync(path));
    const title = lacking.length === 0 ? name : `${name}: NOT TESTED without ${lacking.join(', ')}`;
    test.skipIf(lacking.length > 0)(title, async () => {
      const bench = await startBench({ carry: ({ bytes }) => bytes });
      try {
        const ready = (line: string): string => (line === replaced?.[0] ? replaced[1] : line);
        const ends = bench.guests.map((guest, which) => ({
          guest,
          configurations: RESERVATIONS.map((reservation, at) => {
            const site = which === 0 ? reservation.site1 : reservation.site2;
            const end = endAt(reservation, site, 'eth1', { address: `10.0.${at}.${which + 1}/24` });
            return CONFIGURATION_OF[name as Format](end);
          }),
        }));
        await Promise.all(
          ends.map(async ({ guest, configurations }) => {
            await succeed(guest, start);
            for (const [at, { files, commands }] of configurations.entries()) {
              const folder = `files${at}`;
              for (const { path, content } of files) {
                const place = join(guest.folder, folder, path);
                mkdirSync(dirname(place), { recursive: true });
                writeFileSync(place, content, { mode: 0o600 });
              }
              const put = files.map(
                ({ path, isPrivate }) =>
                  `mkdir -p ${dirname(path)}; cp ${folder}${path} ${path}; chmod ${isPrivate ? 600 : 644} ${path}`,
              );
              await succeed(guest, ['set -e', ...put, ...commands.map(ready)].join('\n'));
            }
          }),
        );
        const [first] = ends;
        if (!first) throw new RangeError('there are two');
        const hex = (tag: number) => tag.toString(16).padStart(4, '0');
        for (const [at, { site1_s_tag: s, site1_c_tag: c }] of RESERVATIONS.entries()) {
          bench.provider.frames = [];
          // A daemon may take an address away for a moment while it looks at its files again.
          await succeed(first.guest, until(`ping -c 3 -i 0.2 -W 1 -M do -s 1472 10.0.${at}.2 >/dev/null`));
          const sent = bench.provider.frames.filter(({ bytes }) => bytes.length === 1522).map(stackOf);
          expect(new Set(sent)).toEqual(new Set([`88a8${hex(s)}8100${hex(c)}0800`]));
        }
        // One after the other is removed, and the rest goes on; then nothing is left.
        for (const [at, { remove }] of first.configurations.entries()) {
          await succeed(first.guest, ['set -e', ...remove.map(ready)].join('\n'));
          for (let other = at + 1; other < RESERVATIONS.length; other += 1) {
            await succeed(first.guest, until(`ping -c 1 -W 1 10.0.${other}.2 >/dev/null`));
          }
        }
        const left = await succeed(first.guest, 'ls /sys/class/net');
        expect(left.split('\n').filter((device) => device.startsWith('sc'))).toEqual([]);
      } finally {
        await bench.close();
      }
    });
  }
});
