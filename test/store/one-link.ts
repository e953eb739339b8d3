import type {
  Hop,
  LinkVersion,
  ReservationRecord,
  ReservationStore,
  StoreTransaction,
} from '../../src/allocator/store.ts';

/** A reservation of one hop, with what it holds of its link beside the rest. */
export interface OneHop extends Omit<ReservationRecord, 'site1' | 'site2' | 'hops' | 'version'>, Hop {
  /** Default 1: its link's first change. */
  version?: number;
  /** Whether it was asked for from the link's second site. */
  reversed?: boolean;
}

/** A reservation on one link. */
export function oneHop({ link, tags, reversed = false, version = 1, ...rest }: OneHop): ReservationRecord {
  const sites = link.split('~');
  const [site1 = '', site2 = ''] = reversed ? sites.toReversed() : sites;
  return { ...rest, version, site1, site2, hops: [{ link, tags }] };
}

/** A transaction over one link, with what it reads of it. */
export type LinkTransaction = StoreTransaction & LinkVersion;

/** Runs work on one link that is locked. */
export function changeLink<Answer>(
  store: ReservationStore,
  link: string,
  work: (transaction: LinkTransaction) => Promise<Answer>,
): Promise<Answer> {
  return store.changeLinks({ links: [link] }, async (transaction) => {
    const [locked] = await transaction.versions();
    if (!locked) throw new RangeError(`${link} is not locked`);
    return work({ ...transaction, ...locked });
  });
}

/** Reservations as `r` with their hops, a row for each hop, by the columns of both. A condition may follow. */
export const WITH_HOPS = `SELECT r.*, position, link, version, site1_s_tag, site1_c_tag, site2_s_tag, site2_c_tag
  FROM reservation AS r JOIN hop ON hop.reservation = r.id`;
