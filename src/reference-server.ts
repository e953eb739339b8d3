import { randomBytes } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { Allocator } from './allocator/allocator.ts';
import { builtInTopology, createNetwork } from './allocator/network.ts';
import { type IdKind, newId, randomPool } from './contract/ids.ts';
import type { Topology } from './contract/links.ts';
import type { Role } from './contract/roles.ts';
import { EXPERIMENTS_API_GROUP, PROJECTS_API_GROUP } from './contract/routes.ts';
import { readInstalled } from './installed-files.ts';
import { forwardedAddress } from './server/client-address.ts';
import { createConnectivity } from './server/connectivity/connectivity.ts';
import { administratorsNamed } from './server/credentials.ts';
import { createDocs } from './server/docs/docs.ts';
import { createHealth } from './server/health.ts';
import type { IdentityProvider } from './server/identity/identity-provider.ts';
import { loadIdentityProvider } from './server/identity/load.ts';
import { createSessions, createUserSessions } from './server/identity/sessions.ts';
import { latestExpiry, type Person, userClaims } from './server/identity/user-token.ts';
import { addressesBelow, createIssuers } from './server/keys/service-issuer.ts';
import { createListener } from './server/listener.ts';
import { type Log, noLog, withoutRepeats } from './server/log.ts';
import type { ServerMetrics } from './server/metrics/server-metrics.ts';
import {
  builtInDirectory,
  checkDirectory,
  type DirectoryFile,
  directoryOf,
  type UserRoles,
  usersOf,
} from './server/portal/directory.ts';
import { createPortal } from './server/portal/portal.ts';
import { routeMounter } from './server/routing.ts';
import { createIdentity, createServices, externalService } from './server/services.ts';
import {
  type ForeignIssuers,
  foreignAddresses,
  foreignTrust,
  ownershipAmong,
  ownTrust,
  soleIssuer,
} from './server/trust.ts';
import { createPageAccess, pageCallback, pageProviderElsewhere } from './server/ui/access.ts';
import { createServicePages } from './server/ui/service-pages.ts';
import { createUi } from './server/ui/ui.ts';
import { openStores, type Stores } from './store/stores.ts';
import type { PrivateJwk } from './tokens/signing-key.ts';
import { verifyUserToken } from './tokens/verify.ts';

/** Options of {@link createReferenceServer}. */
export interface ReferenceServerOptions {
  /** The operator's name for the server, which its pages show. Default: the pages show the address alone. */
  name?: string;
  /** `{base_url}`; the portal is at `/portal` below it. Default `http://offline.localhost`. */
  baseUrl?: string;
  /**
   * A SQLite file, whose folder must be there; `:memory:` (the default); or `postgres://user@host/database`, which any
   * number of servers with one `baseUrl` share. It needs PostgreSQL 13 or newer, with the extension btree_gist. The
   * connection to another machine uses TLS, unless the address has `?sslmode=disable`.
   */
  database?: string;
  /** Parsed JSON of a topology file. Default: the built-in one, on the twelve sites. */
  topology?: Topology;
  /**
   * Users, projects, experiments and roles in place of the built-in ones: parsed JSON of a directory file. Existing
   * records of the same name keep their ids. Users and projects that it does not name can't be used.
   */
  directory?: DirectoryFile;
  /** `{projects_api_group}` and `{experiments_api_group}`. Defaults `projects` and `experiments`. */
  projectsApiGroup?: string;
  experimentsApiGroup?: string;
  /** Lifetime of a user token in seconds. Default 3600. */
  accessTokenTtl?: number;
  /**
   * The age at which a signing key is followed by a new one, in milliseconds. Default: never, so that saved key sets
   * verify later tokens too.
   */
  rotateKeysEvery?: number;
  /**
   * Approves every device code at once as this user, a {@link Role} where the users are the built-in ones: for scripts
   * that test against it. Loopback only.
   */
  autoApprove?: string;
  /**
   * Accepts the tokens of these issuers. The server then has no users, no portal and no identity provider of its own.
   * Default: the built-in users, who log in without a password.
   */
  trust?: ForeignIssuers;
  /**
   * The page on the network at the base address: `false` turns it off. `clientId` is the page's own, public client at the
   * identity provider of `trust`; without it nobody can log in to the page there. Default: the page is on.
   */
  ui?: false | { clientId?: string | undefined } | undefined;
  /** A proxy is in front: the last hop of `X-Forwarded-For` is the client's address. Default: the header is ignored. */
  behindProxy?: boolean;
  /**
   * Users who may read any reservation, and release it with a reason: ids as in the user token's `sub`, each followed
   * by `@` and its issuer's address where that is neither this server's own identity provider nor the only trusted one.
   * Default: no user may.
   */
  administrators?: readonly string[];
  /**
   * How much of a link one project, or an experiment without one, may hold at any instant, in percent: 1 to 100, default
   * 100. See `Shares`.
   */
  maxShare?: number;
  /**
   * How many reservations that have not ended one project, or an experiment without one, may have, on all links: 1 or more.
   * Default: no limit.
   */
  maxLive?: number;
  /**
   * How many creates and updates of one user, and of one experiment, are decided at once, and in each hour after that:
   * 1 or more. Each replica counts by itself. Default: no limit.
   */
  maxChanges?: number;
  /** Milliseconds since the Unix epoch. Default: the machine's clock. */
  now?: () => number;
  /** Returns that many random bytes, for ids. Default: the platform's. */
  random?: (bytes: number) => Uint8Array;
  /** Structured records of what happens; never a secret. Default: none are kept. */
  log?: Log;
  /** Counts what happens; see `createServerMetrics`. Default: nothing is counted. */
  metrics?: ServerMetrics;
}

/** A reference server in this process. */
export interface ReferenceServer {
  /** `{base_url}`, `{portal_url}` and `{auth_url}`; the latter two are another server's where that is trusted. */
  readonly addresses: { connectivity: string; portal: string; identity: string };
  /** Everyone who can log in, with their roles; empty where other issuers are trusted. */
  readonly users: readonly UserRoles[];
  /** Portal, connectivity service and documentation: a request in, a response out, no socket. */
  fetch(request: Request): Promise<Response>;
  /** The same over a socket of `node:http`, with the identity provider at `/auth`. */
  readonly listener: RequestListener;
  /**
   * A user token for one of the users, without a login: for a client in the same process.
   *
   * @param user a name: a {@link Role}, or with `directory` one of its users
   * @throws RangeError for another name, and where other issuers are trusted, since there are no users then
   */
  signIn(user: string): Promise<string>;
  /** Makes `GET /readyz` 503 from now on, so that a load balancer sends its requests elsewhere. Everything still works. */
  drain(): void;
  /**
   * Deletes the rows of the audit and of deleted reservations from before an instant.
   *
   * @param before milliseconds since the Unix epoch, more than a day ago
   * @returns how many rows of each were deleted
   * @throws StoreUnavailableError when the database is away
   */
  forget(before: number): Promise<{ audit: number; deleted: number }>;
  /** Finishes what is under way and closes the database. */
  close(): Promise<void>;
}

/**
 * The server that the command line talks to, as a function of a Request: portal and connectivity service with an
 * allocator over SQLite or PostgreSQL (contract/README.md, "Endpoints"; contract/README.md, "The reference server").
 *
 * @example
 * const server = await createReferenceServer();
 * const token = await server.signIn('lead');
 * const url = `${server.addresses.portal}/apis/projects/v1alpha1/projects/`;
 * await server.fetch(new Request(url, { headers: { authorization: `Bearer ${token}` } }));
 *
 * @throws RangeError for an option that is out of its bounds, TopologyError for a topology that breaks a rule,
 *   DirectoryError for such a directory
 * @throws DatabaseFormatError, StoreUnavailableError, Failure when the database can't be used
 */
export async function createReferenceServer(given: ReferenceServerOptions = {}): Promise<ReferenceServer> {
  const options = { ...given, log: given.log && withoutRepeats(given.log) };
  let opened: Stores | undefined;
  const open = async (database: string): Promise<Stores> => {
    opened = await openStores(database, options.log);
    return opened;
  };
  return assemble(options, open).catch(async (error: unknown) => {
    // A server that does not start leaves nothing open (THREATS.md 65).
    await opened?.close();
    throw error;
  });
}

/** @param open opens the stores, after all options were checked */
async function assemble(
  options: ReferenceServerOptions,
  open: (database: string) => Promise<Stores>,
): Promise<ReferenceServer> {
  const { baseUrl = 'http://offline.localhost', now = Date.now, random = randomPool(randomBytes) } = options;
  const { log = noLog, metrics, accessTokenTtl } = options;
  const own = addressesBelow(baseUrl);
  const pageClientId = options.ui === false ? undefined : options.ui?.clientId;
  const foreign =
    options.trust &&
    foreignTrust(options.trust, {
      now,
      log,
      ...(pageClientId === undefined ? {} : { clients: [pageClientId] }),
      ...(metrics ? { keySetFailed: metrics.keySetFailed } : {}),
    });
  if (pageClientId !== undefined && !foreign) {
    throw new RangeError('ui.clientId is a client of an identity provider of trust, and there is none');
  }
  if (foreign && options.autoApprove !== undefined) {
    throw new RangeError('autoApprove lets a built-in user in, and trust has none');
  }
  const addresses = options.trust ? { ...own, ...foreignAddresses(options.trust) } : own;
  const network = createNetwork(options.topology ?? builtInTopology());
  const { hostname } = new URL(baseUrl);
  const site = { name: options.name, baseUrl: addresses.connectivity };
  const makeId = (kind: IdKind): string => newId(kind, hostname, now(), random(10));
  const groups = {
    projects: options.projectsApiGroup ?? PROJECTS_API_GROUP,
    experiments: options.experimentsApiGroup ?? EXPERIMENTS_API_GROUP,
  };

  const isAdministrator = administratorsNamed(
    options.administrators ?? [],
    options.trust ? soleIssuer(options.trust) : own.identity,
  );

  const initial = foreign
    ? undefined
    : options.directory
      ? directoryOf(checkDirectory(options.directory), now(), makeId)
      : builtInDirectory(now(), makeId);

  const stores = await open(options.database ?? ':memory:');
  const { reservations, directory, keys } = stores;
  const issuers = await createIssuers(own, {
    store: keys,
    now,
    history: stores.history,
    log,
    rotateEvery: options.rotateKeysEvery,
  });
  if (initial) await directory.settle(initial);

  const sessions = createSessions(stores.identityRecords, now);
  const trust =
    foreign && options.trust
      ? { ...foreign, ownership: ownershipAmong(options.trust, stores.owners, stores.history) }
      : { ...ownTrust(issuers, addresses.connectivity, now), isLive: sessions.isLive };
  metrics?.serve({ prefix: new URL(addresses.connectivity).pathname.replace(/\/$/, ''), groups });
  const mount = routeMounter(groups);
  const allocator = new Allocator({
    network,
    store: reservations,
    now,
    newId: () => makeId('reservation'),
    observe: metrics?.allocator,
    maxShare: options.maxShare,
    maxLive: options.maxLive,
  });
  if (options.maxLive !== undefined) await reservations.prepareCounts();
  const health = createHealth({ mount, ping: () => stores.ping(), log });
  /** How people log in to the page; undefined where nobody can. */
  const pageAccess = (within: (request: Request) => Promise<Response>) =>
    createPageAccess({
      site,
      addresses,
      groups,
      within,
      trust,
      store: stores.pageSessions,
      provider: options.trust
        ? pageProviderElsewhere(options.trust, addresses.identity, pageClientId)
        : { fetch: async (request) => (await identity()).fetch(request) },
      now,
      log,
    });
  const answer = createServices({
    site,
    groups,
    connectivity: createConnectivity({
      network,
      allocator,
      reservations,
      issuer: issuers.connectivity,
      trust,
      mount,
      isAdministrator,
      maxChanges: options.maxChanges,
      log,
      now,
      observe: metrics?.booking,
    }),
    portal: foreign
      ? externalService('portal', addresses.portal)
      : createPortal({
          directory,
          sessions: createUserSessions(sessions.records, now, accessTokenTtl),
          issuer: issuers.portal,
          trust,
          mount,
          now,
          newId: makeId,
        }),
    identity: foreign
      ? externalService('identity provider', addresses.identity)
      : createIdentity(issuers.identity),
    docs: createDocs({
      groups,
      portalElsewhere: foreign !== undefined,
      prefix: new URL(addresses.connectivity).pathname.replace(/\/$/, ''),
      site,
      readFile: (name) => readInstalled('api-docs', name),
      now,
    }),
    health: health.routes,
    pages: createServicePages({ site, addresses, elsewhere: foreign !== undefined }),
    ui:
      options.ui === false
        ? undefined
        : (within) =>
            createUi({
              site,
              addresses,
              elsewhere: foreign !== undefined,
              network,
              readFile: (name) => readInstalled('ui', name),
              access: pageAccess(within),
            }),
    log,
    metrics,
  });

  // The database may hold users from an earlier start with another directory, or without `trust`.
  const known = initial ? await directory.people() : [];
  const ids = (initial?.people ?? []).flatMap(
    ({ name }) => known.find((person) => person.name === name)?.id ?? [],
  );
  const users = async (): Promise<Person[]> => {
    const people = await directory.people();
    return ids.flatMap((id) => people.find((person) => person.id === id) ?? []);
  };
  const userNamed = async (name: string): Promise<Person> => {
    const person = (await users()).find((user) => user.name === name);
    if (!person) throw new RangeError(`there is no user ${name}`);
    return person;
  };
  const openIdentity = async (key: PrivateJwk): Promise<IdentityProvider> => {
    const { createIdentityProvider } = await loadIdentityProvider();
    return createIdentityProvider({
      issuer: addresses.identity,
      audience: addresses.connectivity,
      key,
      records: sessions.records,
      verify: (token) => verifyUserToken(token, trust.user),
      people: users,
      person: async (id) => (ids.includes(id) ? directory.person(id) : undefined),
      experimentsOf: (id) => directory.experimentsOf(id),
      ...(options.ui === false ? {} : { pageCallback: pageCallback(addresses.connectivity) }),
      site,
      now,
      log,
      accessTokenTtl,
      ...(options.autoApprove === undefined ? {} : { autoApprove: await userNamed(options.autoApprove) }),
    });
  };
  let opened: { name: string; provider: Promise<IdentityProvider> } | undefined;
  /**
   * The provider's library takes its key when it is created, so another signing key needs another provider. So does another
   * history of the database, which may lack the secrets and the key of the same kid.
   */
  const identity = async (): Promise<IdentityProvider> => {
    const { jwk } = await issuers.identity.signingKey(latestExpiry(now(), accessTokenTtl));
    const name = `${jwk.kid} ${stores.history()}`;
    if (opened?.name !== name) opened = { name, provider: openIdentity(jwk) };
    const current = opened;
    return current.provider.catch((error: unknown) => {
      // A failure is not kept: the database may be back for the next request.
      if (opened === current) opened = undefined;
      throw error;
    });
  };

  return {
    addresses,
    users: initial ? usersOf(initial) : [],
    fetch: answer,
    listener: createListener({
      site,
      fetch: answer,
      ...(options.behindProxy ? { clientAddress: forwardedAddress } : {}),
      ...(foreign ? {} : { identity }),
      log,
      metrics,
    }),
    async signIn(user) {
      const person = await userNamed(user);
      const claims = userClaims(person, {
        audience: addresses.connectivity,
        login: now(),
        ttl: accessTokenTtl,
      });
      return issuers.identity.issue(claims);
    },
    drain: () => health.drain(),
    forget: (before) => reservations.forget(before),
    close: () => stores.close(),
  };
}
