import * as v from 'valibot';
import { ReservationId } from './fields.ts';
import { PeriodBody, Reservation, ReservationReply, ReservationUpdate } from './reservation.ts';

/** The most items of a batch; it has one at least (contract/README.md, "Extensions"). */
export const MAX_ITEMS = 64;

/** The action of an item of a batch. */
export const BATCH_ACTIONS = ['create', 'update', 'delete'] as const;
/** One of {@link BATCH_ACTIONS}. */
export type BatchAction = (typeof BATCH_ACTIONS)[number];

const STARTS = 'ISO 8601 UTC timestamp, or null: at the time of the request.';
const { tokens, ...created } = PeriodBody.entries;
const { tokens: _tokens, ...updated } = ReservationUpdate.entries;

/** One change of a batch as it travels: the members of a single request, without `tokens`, `duration` and `volume`. */
export const BatchItemBody = v.variant('action', [
  v.object({
    action: v.literal('create'),
    ...created,
    start_date: v.pipe(created.start_date, v.description(STARTS)),
  }),
  v.object({
    action: v.literal('update'),
    id: ReservationId,
    ...updated,
    start_date: v.pipe(updated.start_date, v.description(STARTS)),
  }),
  v.object({ action: v.literal('delete'), id: ReservationId }),
]);
/** See {@link BatchItemBody}. */
export type BatchItemBody = v.InferInput<typeof BatchItemBody>;

/** The body of a batch. */
export const BatchRequest = v.object({
  items: v.pipe(
    v.array(BatchItemBody),
    v.minLength(1),
    v.maxLength(MAX_ITEMS),
    v.description('Changes, all of which are made, or none. Each sees those before it.'),
  ),
  tokens,
});

/** The results of a batch, in the order of its items. */
export const BatchResults = v.object({
  items: v.array(
    v.object({
      connectivity: v.pipe(v.nullable(Reservation), v.description('Null for a deletion.')),
      token: v.pipe(
        v.nullable(v.string()),
        v.description('The signed connectivity token. Null for a deletion, and in a dry run.'),
      ),
    }),
  ),
});

/** The same as the client reads it. */
export const BatchResultsReply = v.object({
  items: v.array(
    v.object({
      connectivity: v.optional(v.nullable(ReservationReply), null),
      token: v.optional(v.nullable(v.string()), null),
    }),
  ),
});
