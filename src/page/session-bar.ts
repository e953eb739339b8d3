import { type Choice, element, setChoices, setText } from './elements.ts';
import type { Experiment, Session } from './service.ts';
import { roleText } from './words.ts';

/** What the bar shows. */
export interface SessionBarView {
  session: Session;
  /** Whether a login is possible here. */
  canLogIn: boolean;
  chosen: Experiment | undefined;
  /** IANA name or `UTC`. */
  zone: string;
  zones: readonly string[];
}

/** Options of {@link createSessionBar}. */
export interface SessionBarOptions {
  choose(experiment: string): void;
  setZone(zone: string): void;
  logIn(): void;
  logOut(): void;
}

/** Who is logged in, the experiment that is worked in, and the zone of all times. */
export function createSessionBar({ choose, setZone, logIn, logOut }: SessionBarOptions) {
  const experiments = element('select', { onchange: () => choose(experiments.value) });
  const role = element('span', { class: 'role' });
  const zones = element('select', { onchange: () => setZone(zones.value) });
  const user = element('span', { class: 'user' });
  const leave = element('button', { type: 'button', class: 'quiet', onclick: logOut }, 'Log out');
  const enter = element('button', { type: 'button', onclick: logIn }, 'Log in');
  const zoneLabel = element('label', { class: 'zone' }, 'Times in ', zones);
  const chosen = element(
    'div',
    { class: 'experiment' },
    element('label', {}, 'Experiment ', experiments),
    role,
  );
  const bar = element('div', { class: 'session' }, ...[chosen, zoneLabel, user, leave, enter]);

  /** Shows what is known. */
  function show({ session, canLogIn, chosen: experiment, zone, zones: known }: SessionBarView): void {
    const { user: person } = session;
    setChoices(
      zones,
      known.map((value) => ({ value, label: value })),
      zone,
    );
    chosen.hidden = session.experiments.length === 0;
    setChoices(experiments, experimentChoices(session.experiments, experiment), experiment?.id ?? '');
    setText(role, experiment ? roleText(experiment.role) : 'Choose one to see and book its links.');
    setText(user, person ? `Logged in as ${person.name}` : '');
    // Without a login no times are shown.
    for (const part of [user, leave, zoneLabel]) part.hidden = !person;
    enter.hidden = person !== null || !canLogIn;
  }

  return { element: bar, show };
}

/** The experiments to choose from; two of one name are told apart by their project. */
function experimentChoices(experiments: readonly Experiment[], chosen: Experiment | undefined): Choice[] {
  const choices = experiments.map(({ id, name, project }) => {
    const isAlone = experiments.filter((other) => other.name === name).length === 1;
    return { value: id, label: isAlone ? name : `${name} (${project.name})` };
  });
  return chosen ? choices : [{ value: '', label: 'Choose…' }, ...choices];
}
