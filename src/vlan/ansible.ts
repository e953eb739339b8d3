import { aboutRemovalOf, type Configuration } from './configuration.ts';
import { aboutEnd, commented, type End, oneLine } from './end.ts';
import { carriesAnother, deleteLine, ipLines, iproute2, placeOf } from './iproute2.ts';

/** A playbook of Ansible that runs `ip`: its modules for networks have no setting for the protocol. */
export function ansible(end: End): Configuration {
  const { device, names, reservation, site } = end;
  const { outer, inner } = names;
  const { mtu, ...lines } = ipLines(end);
  const run = 'Run it as root for this one server: ansible-playbook --become -i SERVER, FILE';
  const removesOuter = `${carriesAnother(outer)} || ${deleteLine(outer)}`;
  return {
    ...iproute2(end),
    text: [
      ...commented([...aboutEnd(end), 'It lasts until the server restarts.', run]),
      ...PLAY,
      ...task(`${outer} on ${device}`, 'creates', outer, lines.outer),
      ...task(`${inner} on ${outer}`, 'creates', inner, [...mtu, ...lines.inner]),
    ],
    removal: [
      ...commented([
        `Reservation ${reservation.id}, the end at ${site}`,
        ...aboutRemovalOf(names, device),
        run,
      ]),
      ...PLAY,
      ...task(`no ${inner}`, 'removes', inner, [deleteLine(inner)]),
      ...task(`no ${outer} that carries nothing`, 'removes', outer, [removesOuter]),
    ],
  };
}

const PLAY = ['---', '- hosts: all', '  gather_facts: false', '  tasks:'];

/** @param guard the task is left out when the device is there, or when it is not */
function task(
  name: string,
  guard: 'creates' | 'removes',
  device: string,
  lines: readonly string[],
): readonly string[] {
  return [
    `    - name: ${JSON.stringify(oneLine(name))}`,
    '      ansible.builtin.shell:',
    '        cmd: |',
    ...['set -e', ...lines].map((line) => `          ${line}`),
    `        ${guard}: ${placeOf(device)}`,
  ];
}
