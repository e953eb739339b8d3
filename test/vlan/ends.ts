import type { Reservation } from '../../src/contract/reservation.ts';
import { type End, type EndChoices, endAt } from '../../src/vlan/end.ts';

/** A reservation with the tags of the trial (vlan/README.md). */
export const RESERVATION: Reservation = {
  id: 'con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
  site1: 'be-gent1',
  site2: 'pl-poznan1',
  bandwidth: 1000,
  start_date: '2026-11-22T14:00:00.000Z',
  end_date: '2026-11-22T16:00:00.000Z',
  experiment_id: 'exp_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
  created_at: '2026-11-22T13:00:00.000Z',
  created_by: 'user_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
  site1_s_tag: 1001,
  site1_c_tag: 17,
  site2_s_tag: 2002,
  site2_c_tag: 34,
};

/** The end of {@link RESERVATION} at its first site, on eth1. @param changes of the reservation */
export function end(choices: EndChoices = {}, device = 'eth1', changes: Partial<Reservation> = {}): End {
  const reservation = { ...RESERVATION, ...changes };
  return endAt(reservation, reservation.site1, device, choices);
}
