import { useState } from 'preact/hooks';
import { formatBandwidth } from '../contract/amounts.ts';
import { MINUTE } from '../contract/durations.ts';
import { clockOf, instantText } from '../words/civil-time.ts';
import { BookingForm, BookThis } from './booking-form.tsx';
import { NetworkMap } from './map/map.tsx';
import { Notice, SpokenNotice } from './notice.tsx';
import type { Page } from './page-props.ts';
import { ReservationList } from './reservation-list.tsx';
import type { NetworkFacts } from './service.ts';
import { useShown } from './signals.ts';
import { calendarOf } from './state.ts';
import { Timeline } from './timeline/timeline.tsx';
import { RESERVATION, Welcome } from './welcome.tsx';
import { awayText, clockText } from './words.ts';

/** The whole of the page below its header. */
export function App({ page }: { page: Page }) {
  const { network } = useShown(page, (state) => ({ network: state.network }));
  return (
    <>
      <h1>Book a link between two research sites</h1>
      <SpokenNotice page={page} />
      <WrongClock page={page} />
      <Away page={page} />
      <Notice page={page} at="page" />
      <Welcome page={page} />
      {network && <Work page={page} network={network} />}
      <Printed page={page} />
    </>
  );
}

/** The form, the network and what is free on it; below, the reservations. */
function Work({ page, network }: { page: Page; network: NetworkFacts }) {
  const { login } = useShown(page, (state) => ({ login: state.login }));
  const [isMapOpen, openMap] = useState(false);
  return (
    <>
      <div class="work">
        <BookingForm page={page} network={network} />
        <div class="seen">
          <section class={`network-map${isMapOpen ? ' open' : ''}`} aria-label="Map">
            <button type="button" class="quiet" aria-expanded={isMapOpen} onClick={() => openMap(!isMapOpen)}>
              Map
            </button>
            <NetworkMap page={page} network={network} />
          </section>
          <section class="free" aria-labelledby="free-heading" hidden={!login?.user}>
            <h2 id="free-heading" class="spoken">
              What is free
            </h2>
            <Timeline page={page} network={network} />
          </section>
          <BookThis page={page} />
        </div>
        {login && !login.user && <Links network={network} />}
      </div>
      <ReservationList page={page} />
    </>
  );
}

/** The links and what they carry, for who is not logged in. */
function Links({ network: { links, login } }: { network: NetworkFacts }) {
  return (
    <section class="beside links" aria-label="Links">
      <p>{RESERVATION}</p>
      <p>
        {login
          ? 'Log in to see what is free when, and to book.'
          : 'Use and booking need a login, which this server does not have: use the command line below.'}
      </p>
      <table>
        <caption>Links and their capacity</caption>
        <thead>
          <tr>
            <th scope="col">Site</th>
            <th scope="col">Site</th>
            <th scope="col">Capacity</th>
          </tr>
        </thead>
        <tbody>
          {links.map(({ site1, site2, bandwidth }) => (
            <tr key={`${site1} ${site2}`}>
              <td>{site1}</td>
              <td>{site2}</td>
              <td>{formatBandwidth(bandwidth)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Says since when the server does not answer. It is always there, so that readers of the screen hear it. */
function Away({ page }: { page: Page }) {
  const { reach, zone, now } = useShown(page, (state) => ({
    ...{ reach: state.reach, zone: state.zone, now: state.reach.isAway ? state.now : 0 },
  }));
  return (
    <p class="away" role="alert" hidden={!reach.isAway}>
      {reach.isAway && awayText(reach.since, calendarOf({ zone, now }))}
    </p>
  );
}

/** Says how wrong the browser's clock is. */
function WrongClock({ page }: { page: Page }) {
  const { text } = useShown(page, ({ ahead }) => ({ text: clockText(ahead) }));
  return (
    <p class="soft" role="status" hidden={text === ''}>
      {text}
    </p>
  );
}

/** Paper says when it was printed, in place of what can be chosen. */
function Printed({ page }: { page: Page }) {
  const { at, zone } = useShown(page, ({ now, zone: shown }) => ({ at: now - (now % MINUTE), zone: shown }));
  // Of no year: paper outlasts this one.
  const when = instantText(at, { clock: clockOf(zone), now: 0 });
  return (
    <p class="printed">
      Printed {when}, times in {zone}.
    </p>
  );
}
