import type { Page } from './page-props.ts';
import { useShown } from './signals.ts';
import { experimentLabel, roleText } from './words.ts';

/** The meaning of a reservation, in a sentence. */
export const RESERVATION =
  'A reservation is bandwidth between two sites for a time: it is yours alone, and reached by the VLAN tags that you get for both ends.';

const CHOOSE = 'It is made for an experiment, whose members see it. Choose the one to work in.';
const NONE =
  'It is made for an experiment, and you take part in none. Ask a lead of one to add you, or make your own in a terminal: slices-conn experiment create NAME --end +30d. Then come back to this page.';

/** The first step of who is here for the first time: what a reservation is, and the choice of an experiment. */
export function Welcome({ page }: { page: Page }) {
  const { login, chosen, now } = useShown(page, (state) => ({
    ...{ login: state.login, chosen: state.chosen, now: state.now },
  }));
  if (!login?.user || chosen) return null;
  const { experiments } = login;
  const isNone = experiments.length === 0;
  return (
    <section aria-labelledby="welcome-heading">
      <h2 id="welcome-heading">{isNone ? 'You have no experiment yet' : 'Choose an experiment'}</h2>
      <p>{RESERVATION}</p>
      <p>{isNone ? NONE : CHOOSE}</p>
      {!isNone && (
        <ul class="alternatives" aria-labelledby="welcome-heading">
          {experiments.map((one) => (
            <li key={one.id}>
              <button type="button" onClick={() => page.choose(one.id)}>
                {experimentLabel(one, experiments)}
              </button>{' '}
              <small>
                {Date.parse(one.expires_at) <= now
                  ? 'it has expired: nothing more can be booked for it'
                  : roleText(one.role)}
              </small>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
