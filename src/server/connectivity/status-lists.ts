import { promisify } from 'node:util';
import { deflate } from 'node:zlib';
import type { Network } from '../../allocator/network.ts';
import type { ReservationRecord, ReservationStore } from '../../allocator/store.ts';
import { STATUSES_IN_LIST } from '../../contract/claims.ts';
import { HOUR, MINUTE, SECOND } from '../../contract/durations.ts';
import { isWithin } from '../../contract/instants.ts';
import { routePath, STATUS_LIST_TYPE } from '../../contract/routes.ts';
import { knowsTag } from '../etag.ts';
import type { ServiceIssuer } from '../keys/service-issuer.ts';
import { onceIn } from '../once-in.ts';
import { refusal, tooMany } from '../problem-error.ts';
import { RateLimit } from '../rate-limit.ts';

/** What status lists are made from. */
export interface StatusListsOptions {
  network: Pick<Network, 'byId'>;
  reservations: Pick<ReservationStore, 'readLinks' | 'readVersions'>;
  issuer: ServiceIssuer;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/** How often a link is looked at, in milliseconds, however many ask (THREATS.md 120). */
const LOOK_EVERY = SECOND;
/** How many lists are read in a second: each at most once for a version of its link, and one after the other. */
const MOST_READS = 30;
/** How long others may use a list, and how long it is true, in seconds. */
const [TTL, LIFETIME] = [MINUTE / 1000, HOUR / 1000];
/** How old a signature may be, in milliseconds: it says of what instant the list is. */
const SIGN_EVERY = MINUTE / 2;

const compress = promisify(deflate);

/** The place of a reservation's token in its list: `idx` and the address of the list (draft-ietf-oauth-status-list §6.2). */
export function placeInList({ hops: [{ link }], version }: ReservationRecord, issuer: string) {
  const list = Math.floor(version / STATUSES_IN_LIST);
  return { idx: version - list * STATUSES_IN_LIST, uri: addressOfList(issuer, link, list) };
}

function addressOfList(issuer: string, link: string, list: number | string): string {
  return issuer + routePath('statusList', { link, list: `${list}` });
}

/** A link's version, and the history of the database that it is of. */
interface LinkOfHistory {
  version: number;
  history: string;
}

/** A list, compressed; and its token, which says that the list was true at an instant. */
interface StatusList {
  of: LinkOfHistory;
  lst: string;
  token: string;
  etag: string;
  /** Of which instant the token says that the list was true. */
  at: number;
}

/**
 * Answers with a status list (draft-ietf-oauth-status-list): list n of a link covers its versions from n · 2^17 on. The bit of a
 * version is 0, valid, while a reservation that begins on the link has it: an update gives it another version, a deletion none.
 * So a token that was deleted or replaced is dead, and nothing is stored for it.
 *
 * A version that the link has not given out yet counts as valid too: a token must not be dead because a cache holds a list
 * from before it. Nobody has a token with such a version; and a database that was restored gives none out again that it gave out
 * before (store/history.ts).
 *
 * Anyone may ask, without a token, so it is bounded what that costs: see the constants.
 *
 * @throws ProblemError 404 for an unknown link, and for a list beyond its newest version; 429
 */
export function createStatusLists({ network, reservations, issuer, now }: StatusListsOptions) {
  const reads = new RateLimit(MOST_READS, SECOND, now);
  let turn: Promise<unknown> = Promise.resolve();

  const look = onceIn(LOOK_EVERY, now, (link) => {
    // When it was looked at.
    const at = now();
    return reservations.readLinks(async (snapshot) => {
      const [{ version = 0 } = {}] = await snapshot.versions([link]);
      return { version, history: snapshot.history, at };
    });
  });

  async function read(link: string, from: number): Promise<Pick<StatusList, 'of' | 'lst'>> {
    const valid = new Uint8Array(STATUSES_IN_LIST / 8);
    const of = await reservations.readVersions(link, [from, from + STATUSES_IN_LIST], (versions) => {
      for (const version of versions) setBit(valid, version - from);
    });
    for (let idx = Math.max(0, of.version + 1 - from); idx < STATUSES_IN_LIST; idx += 1) setBit(valid, idx);
    return { of, lst: (await compress(valid.map((byte) => ~byte))).toString('base64url') };
  }

  function countRead(of: 'links' | 'unknown'): void {
    if (reads.wait(of) > 0) throw tooMany('Too many status lists are asked for. Try again in 1 s.', 1);
    reads.count(of);
  }

  /** Reads a list after those that others wait for. */
  async function readInTurn(link: string, from: number): Promise<Pick<StatusList, 'of' | 'lst'>> {
    countRead('links');
    const answer = turn.then(() => read(link, from));
    turn = answer.catch(() => undefined);
    return answer;
  }

  const renewed = onceIn(LOOK_EVERY, now, async (name, last?: StatusList): Promise<StatusList> => {
    const [link = '', list = ''] = name.split(' ');
    const looked = await look(link);
    const isSame = last?.of.version === looked.version && last.of.history === looked.history;
    if (isSame && isWithin(last.at, SIGN_EVERY, looked.at)) return last;
    const { of, lst } = isSame ? last : await readInTurn(link, Number(list) * STATUSES_IN_LIST);
    const iat = Math.floor(looked.at / 1000);
    const sub = addressOfList(issuer.issuer, link, list);
    const claims = { sub, exp: iat + LIFETIME, ttl: TTL, status_list: { bits: 1, lst } };
    const token = await issuer.issue(claims, { typ: 'statuslist+jwt', at: looked.at });
    return { of, lst, token, etag: `"${of.version}-${iat}"`, at: looked.at };
  });

  return async (request: Request, link: string, list: string): Promise<Response> => {
    const isLink = network.byId(link) !== undefined;
    // Made-up names, and a link that left the topology: its tokens are still looked for.
    if (!isLink) countRead('unknown');
    const { version } = await look(link);
    const isKnown = isLink || version > 0;
    const isList = /^(?:0|[1-9]\d{0,11})$/.test(list) && Number(list) * STATUSES_IN_LIST <= version;
    if (!isKnown || !isList) throw refusal('not_found', 'There is no such status list.');
    const { token, etag } = await renewed(`${link} ${list}`);
    const headers = { etag, 'cache-control': `public, max-age=${TTL}` };
    if (knowsTag(request, etag)) return new Response(null, { status: 304, headers });
    return new Response(token, { headers: { ...headers, 'content-type': STATUS_LIST_TYPE } });
  };
}

function setBit(bits: Uint8Array, index: number): void {
  bits[index >> 3] = (bits[index >> 3] ?? 0) | (1 << (index & 7));
}
