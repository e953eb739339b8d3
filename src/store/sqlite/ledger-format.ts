import type { DatabaseFormat } from './migrate.ts';

/** The client's ledger; see `session/ledger.ts`. Its `application_id` reads "slil". */
export const LEDGER_FORMAT: DatabaseFormat = {
  applicationId: 0x736c696c,
  migrations: [
    `
    -- What this machine asked of a connectivity service, one row for each reservation or attempt at one.
    CREATE TABLE attempt (
      service TEXT NOT NULL,
      experiment TEXT NOT NULL,
      key TEXT NOT NULL,
      -- What was asked last: reserve, update or delete.
      asked TEXT NOT NULL CHECK (asked IN ('reserve', 'update', 'delete')),
      asked_ms INTEGER NOT NULL,
      -- When it was asked for first.
      began_ms INTEGER NOT NULL,
      -- As it was sent, in JSON.
      requested TEXT,
      -- A change that was sent and not answered yet.
      pending TEXT,
      outcome TEXT NOT NULL CHECK (outcome IN ('unknown', 'booked', 'refused', 'deleted')),
      -- The outcome before a change or deletion that is not answered yet.
      was TEXT,
      reservation_id TEXT,
      -- What the service answered last, in JSON, and the token that proves it.
      reservation TEXT,
      token TEXT,
      PRIMARY KEY (service, experiment, key),
      CHECK (outcome <> 'booked' OR reservation_id IS NOT NULL)
    ) STRICT, WITHOUT ROWID;
    CREATE UNIQUE INDEX attempt_reservation ON attempt (service, reservation_id) WHERE reservation_id IS NOT NULL;
    `,
    `
    -- From when on a row is past, in milliseconds: its reservation has ended; at once where it was deleted, or never
    -- made. What is past is read only when it is asked for (HOSTILE.md 66).
    ALTER TABLE attempt ADD COLUMN past_ms INTEGER AS (
      CASE outcome
        WHEN 'booked' THEN coalesce(
          -- To the next whole second. Our own text always begins with a year; 'now' would be no fixed value.
          1000 + 1000 * unixepoch(iif(json_valid(reservation) AND reservation ->> '$.end_date' GLOB '[0-9]*',
            reservation ->> '$.end_date', NULL)),
          9000000000000000)
        WHEN 'unknown' THEN 9000000000000000
        ELSE 0
      END);
    CREATE INDEX attempt_past ON attempt (service, past_ms);
    `,
  ],
  journal: 'DELETE',
};
