import * as v from 'valibot';
import { ReservationReply } from './reservation.ts';

/** The media type of a stream of events (HTML Standard, "Server-sent events"). */
export const EVENT_STREAM_TYPE = 'text/event-stream';
/** A stream says something at least this often, in milliseconds, so that a silent one is known to be broken. */
export const EVENT_PAUSE = 15_000;
/** The header in which a client that comes back names the last cursor that it has got. */
export const LAST_EVENT_ID_HEADER = 'Last-Event-ID';

const EVENT_TYPES = ['created', 'updated', 'deleted', 'started', 'ending_soon', 'ended'] as const;
/** An event of a reservation. The last three come with time alone. */
export type EventType = (typeof EVENT_TYPES)[number];

/** The data of an event `reservation`: the reservation as it is now; a deleted one as it was last. */
export const ReservationEvent = v.object({
  type: v.picklist(EVENT_TYPES),
  reservation: ReservationReply,
});
/** See {@link ReservationEvent}. */
export type ReservationEvent = v.InferOutput<typeof ReservationEvent>;

/** The data of an event `link`: a link whose use has changed. It says nothing of who uses it. */
export interface LinkEvent {
  site1: string;
  site2: string;
  /** Counts the changes of the link. */
  version: number;
}
