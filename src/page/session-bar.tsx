import { useState } from 'preact/hooks';
import type { Page } from './page-props.ts';
import { useShown } from './signals.ts';
import { experimentLabel, roleText } from './words.ts';
import { lastZones, presentName, ZONES } from './zones.ts';

/** Who is logged in, the experiment that is worked in, and the zone of all times. */
export function SessionBar({ page }: { page: Page }) {
  const { network, login, chosen, zone } = useShown(page, (state) => ({
    ...{ network: state.network, login: state.login, chosen: state.chosen, zone: state.zone },
  }));
  const all = login?.experiments ?? [];
  const [role = '', allows = ''] = roleText(chosen?.role ?? '').split(/(?=: )/);
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
          <ZoneChoice page={page} zone={zone} />
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

/** The zone of all times: the browser's own, UTC and those used last; the others are found by a search. */
function ZoneChoice({ page, zone }: { page: Page; zone: string }) {
  const [isSearching, search] = useState(false);
  const { lasting, store } = page;
  const choose = (typed: string): void => {
    const next = ZONES.find((one) => one.toLowerCase() === typed.trim().toLowerCase());
    if (next === undefined) return;
    search(false);
    lasting.set('zone', next);
    lasting.set('zones', lastZones([next, zone], lasting.get('zones')).join(' '));
    store.dispatch({ type: 'zoned', zone: next });
  };
  return (
    <span class="zone">
      <label for="zone" class="wide">
        Times in
      </label>{' '}
      {isSearching ? (
        <>
          <input
            id="zone"
            type="search"
            list="zones"
            placeholder="Kyiv, Kolkata…"
            ref={(input) => input?.focus()}
            onInput={({ currentTarget: { value } }) => choose(value)}
            onBlur={() => search(false)}
            onKeyDown={({ key }) => key === 'Escape' && search(false)}
          />
          <datalist id="zones">
            {ZONES.map((one) => (
              <option key={one} value={one} />
            ))}
          </datalist>
        </>
      ) : (
        <select
          id="zone"
          value={presentName(zone)}
          onChange={({ currentTarget: { value } }) => (value === '' ? search(true) : choose(value))}
        >
          {lastZones([zone, 'UTC'], lasting.get('zones')).map((one) => (
            <option key={one}>{one}</option>
          ))}
          <option value="">Another…</option>
        </select>
      )}
    </span>
  );
}
