import { aboutRemovalOf, type Configuration } from './configuration.ts';
import { aboutEnd, commented, type End, oneLine } from './end.ts';
import { carriesAnother, deleteLine, ipLines, iproute2, placeOf } from './iproute2.ts';

/** A playbook of Ansible that runs `ip`: its modules for networks have no setting for the protocol. */
export function ansible(end: End): Configuration {
  const { device, names, reservation, site } = end;
  const { outer, inner } = names;
  const lines = ipLines(end);
  const run = 'Run it as root for this one server: ansible-playbook --become -i SERVER, FILE';
  return {
    ...iproute2(end),
    text: [
      ...commented([...aboutEnd(end), 'It lasts until the server restarts.', run]),
      ...play([
        ...task(`${outer} on ${device}`, lines.outer, 'creates', outer),
        ...task(`${inner} on ${outer}`, [...lines.mtu, ...lines.inner], 'creates', inner),
      ]),
    ],
    removal: [
      ...commented([
        `Reservation ${reservation.id}, the end at ${site}`,
        ...aboutRemovalOf(names, device),
        run,
      ]),
      ...play([
        ...task(`no ${inner}`, [deleteLine(inner)], 'removes', inner),
        ...task(
          `no ${outer} that carries nothing`,
          [`${carriesAnother(outer)} || ${deleteLine(outer)}`],
          'removes',
          outer,
        ),
      ]),
    ],
  };
}

function play(tasks: readonly string[]): readonly string[] {
  return ['---', '- hosts: all', '  gather_facts: false', '  tasks:', ...tasks];
}

/** @param guard the task is left out when the device is there, or when it is not */
function task(
  name: string,
  lines: readonly string[],
  guard: 'creates' | 'removes',
  made: string,
): readonly string[] {
  return [
    `    - name: ${JSON.stringify(oneLine(name))}`,
    '      ansible.builtin.shell:',
    '        cmd: |',
    '          set -e',
    ...lines.map((line) => `          ${line}`),
    `        ${guard}: ${placeOf(made)}`,
  ];
}
