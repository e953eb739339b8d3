import type { Page } from './page-props.ts';
import { useShown } from './signals.ts';
import { experimentLabel, roleText } from './words.ts';

/** The zone of the browser, UTC, and all others by their present names. */
const zones = [
  ...new Set([
    Intl.DateTimeFormat().resolvedOptions().timeZone,
    'UTC',
    ...Intl.supportedValuesOf('timeZone'),
  ]),
];

/** Who is logged in, the experiment that is worked in, and the zone of all times. */
export function SessionBar({ page }: { page: Page }) {
  const { network, login, chosen, zone } = useShown(page, (state) => ({
    ...{ network: state.network, login: state.login, chosen: state.chosen, zone: state.zone },
  }));
  const all = login?.experiments ?? [];
  const [role = '', allows = ''] = roleText(chosen?.role ?? '').split(/(?=: )/);
  const setZone = (next: string): void => {
    page.lasting.set('zone', next);
    page.store.dispatch({ type: 'zoned', zone: next });
  };
  return (
    <div class="session">
      {all.length > 0 && (
        <div class="experiment">
          <label>
            <span class="wide">Experiment </span>
            <select value={chosen?.id ?? ''} onChange={(event) => page.choose(event.currentTarget.value)}>
              {!chosen && <option value="">Choose…</option>}
              {all.map((one) => (
                <option key={one.id} value={one.id}>
                  {experimentLabel(one, all)}
                </option>
              ))}
            </select>
          </label>
          <span class="role">
            {chosen && role}
            <span class="wide">{chosen ? allows : 'Choose one to see and book its links.'}</span>
          </span>
        </div>
      )}
      {login?.user && (
        <>
          <span class="zone">
            <label for="zone" class="wide">
              Times in
            </label>{' '}
            <select id="zone" value={zone} onChange={(event) => setZone(event.currentTarget.value)}>
              {zones.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </span>
          <span>
            <span class="wide">Logged in as </span>
            <strong>{login.user.name}</strong>
          </span>
          <button type="button" class="quiet" onClick={() => void page.login.logOut()}>
            Log out
          </button>
        </>
      )}
      {!login?.user && network?.login && (
        <button type="button" onClick={() => void page.login.logIn()}>
          Log in
        </button>
      )}
    </div>
  );
}
