import type { AllocatorObserver } from '../../allocator/allocator.ts';
import { CommitUnknownError, type StoreUnavailableError } from '../../allocator/store.ts';
import { RESERVATION_RESULTS, type ReservationObserver } from '../connectivity/outcomes.ts';
import { READ_ONLY } from '../docs/files.ts';
import { isLoginPage, isProviderPath } from '../identity/attempt-limits.ts';
import { type ApiGroups, templateAt } from '../routing.ts';
import { Counter, expositionText, type Family, Histogram } from './instruments.ts';

/** A server's metrics. No label holds a token, a person, an experiment or a requested path. */
export type ServerMetrics = ReturnType<typeof createServerMetrics>;

/** Options of {@link createServerMetrics}. */
export interface ServerMetricsOptions {
  /** Milliseconds since any instant, never set back. Default: the process's. */
  elapsed?: () => number;
  /** More metrics, read for each text. Default: none. */
  more?: () => readonly Family[];
}

/** Upper bounds in seconds, from a check that needs no disk to one that waits for a database. */
const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Upper bounds of how many requests one transaction decides. */
const SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/** Makes a server's metrics, which count from now on. */
export function createServerMetrics(options: ServerMetricsOptions = {}) {
  const { elapsed = () => performance.now(), more = () => [] } = options;
  let addresses: ServedAddresses | undefined;
  const requests = new Counter(
    'slices_conn_http_requests_total',
    'Finished requests, by endpoint, method and class of status; "aborted" got no answer.',
  );
  const durations = new Histogram(
    'slices_conn_http_request_duration_seconds',
    'From the head of a request to the end of its answer.',
    DURATIONS,
  );
  const underWay = new Counter('slices_conn_http_requests_in_flight', 'Requests that are under way.', [{}]);
  const requestsDecided = new Counter(
    'slices_conn_bookings_total',
    'Requests to book or change a reservation, by result.',
    ['create', 'update'].flatMap((asked) => RESERVATION_RESULTS.map((result) => ({ asked, result }))),
  );
  const sizes = new Histogram(
    'slices_conn_commit_size',
    'Requests that one transaction on a link decided.',
    SIZES,
    [{}],
  );
  const commits = new Histogram(
    'slices_conn_commit_duration_seconds',
    "A transaction on a link, from asking for the link's lock to the end of its commit.",
    DURATIONS,
    [{}],
  );
  const storeErrors = new Counter(
    'slices_conn_store_errors_total',
    'Requests that failed because the database was unavailable, locked or full; "commit_unknown" may have been done.',
    [{ kind: 'unavailable' }, { kind: 'commit_unknown' }],
  );
  const keySets = new Counter(
    'slices_conn_key_set_fetch_failures_total',
    "Fetches of a trusted issuer's key set that failed.",
  );
  const instruments = [requests, durations, underWay, requestsDecided, sizes, commits, storeErrors, keySets];

  return {
    /** Sets where the services are, so that requests are labelled by endpoint. */
    serve(served: ServedAddresses): void {
      addresses = served;
    },
    /**
     * Counts a request that has arrived.
     *
     * @returns call this when the request is over, with its status; with undefined when it got no answer
     */
    requestBegan(asked: string, target: string): (status: number | undefined) => void {
      const began = elapsed();
      underWay.add();
      return (status) => {
        underWay.add({}, -1);
        const route = addresses ? requestRoute(target, addresses) : 'other';
        const method = METHODS.has(asked) ? asked : 'other';
        const answer = status === undefined ? 'aborted' : `${Math.trunc(status / 100)}xx`;
        requests.add({ route, method, status: answer });
        durations.observe((elapsed() - began) / 1000, { route, method });
      };
    },
    /** Counts what becomes of creates and updates. */
    booking: ((asked, result) => requestsDecided.add({ asked, result })) satisfies ReservationObserver,
    /** Measures the allocator's transactions. */
    allocator: {
      committed(size, milliseconds) {
        sizes.observe(size);
        commits.observe(milliseconds / 1000);
      },
    } satisfies AllocatorObserver,
    /** Counts a request that failed because the database was unavailable, locked or full. */
    storeFailed(error: StoreUnavailableError): void {
      storeErrors.add({ kind: error instanceof CommitUnknownError ? 'commit_unknown' : 'unavailable' });
    },
    /** Counts a failed fetch of a trusted issuer's key set. @param url its address, which the operator configured */
    keySetFailed: (url: string): void => keySets.add({ url }),
    /** All metrics in Prometheus' text format; see {@link expositionText}. */
    text: (): string => expositionText([...instruments.map((one) => one.family()), ...more()]),
  };
}

/** Where the services are. */
interface ServedAddresses {
  /** The path of the base address; empty for the root. */
  prefix: string;
  groups: ApiGroups;
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/**
 * The endpoint that a request is for, as a label: a template such as `/apis/v1alpha1/connectivity/{id}`, never the
 * path itself, and `other` for every other path, so that the number of labels is bounded.
 *
 * @param target the request target: a path, with or without a query
 */
export function requestRoute(target: string, { prefix, groups }: ServedAddresses): string {
  const [path = ''] = target.split('?');
  if (!path.startsWith(`${prefix}/`)) return 'other';
  const below = path.slice(prefix.length);
  if (below.startsWith('/portal/')) {
    const template = templateAt(below.slice('/portal'.length), 'portal', groups);
    return template === undefined ? 'other' : `/portal${template}`;
  }
  if (below.startsWith('/ui/')) return '/ui/*';
  const page = below.replace(/\/$/, '');
  if (READ_ONLY.has(page)) return page;
  const identity = below.startsWith('/auth/') ? below.slice('/auth'.length) : undefined;
  if (identity !== undefined && (isLoginPage(identity) || isProviderPath(identity))) return below;
  return templateAt(below, 'connectivity', groups) ?? 'other';
}
