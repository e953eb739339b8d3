import { DAY, HOUR } from '../contract/durations.ts';
import { ownCommand } from '../contract/failure.ts';
import { type Booking, madeBy } from './booking.ts';
import { type PageContext, say, tell } from './context.ts';
import { copy } from './copy-button.tsx';
import { ask } from './dialogs.tsx';
import { draftOf, ON_THE_WAY } from './draft.ts';
import { type OwnReservation, Refused } from './service.ts';
import { focusForm, focusReservation, scrollToTimeline } from './sights.ts';
import { calendarOf, openRequest } from './state.ts';
import { extensionText, forgetText, ownSentence, refusalText, titleOf } from './words.ts';

/** An action on a reservation. */
export type ReservationAction = 'hour' | 'day' | 'change' | 'end' | 'delete' | 'command' | 'token' | 'show';

/** What is asked before a reservation is given up; `rest`: what else becomes of it. */
type GivingUp = { title: string; rest: string; yes: string };

/** Makes the function that does what a button of a reservation says. */
export function createReservationActions(context: PageContext, booking: Booking) {
  const { store, service } = context;
  const sentence = (own: OwnReservation): string => ownSentence(own, calendarOf(store.state));
  const done = (own: OwnReservation, text: string): void => say(context, text, { id: own.id }, true);

  /** Runs something with a reservation, once at a time. */
  async function whileBusy(id: string, run: () => Promise<void>): Promise<void> {
    if (store.state.busy.has(id)) return;
    store.dispatch({ type: 'busy', id, isBusy: true });
    try {
      await run();
    } catch (error) {
      tell(context, error, { id });
    } finally {
      store.dispatch({ type: 'busy', id, isBusy: false });
    }
  }

  /** Sends a reservation with another end. */
  async function changeEnd(experiment: string, own: OwnReservation, end: number): Promise<OwnReservation> {
    const { id, site1, site2, bandwidth, start } = own;
    const request = { site1, site2, bandwidth, start, end };
    const reservation = await service.send(experiment, { id, request });
    store.dispatch({ type: 'changed', experiment, reservation });
    return reservation;
  }

  /** Extends a reservation at once; where that does not fit, the form opens and says what would. */
  function extend(experiment: string, own: OwnReservation, milliseconds: number): Promise<void> {
    return whileBusy(own.id, async () => {
      const end = own.end + milliseconds;
      try {
        done(own, `Extended: ${sentence(await changeEnd(experiment, own, end))}.`);
        context.look();
      } catch (error) {
        if (!(error instanceof Refused) || error.facts.status !== 422) throw error;
        booking.fill({ ...draftOf(own), ending: end });
        focusForm();
        say(context, extensionText(own, milliseconds, error.facts, calendarOf(store.state)), 'form');
      }
    });
  }

  /** Gives up a reservation, once the user has confirmed it. @param run does it, and says that it was done */
  async function giveUp(own: OwnReservation, question: GivingUp, run: () => Promise<string>): Promise<void> {
    const { title, rest, yes } = question;
    const text = `${sentence(own)}. Its bandwidth and VLANs are free for others at once${rest}. This can’t be undone.`;
    if (!(await ask({ title, text, yes, no: 'Keep it' }))) return;
    await whileBusy(own.id, async () => {
      done(own, await run());
      context.look();
    });
  }

  function emptyForm({ id }: OwnReservation): void {
    if (store.state.draft.id === id) booking.reset();
  }

  function endNow(experiment: string, own: OwnReservation): Promise<void> {
    const rest = '; it stays in the list of ended ones';
    return giveUp(own, { title: `End ${titleOf(own)} now?`, rest, yes: 'End it now' }, async () => {
      const end = Math.min(own.end, store.state.now + ON_THE_WAY);
      const reservation = await changeEnd(experiment, own, end);
      emptyForm(own);
      return `Ended: ${sentence(reservation)}.`;
    });
  }

  function remove(experiment: string, own: OwnReservation): Promise<void> {
    return giveUp(own, { title: `Delete ${titleOf(own)}?`, rest: '', yes: 'Delete' }, async () => {
      await service.delete(experiment, own.id);
      emptyForm(own);
      store.dispatch({ type: 'deleted', id: own.id });
      focusReservation(own.id);
      return `Deleted: ${sentence(own)}.`;
    });
  }

  async function copyCommand(own: OwnReservation): Promise<void> {
    const command = ownCommand('vlan', own.id, '--site', own.site1, '--dev', 'eth1');
    const isCopied = await copy(`${command}\n`);
    const text = isCopied ? 'Copied' : 'The browser does not let this page copy';
    say(context, `${text}: ${command}`, { id: own.id }, isCopied);
  }

  function saveToken(experiment: string, own: OwnReservation): Promise<void> {
    return whileBusy(own.id, async () => {
      const name = `${own.name ?? own.id}.jwt`;
      download(name, 'application/jwt', await service.token(experiment, own.id));
      done(own, `The token is in ${name}. slices-conn verify ${name} checks it offline.`);
    });
  }

  function showInTimeline(own: OwnReservation): void {
    const room = Math.max(HOUR, (own.end - own.start) / 4);
    const window = { start: own.start - room, end: own.end + room };
    store.dispatch({ type: 'timeline', action: { type: 'moved', window } });
    const { site1, site2, via } = own;
    store.dispatch({ type: 'learnt', facts: { selected: { site1, site2, via }, marked: own.id } });
    scrollToTimeline();
  }

  return async (action: ReservationAction, own: OwnReservation): Promise<void> => {
    const experiment = store.state.chosen?.id;
    if (experiment === undefined) return;
    store.dispatch({ type: 'unsaid', since: 'begun' });
    const actions: Readonly<Record<ReservationAction, () => void | Promise<void>>> = {
      hour: () => extend(experiment, own, HOUR),
      day: () => extend(experiment, own, DAY),
      change() {
        booking.fill(draftOf(own));
        focusForm();
      },
      end: () => endNow(experiment, own),
      delete: () => remove(experiment, own),
      command: () => copyCommand(own),
      token: () => saveToken(experiment, own),
      show: () => showInTimeline(own),
    };
    await actions[action]();
  };
}

/** Makes the function that gives up a request without an answer, after a look whether it was done. */
export function createForgetting(context: PageContext, booking: Pick<Booking, 'forget'>) {
  const { store, service } = context;
  return async (): Promise<void> => {
    const sent = openRequest(store.state);
    if (!sent) return;
    let found: OwnReservation | string | undefined;
    try {
      const live = await service.live(sent.experiment);
      if (store.state.chosen?.id === sent.experiment) store.dispatch({ type: 'listed', live });
      found = madeBy(sent, live);
    } catch (error) {
      if (!(error instanceof Refused)) {
        tell(context, error, 'form');
        return;
      }
      found = refusalText(error.facts, calendarOf(store.state));
    }
    const isSure = await ask({
      title: 'Forget this request?',
      text: forgetText(sent.wish, found, calendarOf(store.state)),
      ...{ yes: 'Forget it', no: 'Keep it' },
    });
    if (isSure && openRequest(store.state) === sent) booking.forget(typeof found === 'object');
  };
}

/** Hands a text to the browser as a file. */
function download(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  Object.assign(document.createElement('a'), { href: address, download: name }).click();
  // The browser reads it after this task.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
