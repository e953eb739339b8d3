import { randomBytes } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { Allocator } from './allocator/allocator.ts';
import { builtInTopology, createNetwork } from './allocator/network.ts';
import { type IdKind, newId } from './contract/fields.ts';
import { linkId, type Topology } from './contract/links.ts';
import type { Role } from './contract/roles.ts';
import { EXPERIMENTS_API_GROUP, PROJECTS_API_GROUP } from './contract/routes.ts';
import { readInstalled } from './files/installed.ts';
import { forwardedAddress } from './server/client-address.ts';
import { createConnectivity } from './server/connectivity/connectivity.ts';
import { createEventStreams } from './server/connectivity/events.ts';
import { administratorsNamed, type ServiceTrust } from './server/credentials.ts';
import { createDocs } from './server/docs/docs.ts';
import { createHealth } from './server/health.ts';
import type { IdentityProvider } from './server/identity/identity-provider.ts';
import { loadIdentityProvider } from './server/identity/load.ts';
import { createSessions, createUserSessions } from './server/identity/sessions.ts';
import { createTokenExchange } from './server/identity/token-exchange.ts';
import { latestExpiry, userClaims } from './server/identity/user-token.ts';
import { addressesBelow, createIssuers, type ServiceAddresses } from './server/keys/service-issuer.ts';
import { createListener } from './server/listener.ts';
import { type Log, noLog, withoutRepeats } from './server/log.ts';
import type { ServerMetrics } from './server/metrics/server-metrics.ts';
import { keptPromises } from './server/once-in.ts';
import { createOwnership } from './server/ownership.ts';
import {
  builtInDirectory,
  checkDirectory,
  type DirectoryFile,
  directoryOf,
  type InitialDirectory,
  type UserRoles,
  usersOf,
} from './server/portal/directory.ts';
import { createPortal } from './server/portal/portal.ts';
import { usersIn } from './server/portal/users.ts';
import { protectedResource } from './server/protected-resource.ts';
import { routeMounter } from './server/routing.ts';
import { createIdentity, createServices, externalService, type ServicesOptions } from './server/services.ts';
import {
  type CiOptions,
  ciTrust,
  type ForeignIssuers,
  foreignAddresses,
  foreignTrust,
  ownTrust,
  soleIssuer,
  trustedIssuers,
} from './server/trust.ts';
import { createPageAccess, pageCallback } from './server/ui/access.ts';
import { pathOf } from './server/ui/page.ts';
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
  /** The part of the portal's paths that names experiments. */
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
   * The CI services whose jobs can exchange their ID tokens for user tokens, by rules that the leads of an experiment add:
   * `{ issuers: { github: 'https://token.actions.githubusercontent.com' } }`. Default: none. Not with `trust`.
   */
  ci?: CiOptions;
  /**
   * The page on the network at the base address: `false` turns it off. `clientId` is the page's own, public client at the
   * identity provider of `trust`; without it no user can log in to the page there. Default: the page is on.
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
  readonly addresses: ServiceAddresses;
  /** Everyone who can log in, with their roles; empty where other issuers are trusted. */
  readonly users: readonly UserRoles[];
  /** How many reservations had not ended at the start and are on links that the topology lacks: they can only be deleted. */
  readonly stranded: number;
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
  /** Makes `GET /readyz` 503 from now on, so that a load balancer sends its requests elsewhere, and ends all streams of events. Everything else still works. */
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
  const setup = setUp({ ...given, log: given.log && withoutRepeats(given.log) });
  const stores = await openStores(given.database ?? ':memory:', setup.log);
  try {
    return await start(setup, stores);
  } catch (error) {
    // A server that does not start leaves nothing open (THREATS.md 65).
    await stores.close();
    throw error;
  }
}

/** The parts of a server that need no database: the options, checked. */
function setUp(options: ReferenceServerOptions) {
  const { baseUrl = 'http://offline.localhost', now = Date.now, random = randomBytes, log = noLog } = options;
  const { trust, ui, autoApprove, directory, metrics, ci } = options;
  const clientId = ui === false ? undefined : ui?.clientId;
  if (trust && autoApprove !== undefined) {
    throw new RangeError('autoApprove lets a built-in user in, and trust has none');
  }
  if (trust && ci) throw new RangeError('ci is for an identity provider of its own, and trust names another');
  if (!trust && clientId !== undefined) {
    throw new RangeError('ui.clientId is a client of an identity provider of trust, and there is none');
  }
  const own = addressesBelow(baseUrl);
  const addresses: ServiceAddresses = trust ? { ...own, ...foreignAddresses(trust) } : own;
  const { hostname } = new URL(baseUrl);
  const makeId = (kind: IdKind): string => newId(kind, hostname, now(), random(10));
  const context = { now, log, keySetFailed: metrics?.keySetFailed };
  const ownRecords = (): InitialDirectory =>
    directory ? directoryOf(checkDirectory(directory), now(), makeId) : builtInDirectory(now(), makeId);
  return {
    options,
    now,
    log,
    own,
    addresses,
    site: { name: options.name, baseUrl: own.connectivity },
    groups: {
      projects: options.projectsApiGroup ?? PROJECTS_API_GROUP,
      experiments: options.experimentsApiGroup ?? EXPERIMENTS_API_GROUP,
    },
    makeId,
    /** The page's client at the identity provider of `trust`. */
    clientId,
    context,
    /** Whether other issuers are trusted. Else the server has users, a portal and an identity provider of its own. */
    usesForeignIssuers: trust !== undefined,
    /** Trust in them, if any. */
    trustInForeign:
      trust && foreignTrust(trust, { ...context, clients: clientId === undefined ? [] : [clientId] }),
    network: createNetwork(options.topology ?? builtInTopology()),
    isAdministrator: administratorsNamed(
      options.administrators ?? [],
      trust ? soleIssuer(trust) : own.identity,
    ),
    /** The records that it starts with; undefined where other issuers are trusted. */
    initial: trust ? undefined : ownRecords(),
  };
}

/** All parts of a server that its services share, with the database open. */
type Parts = Awaited<ReturnType<typeof openParts>>;

async function openParts(setup: ReturnType<typeof setUp>, stores: Stores) {
  const { options, now, log, own, addresses, groups, network, trustInForeign, initial, makeId } = setup;
  const { metrics, maxShare, maxLive } = options;
  const { reservations, history } = stores;
  const rotateEvery = options.rotateKeysEvery;
  const issuers = await createIssuers(own, { store: stores.keys, now, history, log, rotateEvery });
  if (initial) await stores.directory.settle(initial);
  if (maxLive !== undefined) await reservations.prepareCounts();
  const sessions = createSessions(stores.identityRecords, stores.ciRules, now);
  const trust: ServiceTrust =
    trustInForeign && options.trust
      ? {
          ...trustInForeign,
          ownership: createOwnership(stores.owners, trustedIssuers(options.trust), history),
        }
      : {
          ...ownTrust(issuers, addresses.connectivity, now),
          isLive: sessions.isLive,
          leadsOf: stores.directory.leads,
        };
  const links = network.links.map(({ site1, site2 }) => linkId(site1, site2));
  const allocator = new Allocator({
    network,
    store: reservations,
    now,
    newId: () => makeId('reservation'),
    observe: metrics?.allocator,
    maxShare,
    maxLive,
  });
  return {
    ...setup,
    stores,
    issuers,
    sessions,
    trust,
    users: await usersIn(stores.directory, initial),
    stranded: await reservations.countBeside(links, now()),
    allocator,
    events: createEventStreams({ reservations, links, trust, now, log }),
    mount: routeMounter(groups),
  };
}

async function start(setup: ReturnType<typeof setUp>, stores: Stores): Promise<ReferenceServer> {
  const parts = await openParts(setup, stores);
  const { options, now, log, addresses, groups, site, users, allocator, events, stranded, initial } = parts;
  const { metrics } = options;
  metrics?.serve({ prefix: pathOf(site), groups });
  const identity = keptIdentity(parts);
  const health = createHealth({ mount: parts.mount, ping: () => stores.ping(), log });
  const answer = createServices({ ...servicesOf(parts, identity), health: health.routes });
  return {
    addresses,
    users: initial ? usersOf(initial) : [],
    stranded,
    fetch: answer,
    listener: createListener({
      site,
      fetch: answer,
      clientAddress: options.behindProxy ? forwardedAddress : undefined,
      identity: parts.usesForeignIssuers ? undefined : identity,
      log,
      metrics,
    }),
    async signIn(user) {
      const terms = { audience: addresses.connectivity, login: now(), ttl: options.accessTokenTtl };
      return parts.issuers.identity.issue(userClaims(await users.named(user), terms));
    },
    drain() {
      health.drain();
      events.close();
      void allocator.stop();
    },
    forget: (before) => stores.reservations.forget(before),
    async close() {
      events.close();
      await allocator.stop();
      await stores.close();
    },
  };
}

function servicesOf(
  parts: Parts,
  identity: () => Promise<IdentityProvider>,
): Omit<ServicesOptions, 'health'> {
  const { options, now, log, addresses, site, usesForeignIssuers, stores, issuers, sessions } = parts;
  const { metrics, accessTokenTtl, maxChanges, ui } = options;
  const { directory, reservations } = stores;
  const shared = { ...parts, directory, reservations };
  return {
    site,
    groups: parts.groups,
    connectivity: createConnectivity({
      ...shared,
      issuer: issuers.connectivity,
      resource: protectedResource(addresses, parts.groups, usesForeignIssuers),
      maxChanges,
      observe: metrics?.booking,
    }),
    portal: usesForeignIssuers
      ? externalService('portal', addresses.portal)
      : createPortal({
          ...shared,
          sessions: createUserSessions(sessions.records, now, accessTokenTtl),
          rules: stores.ciRules,
          ciIssuers: options.ci?.issuers ?? {},
          ruleRemoved: sessions.forget,
          issuer: issuers.portal,
          newId: parts.makeId,
        }),
    identity: usesForeignIssuers
      ? externalService('identity provider', addresses.identity)
      : createIdentity(issuers.identity),
    docs: createDocs({
      ...shared,
      sites: parts.network.sites,
      readFile: (name) => readInstalled('api-docs', name),
    }),
    pages: createServicePages(shared),
    ui:
      ui === false
        ? undefined
        : (within) =>
            createUi({
              ...shared,
              readFile: (name) => readInstalled('ui', name),
              access: createPageAccess({
                ...shared,
                within,
                store: stores.pageSessions,
                foreign: options.trust && { issuers: options.trust, clientId: parts.clientId },
                askProvider: async (request) => (await identity()).fetch(request),
              }),
            }),
    log,
    metrics,
  };
}

/**
 * The identity provider with the key that signs now, made when it is needed. Its library takes its key when it is created, so
 * another signing key needs another provider. So does another history of the database, which may lack the secrets and the key of
 * the same kid.
 */
function keptIdentity(parts: Parts): () => Promise<IdentityProvider> {
  const { options, now, addresses, stores, issuers, sessions, trust, users } = parts;
  const { accessTokenTtl, autoApprove, ci } = options;
  const shared = { ...parts, records: sessions.records, audience: addresses.connectivity };
  // The issuers' keys are kept when the provider is made anew.
  const exchange =
    ci &&
    createTokenExchange({
      ...shared,
      issuers: ci.issuers,
      trust: ciTrust(ci, addresses.identity, parts.context),
      rules: stores.ciRules,
      issue: issuers.identity.issue,
    });
  const open = async (key: PrivateJwk): Promise<IdentityProvider> => {
    const { createIdentityProvider } = await loadIdentityProvider();
    return createIdentityProvider({
      ...shared,
      issuer: addresses.identity,
      key,
      verify: (token) => verifyUserToken(token, trust.user),
      exchange,
      pageCallback: options.ui === false ? undefined : pageCallback(addresses.connectivity),
      accessTokenTtl,
      autoApprove: autoApprove === undefined ? undefined : await users.named(autoApprove),
    });
  };
  const kept = keptPromises<IdentityProvider>(1);
  return async () => {
    const { jwk } = await issuers.identity.signingKey(latestExpiry(now(), accessTokenTtl));
    const name = `${jwk.kid} ${stores.history()}`;
    return kept.get(name) ?? kept.keep(name, open(jwk));
  };
}
