import { type Choice, element, quietButton, setChoices, setText } from './elements.ts';
import type { ExperimentChoice } from './service.ts';
import type { State } from './state.ts';
import { experimentLabel, roleText } from './words.ts';

/** The parts of the state that the bar shows. */
export type SessionBarView = Pick<State, 'network' | 'login' | 'chosen' | 'zone'>;

/** Options of {@link createSessionBar}. */
export interface SessionBarOptions {
  /** The zones to choose from. */
  zones: readonly string[];
  choose(experiment: string): void;
  setZone(zone: string): void;
  logIn(): void;
  logOut(): void;
}

/** Who is logged in, the experiment that is worked in, and the zone of all times. */
export function createSessionBar({ zones: known, choose, setZone, logIn, logOut }: SessionBarOptions) {
  const experiments = element('select', { onchange: () => choose(experiments.value) });
  const role = element('span', { class: 'role' });
  const zones = element('select', { id: 'zone', onchange: () => setZone(zones.value) });
  const user = element('span', { class: 'user' });
  const leave = quietButton('Log out', logOut);
  const enter = element('button', { type: 'button', onclick: logIn }, 'Log in');
  // Not in its label, which would have the names of all zones.
  const zoneLabel = element(
    'span',
    { class: 'zone' },
    element('label', { for: 'zone' }, 'Times in'),
    ' ',
    zones,
  );
  const chosen = element(
    'div',
    { class: 'experiment' },
    element('label', {}, 'Experiment ', experiments),
    role,
  );
  const bar = element('div', { class: 'session' }, ...[chosen, zoneLabel, user, leave, enter]);

  /** Shows the state. */
  function show({ network, login, chosen: experiment, zone }: SessionBarView): void {
    const person = login?.user;
    const all = login?.experiments ?? [];
    setChoices(
      zones,
      known.map((value) => ({ value, label: value })),
      zone,
    );
    chosen.hidden = all.length === 0;
    setChoices(experiments, experimentChoices(all, experiment), experiment?.id ?? '');
    setText(role, experiment ? roleText(experiment.role) : 'Choose one to see and book its links.');
    setText(user, person ? `Logged in as ${person.name}` : '');
    // Without a login no times are shown.
    for (const part of [user, leave, zoneLabel]) part.hidden = !person;
    enter.hidden = Boolean(person) || !network?.login;
  }

  return { element: bar, show };
}

/** The experiments to choose from. */
function experimentChoices(
  experiments: readonly ExperimentChoice[],
  chosen: ExperimentChoice | undefined,
): Choice[] {
  const choices = experiments.map((one) => ({ value: one.id, label: experimentLabel(one, experiments) }));
  return chosen ? choices : [{ value: '', label: 'Choose…' }, ...choices];
}
