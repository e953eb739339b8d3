import type { Reservation } from '../contract/reservation.ts';
import { deviceFault, endAt } from '../vlan/end.ts';
import { iproute2 } from '../vlan/iproute2.ts';
import { showText } from './dialogs.ts';
import { element } from './elements.ts';

/** Shows what to paste on a server at one end of a reservation. @param copy whether the browser let it be copied */
export function showServerText(reservation: Reservation, copy: (text: string) => Promise<boolean>): void {
  const { site1, site2 } = reservation;
  const sites = [site1, site2].map((each) => element('option', {}, each));
  const site = element('select', { id: 'server-site' }, ...sites);
  const device = element('input', {
    ...{ id: 'server-device', type: 'text', autocomplete: 'off', spellcheck: 'false', maxlength: '15' },
    ...{ placeholder: 'eth1', autofocus: true },
  });
  const field = (label: string, input: HTMLElement): HTMLElement =>
    element('div', { class: 'field' }, element('label', { for: input.id }, label), input);
  showText({
    title: 'On a server',
    fields: [field('The server’s site', site), field('Its network device', device)],
    text() {
      const name = device.value.trim();
      const problem =
        name === '' ? 'Name the device that reaches the site’s switch, such as eth1.' : deviceFault(name);
      if (problem !== undefined) return { problem };
      return { text: `${iproute2(endAt(reservation, site.value, name)).text.join('\n')}\n` };
    },
    copy,
  });
}
