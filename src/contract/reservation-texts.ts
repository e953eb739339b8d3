/**
 * The members of a reservation that hold text of its user. They are kept, shown and signed as they were given. No decision
 * depends on them, except that a name must be free. src/README.md, "How to add", says where a new one stands.
 */
export const RESERVATION_TEXTS = ['name', 'description'] as const;
/** One of {@link RESERVATION_TEXTS}. */
export type ReservationText = (typeof RESERVATION_TEXTS)[number];
/** The texts of a reservation, or of a request; in an update, an empty text takes the reservation's own away. */
export type ReservationTexts = { [Text in ReservationText]?: string };

/** The texts that something has, without its other members. */
export function textsOf(source: ReservationTexts): ReservationTexts {
  const texts: ReservationTexts = {};
  for (const member of RESERVATION_TEXTS) {
    if (source[member] !== undefined) texts[member] = source[member];
  }
  return texts;
}

/** A copy with the texts of a change: each replaces the one before, and an empty one takes it away. */
export function withTexts<Texts extends ReservationTexts>(source: Texts, change: ReservationTexts): Texts {
  const changed = { ...source, ...textsOf(change) };
  for (const member of RESERVATION_TEXTS) if (changed[member] === '') delete changed[member];
  return changed;
}
