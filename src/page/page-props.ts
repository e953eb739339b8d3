import type { Booking } from './booking.ts';
import type { PageContext } from './context.ts';
import type { Draft } from './draft.ts';
import type { PageLogin } from './login.ts';
import type { ReservationAction } from './reservation-actions.ts';
import type { OwnReservation } from './service.ts';
import type { Selected } from './state.ts';
import type { TimelineAction } from './timeline/model.ts';

/** The page as its components know it: the state, and what can be done. */
export interface Page extends Pick<PageContext, 'store' | 'service' | 'lasting'> {
  booking: Booking;
  login: PageLogin;
  /** Does what a button of a reservation says. */
  act(action: ReservationAction, own: OwnReservation): void;
  /** Gives up the request that had no answer, after a look whether it was done. */
  forget(): void;
  /** Asks for the reservations that have ended. */
  loadEnded(): void;
  /** Chooses the experiment that is worked in. @param id of one of the user's experiments */
  choose(id: string): void;
  /** Something is begun: the notice of what was done before goes. */
  begin(): void;
  /**
   * Sites were picked on the map, or a link and a time in the timeline: they are looked at, and who may book gets them in the
   * form. Picked by a key, the keyboard is led to the form.
   */
  pick(selected: Selected, draft: Draft): void;
  /** Changes what the timeline shows. */
  move(action: TimelineAction): void;
}
