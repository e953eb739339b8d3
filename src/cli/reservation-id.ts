import * as v from 'valibot';
import { Failure } from '../contract/failure.ts';
import { ReservationId } from '../contract/ids.ts';

/** A reservation's id as typed. @throws Failure `usage` when it does not have the form of one */
export function reservationId(text: string): string {
  if (v.is(ReservationId, text)) return text;
  throw new Failure('usage', `${JSON.stringify(text)} is no id of a reservation.`, {
    why: 'Ids look like con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q.',
    fix: 'slices-conn list',
  });
}
