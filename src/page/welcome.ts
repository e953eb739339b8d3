import { element, setText } from './elements.ts';
import type { ExperimentChoice } from './service.ts';
import type { State } from './state.ts';
import { experimentLabel, roleText } from './words.ts';

/** The meaning of a reservation, in a sentence. */
export const RESERVATION =
  'A reservation is bandwidth between two sites for a time: it is yours alone, and reached by the VLAN tags that you get for both ends.';

const CHOOSE = 'It is made for an experiment, whose members see it. Choose the one to work in.';
const NONE =
  'It is made for an experiment, and you take part in none. Ask a lead of one to add you, or make your own in a terminal: slices-conn experiment create NAME --end +30d. Then come back to this page.';

/** The first step of who is here for the first time: what a reservation is, and the choice of an experiment. */
export function createWelcome(choose: (experiment: string) => void) {
  const heading = element('h2', { id: 'welcome-heading' });
  const next = element('p');
  const choices = element('ul', { class: 'alternatives', 'aria-labelledby': heading.id });
  const whole = element(
    'section',
    { 'aria-labelledby': heading.id, hidden: true },
    ...[heading, element('p', {}, RESERVATION), next, choices],
  );
  let shown: State['login'];

  function choice(one: ExperimentChoice, { experiments }: NonNullable<State['login']>, now: number) {
    const { id, role, expires_at } = one;
    const button = element(
      'button',
      { type: 'button', onclick: () => choose(id) },
      experimentLabel(one, experiments),
    );
    const isOver = Date.parse(expires_at) <= now;
    const text = isOver ? 'it has expired: nothing more can be booked for it' : roleText(role);
    return element('li', {}, button, ' ', element('small', {}, text));
  }

  return {
    element: whole,
    /** Shows what is to be chosen; nothing where that is done, or without a login. */
    show({ login, chosen, now }: Pick<State, 'login' | 'chosen' | 'now'>): void {
      whole.hidden = !login?.user || chosen !== undefined;
      if (!login || whole.hidden || login === shown) return;
      shown = login;
      const isNone = login.experiments.length === 0;
      setText(heading, isNone ? 'You have no experiment yet' : 'Choose an experiment');
      setText(next, isNone ? NONE : CHOOSE);
      choices.hidden = isNone;
      choices.replaceChildren(...login.experiments.map((one) => choice(one, login, now)));
    },
  };
}
