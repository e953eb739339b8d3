import type { Configuration } from './configuration.ts';
import { aboutEnd, commented, type End, oneLine } from './end.ts';
import { aboutDeviceMtu, ipCalls, iproute2, type ProgramCall, removalCall, shellLine } from './iproute2.ts';

/** A playbook of Ansible that runs `ip`: its modules for networks have no setting for the protocol. */
export function ansible(end: End): Configuration {
  const { device, names, reservation, site } = end;
  const { outer, inner, address, up, device: below } = ipCalls(end);
  const [outerUp = [], innerUp = []] = up;
  const run = 'Run it as root for this one server: ansible-playbook --become -i SERVER, FILE';
  return {
    text: [
      ...commented([...aboutEnd(end), aboutDeviceMtu(end), 'It lasts until the server restarts.', run]),
      ...play([
        ...task(`${names.outer} on ${device}`, [below, outer, outerUp], 'creates', names.outer),
        ...task(
          `${names.inner} on ${names.outer}`,
          [inner, ...(address ? [address] : []), innerUp],
          'creates',
          names.inner,
        ),
      ]),
    ],
    removal: [
      ...commented([`Reservation ${reservation.id}, the end at ${site}`, run]),
      ...play(task(`no ${names.outer}`, [removalCall(end)], 'removes', names.outer)),
    ],
    files: [],
    commands: iproute2(end).commands,
    remove: iproute2(end).remove,
  };
}

function play(tasks: readonly string[]): readonly string[] {
  return ['---', '- hosts: all', '  gather_facts: false', '  tasks:', ...tasks];
}

/** @param guard the task is left out when the device is there, or when it is not */
function task(
  name: string,
  calls: readonly ProgramCall[],
  guard: 'creates' | 'removes',
  made: string,
): readonly string[] {
  return [
    `    - name: ${JSON.stringify(oneLine(name))}`,
    '      ansible.builtin.shell:',
    '        cmd: |',
    '          set -e',
    ...calls.map((call) => `          ${shellLine(call)}`),
    `        ${guard}: /sys/class/net/${made}`,
  ];
}
