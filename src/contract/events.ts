/** The media type of a stream of events (HTML Standard, "Server-sent events"). */
export const EVENT_STREAM_TYPE = 'text/event-stream';
/** A stream says something at least this often, in milliseconds, so that a silent one is known to be broken. */
export const EVENT_PAUSE = 15_000;
/** The header in which a client that comes back names the last cursor that it has got. */
export const LAST_EVENT_ID_HEADER = 'Last-Event-ID';

/** The data of an event `link`: a link whose use has changed. It says nothing of who uses it. */
export interface LinkEvent {
  site1: string;
  site2: string;
  /** Counts the changes of the link. */
  version: number;
}
