import { useId, useState } from 'preact/hooks';
import { deviceFault, endAt } from '../vlan/end.ts';
import { iproute2 } from '../vlan/iproute2.ts';
import { CopyButton } from './copy-button.tsx';
import type { OwnReservation } from './service.ts';

/** The commands to paste on a server at each end of a reservation, as `slices-conn vlan` prints them. */
export function ServerCommands({ own }: { own: OwnReservation }) {
  return (
    <div class="servers">
      {[own.site1, own.site2].map((site) => (
        <Server key={site} own={own} site={site} />
      ))}
    </div>
  );
}

function Server({ own, site }: { own: OwnReservation; site: string }) {
  const [device, setDevice] = useState('eth1');
  const id = useId();
  const name = device.trim();
  const problem =
    name === '' ? 'Name the device that reaches the site’s switch, such as eth1.' : deviceFault(name);
  const lines = problem === undefined ? iproute2(endAt(own, site, name)).text : undefined;
  return (
    <div>
      <p>
        <label for={id}>On a server at {site}, device</label>{' '}
        <input
          {...{ id, type: 'text', autocomplete: 'off', spellcheck: false, maxlength: 15, value: device }}
          aria-invalid={problem !== undefined}
          onInput={({ currentTarget }) => setDevice(currentTarget.value)}
        />{' '}
        {lines && <CopyButton text={`${lines.join('\n')}\n`} label={`Copy the commands for ${site}`} />}
      </p>
      {lines ? (
        <pre>
          {lines.map((line) => (
            <code key={line}>{line}</code>
          ))}
        </pre>
      ) : (
        <p class="problem" role="status">
          {problem}
        </p>
      )}
    </div>
  );
}
