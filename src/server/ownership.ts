import { issuerName, issuersFor, type TrustedIssuer } from '../contract/addresses.ts';
import { setBounded } from '../contract/bounded.ts';
import { refusal } from './problem-error.ts';

/** Kinds whose ids belong to the issuer that minted them. */
export type OwnedKind = 'project' | 'experiment';

/** Stores the issuer of each id, in the database that replicas share. */
export interface OwnerStore {
  /**
   * Stores an issuer as an id's owner, unless the id has an owner: one atomic step, so that replicas agree.
   *
   * @returns the issuer that it belongs to from then on
   */
  register(id: string, issuer: string): Promise<string>;
}

/**
 * Checks that an issuer may act for an id, by a token that it signed.
 *
 * @throws ProblemError 403 `wrong_project` or `wrong_experiment` when the id is another issuer's
 */
export type Ownership = (kind: OwnedKind, id: string, issuer: string) => Promise<void>;

/** The most owners that are cached: some megabytes. An owner never changes. */
const MAX_CACHED_OWNERS = 10_000;

/**
 * The rule by which an id of a project or an experiment belongs to one of several trusted issuers (contract/README.md, "The
 * reference server"; THREATS.md 50):
 *
 * | the host in the id, `exp_<host>_<opaque_id>`     | it belongs to                                     |
 * |--------------------------------------------------|---------------------------------------------------|
 * | is the host of one or more trusted issuers       | one of these: the first that used it              |
 * | is not the host of a trusted issuer              | the first trusted issuer that used it             |
 *
 * "Used" means a request that carried the issuer's token for it. That is written to the database once, and so it holds on
 * every replica and after a restart. An issuer that is no longer trusted keeps its ids: no other issuer gets them.
 *
 * @param issuers those that are trusted
 * @param history names the history of the database: owners of another one are read again
 */
export function createOwnership(
  owners: OwnerStore,
  issuers: readonly TrustedIssuer[],
  history: () => string,
): Ownership {
  const known = new Map<string, string>();
  let knownOf = history();

  async function ownerOf(kind: OwnedKind, id: string, issuer: string): Promise<string | undefined> {
    if (knownOf !== history()) known.clear();
    knownOf = history();
    const remembered = known.get(id);
    if (remembered !== undefined) return remembered;
    const hosts = issuersFor(kind, issuers)
      .filter((other) => isHostOf(other, id))
      .map(issuerName);
    if (hosts.length > 0 && !hosts.includes(issuer)) return undefined;
    const owner = await owners.register(id, issuer);
    setBounded(known, id, owner, MAX_CACHED_OWNERS);
    return owner;
  }

  return async (kind, id, issuer) => {
    const name = issuerName(issuer);
    if ((await ownerOf(kind, id, name)) === name) return;
    throw refusal(
      kind === 'project' ? 'wrong_project' : 'wrong_experiment',
      `The ${kind} ${id} belongs to another issuer than ${name}, which can't act for it.`,
    );
  };
}

/** Ids carry a host name, and a port in places. */
function isHostOf(issuer: string, id: string): boolean {
  const { host, hostname } = new URL(issuer);
  const named = id.split('_')[1]?.toLowerCase();
  return named === host || named === hostname;
}
