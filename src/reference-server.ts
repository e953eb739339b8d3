import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { Allocator } from './allocator/allocator.ts';
import { builtInTopology } from './allocator/built-in-topology.ts';
import { createNetwork } from './allocator/network.ts';
import { type IdKind, newId } from './contract/ids.ts';
import type { Topology } from './contract/links.ts';
import { ROLES, type Role } from './contract/roles.ts';
import { EXPERIMENTS_API_GROUP, PROJECTS_API_GROUP } from './contract/routes.ts';
import { administratorsNamed } from './server/connectivity/administration.ts';
import { createConnectivity } from './server/connectivity/connectivity.ts';
import { createDocs, type DocsFile } from './server/docs/docs.ts';
import { createHealth } from './server/health.ts';
import { createIdentity } from './server/identity/identity.ts';
import type { IdentityProvider } from './server/identity/identity-provider.ts';
import { type Person, userClaims } from './server/identity/user-token.ts';
import { addressesBelow, createIssuers, keptKey, trustIn } from './server/issuers.ts';
import { createListener } from './server/listener.ts';
import { type Log, noLog } from './server/log.ts';
import type { ServerMetrics } from './server/metrics/server-metrics.ts';
import { builtInDirectory } from './server/portal/built-in.ts';
import { createPortal } from './server/portal/portal.ts';
import { routeMounter } from './server/routing.ts';
import { createServices } from './server/services.ts';
import { openStores } from './store/open.ts';

/** What a reference server is made of. */
export interface ReferenceServerOptions {
  /** `{base_url}`; the portal is at `/portal` below it. Default `http://offline.localhost`. */
  baseUrl?: string;
  /**
   * A SQLite file, whose folder must be there; `:memory:` (the default); or `postgres://user@host/database`, which any
   * number of servers with one `baseUrl` share. It needs PostgreSQL 13 or newer, with the extension btree_gist.
   */
  database?: string;
  /** Parsed JSON of a topology file. Default: the built-in one, on the twelve sites. */
  topology?: Topology;
  /** `{projects_api_group}` and `{experiments_api_group}`. Defaults `projects` and `experiments`. */
  projectsApiGroup?: string;
  experimentsApiGroup?: string;
  /** Lifetime of a user token in seconds. Default 3600. */
  accessTokenTtl?: number;
  /** Approves every device code at once as this built-in user: for scripts that test against it. Loopback only. */
  autoApprove?: Role;
  /**
   * Users who may read any reservation, and release it with a reason: ids as in the user token's `sub`, each followed
   * by `@` and its issuer's address where that is not this server's own identity provider. Default: nobody.
   */
  administrators?: readonly string[];
  /** Milliseconds since the Unix epoch. Default: the machine's clock. */
  now?: () => number;
  /** That many random bytes, for ids. Default: the platform's. */
  random?: (bytes: number) => Uint8Array;
  /** Structured records of what happens; never a secret. Default: none are kept. */
  log?: Log;
  /** Counts what happens; see `createServerMetrics`. Default: nothing is counted. */
  metrics?: ServerMetrics;
}

/** A reference server in this process. */
export interface ReferenceServer {
  /** `{base_url}`, `{portal_url}` and `{auth_url}`, without trailing slashes. */
  readonly addresses: { connectivity: string; portal: string; identity: string };
  /** Portal, connectivity service and documentation: a request in, a response out, no socket. */
  fetch(request: Request): Promise<Response>;
  /** The same over a socket of `node:http`, with the identity provider at `/auth`. */
  readonly listener: RequestListener;
  /**
   * A user token for one of the built-in users, without a login: for a client in the same process.
   */
  signIn(user: Role): Promise<string>;
  /** Makes `GET /readyz` 503 from now on, so that a load balancer sends its requests elsewhere. Everything still works. */
  drain(): void;
  /** Finishes what is under way and closes the database. */
  close(): Promise<void>;
}

/**
 * The other side of the command line, as a function of a Request: portal and connectivity service with an allocator
 * over SQLite or PostgreSQL (SPEC.md, "Endpoints"; DESIGN.md, "The reference server").
 *
 * @example
 * const server = await createReferenceServer();
 * const token = await server.signIn('lead');
 * const url = `${server.addresses.portal}/apis/projects/v1alpha1/projects/`;
 * await server.fetch(new Request(url, { headers: { authorization: `Bearer ${token}` } }));
 *
 * @throws TopologyError when the topology breaks a rule
 * @throws RangeError when an administrator is named in neither form
 * @throws DatabaseFormatError, StoreUnavailableError when the database can't be used
 */
export async function createReferenceServer(options: ReferenceServerOptions = {}): Promise<ReferenceServer> {
  const {
    baseUrl = 'http://offline.localhost',
    now = Date.now,
    random = (bytes) => randomBytes(bytes),
    log = noLog,
    metrics,
    accessTokenTtl,
  } = options;
  const addresses = addressesBelow(baseUrl);
  const network = createNetwork(options.topology ?? builtInTopology());
  const makeId = (kind: IdKind): string => newId(kind, new URL(baseUrl).hostname, now(), random(10));
  const groups = {
    projects: options.projectsApiGroup ?? PROJECTS_API_GROUP,
    experiments: options.experimentsApiGroup ?? EXPERIMENTS_API_GROUP,
  };

  const stores = await openStores(options.database ?? ':memory:');
  const { reservations, directory, keys } = stores;
  const issuers = await createIssuers(addresses, keys, now);
  await directory.settle(builtInDirectory(now(), makeId));

  const trust = trustIn(issuers, addresses.connectivity, now);
  metrics?.serve({ prefix: new URL(addresses.connectivity).pathname.replace(/\/$/, ''), groups });
  const mount = routeMounter(groups);
  const allocator = new Allocator({ network, store: reservations, now, newId: () => makeId('reservation') });
  const health = createHealth({ mount, ping: () => stores.ping() });
  const answer = createServices({
    baseUrl: addresses.connectivity,
    groups,
    connectivity: createConnectivity({
      network,
      allocator,
      reservations,
      issuer: issuers.connectivity,
      trust,
      mount,
      isAdministrator: administratorsNamed(options.administrators ?? [], addresses.identity),
      log,
      now,
      observe: metrics?.booking,
    }),
    portal: createPortal({ directory, issuer: issuers.portal, trust, mount, now, newId: makeId }),
    identity: createIdentity(issuers.identity),
    docs: createDocs({
      groups,
      prefix: new URL(addresses.connectivity).pathname.replace(/\/$/, ''),
      readFile: readDocsFile,
    }),
    health: health.routes,
    log,
    metrics,
    now,
  });

  const builtInUser = async (user: Role): Promise<Person> => {
    const person = await directory.personNamed(user);
    if (!person) throw new RangeError(`there is no user ${user}`);
    return person;
  };
  const openIdentity = async (): Promise<IdentityProvider> => {
    const { createIdentityProvider } = await import('./server/identity/identity-provider.ts');
    return createIdentityProvider({
      issuer: addresses.identity,
      audience: addresses.connectivity,
      key: await keptKey('identity', keys),
      records: stores.identityRecords,
      people: async () => (await directory.people()).toSorted((one, other) => rank(one) - rank(other)),
      person: (id) => directory.person(id),
      now,
      log,
      ...(accessTokenTtl === undefined ? {} : { accessTokenTtl }),
      ...(options.autoApprove === undefined ? {} : { autoApprove: await builtInUser(options.autoApprove) }),
    });
  };
  let identity: Promise<IdentityProvider> | undefined;

  return {
    addresses,
    fetch: answer,
    listener: createListener({
      baseUrl: addresses.connectivity,
      fetch: answer,
      now,
      // A failure is not kept: the database may be back for the next request.
      identity: () =>
        (identity ??= openIdentity().catch((error: unknown) => {
          identity = undefined;
          throw error;
        })),
      log,
      metrics,
    }),
    async signIn(user) {
      const person = await builtInUser(user);
      const claims = userClaims(person, {
        audience: addresses.connectivity,
        login: now(),
        ...(accessTokenTtl === undefined ? {} : { ttl: accessTokenTtl }),
      });
      return issuers.identity.issue(claims);
    },
    drain: () => health.drain(),
    close: () => stores.close(),
  };
}

/** Strongest role first; the built-in users are named after their roles. */
function rank({ name }: Person): number {
  return ([...ROLES] as string[]).indexOf(name);
}

/** The build puts the interactive page's files beside the bundle. */
async function readDocsFile(name: DocsFile): Promise<Uint8Array> {
  return readFile(new URL(`./api-docs/${name}`, import.meta.url));
}
