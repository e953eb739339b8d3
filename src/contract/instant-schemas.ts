import * as v from 'valibot';
import { formatInstant, parseInstant, received } from './instants.ts';

/** A timestamp in a reply of the reference server: RFC 3339, UTC, milliseconds. */
export const Instant = v.pipe(
  v.string(),
  v.isoTimestamp(),
  v.metadata({ format: 'date-time' }),
  v.description('ISO 8601 UTC timestamp with milliseconds.'),
  v.examples(['2026-12-01T10:00:00.000Z']),
);
/** See {@link Instant}. */
export type Instant = v.InferOutput<typeof Instant>;

/** A timestamp in any service's reply (DESIGN.md, "Timestamps", column Client). Comes out as an {@link Instant}. */
export const ReplyInstant = v.pipe(
  v.string(),
  v.rawTransform<string, string>(({ dataset, addIssue, NEVER }) => {
    const instant = parseInstant(dataset.value, 'utc-if-absent');
    if (instant !== undefined) return formatInstant(instant);
    addIssue({ message: 'not an RFC 3339 timestamp' });
    return NEVER;
  }),
);

/**
 * A timestamp in a request: RFC 3339 with a zone (SPEC.md, "POST"). Comes out in milliseconds since the Unix epoch.
 *
 * @param name the member, for the message
 * @param example shown in the API's description
 */
export const requestInstant = (name: string, example = '2030-01-01T10:00:00.000Z') =>
  v.pipe(
    v.string((issue) => `${name} must be an ISO 8601 UTC timestamp; ${received(issue.input)}.`),
    v.examples([example]),
    v.rawTransform<string, number>(({ dataset, addIssue, NEVER }) => {
      const instant = parseInstant(dataset.value);
      if (instant !== undefined) return instant;
      addIssue({
        message: `${name} must be a day and time that exist, as an ISO 8601 UTC timestamp with a zone, such as 2026-12-01T10:00:00.000Z; ${received(dataset.value)}.`,
      });
      return NEVER;
    }),
    v.description('ISO 8601 UTC timestamp.'),
  );
