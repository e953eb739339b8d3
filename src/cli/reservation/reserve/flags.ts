import type { ReservationTexts } from '../../../contract/reservation-texts.ts';
import type { PeriodFlags } from '../../period.ts';
import type { RouteFlags } from '../route-options.ts';

/** The flags of `reserve`, as typed. */
export interface ReserveFlags extends PeriodFlags, ReservationTexts, RouteFlags {
  bandwidth?: string;
  earliest?: boolean;
  volume?: string;
  /** Seconds; true without a number. */
  wait?: number | true;
  dryRun?: boolean;
  save?: string;
  allowUnsigned?: boolean;
  idempotencyKey?: string;
}
