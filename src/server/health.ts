import { Hono } from 'hono';
import { withinTime } from '../contract/bounded.ts';
import { ROUTES } from '../contract/routes.ts';
import { jsonReply } from './json-reply.ts';
import type { Log } from './log.ts';
import { refusal } from './problem-error.ts';
import type { RouteMounter } from './routing.ts';

/** How long the database may take to answer before this server counts as not ready, in milliseconds. */
const READY_TIMEOUT = 2000;

/** Options of the checks of health and readiness. */
export interface HealthOptions {
  mount: RouteMounter;
  /** Checks that the database answers and takes changes. @throws StoreUnavailableError */
  ping: () => Promise<void>;
  log: Log;
  /** Default 2 s. Milliseconds. */
  timeout?: number;
}

/**
 * `GET /healthz`: the process answers, even without its database, so that a supervisor does not restart it for a database
 * that is away. `GET /readyz`: 503 while the database does not answer or takes no changes, as on a full disk, and from
 * `drain` on.
 *
 * At most one query runs at a time, however many requests come: these addresses are open to everyone.
 */
export function createHealth({ mount, ping, log, timeout = READY_TIMEOUT }: HealthOptions) {
  const routes = new Hono({ strict: false });
  let stopping = false;
  let underWay: Promise<boolean> | undefined;

  function databaseAnswers(): Promise<boolean> {
    underWay ??= ping()
      .then(
        () => true,
        (error: unknown) => {
          log('error', 'not_ready', { why: String((error instanceof Error && error.cause) || error) });
          return false;
        },
      )
      .finally(() => {
        underWay = undefined;
      });
    const answer = underWay;
    return withinTime(timeout, () => answer).catch(() => false);
  }

  mount(routes, 'health', async () => well());
  mount(routes, 'readiness', async () => {
    const answers = stopping || (await databaseAnswers());
    // `drain` may have been called during the query.
    if (stopping) throw refusal('unavailable', 'This server is about to stop. Ask another one.');
    if (!answers) throw refusal('unavailable', 'The database does not answer, or takes no changes.');
    return well();
  });
  return {
    routes,
    /** Makes this server not ready from now on, because it is about to stop. */
    drain() {
      stopping = true;
    },
  };
}

/**
 * Whether a path below the base address is a health check's: answered under any Host, since load balancers ask by the
 * machine's own address, and logged only when it fails.
 */
export function isHealthPath(path: string): boolean {
  const [plain = ''] = path.split('?');
  return HEALTH_PATHS.has(plain);
}

const HEALTH_PATHS: ReadonlySet<string> = new Set(
  [ROUTES.health.path, ROUTES.readiness.path].flatMap((path) => [path, `${path}/`]),
);

function well(): Response {
  return jsonReply({ status: 'ok' }, { headers: { 'cache-control': 'no-store' } });
}
