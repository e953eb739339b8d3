import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { TopologyError } from '../allocator/network.ts';
import { createTransport, type NetworkTransport } from '../client/transport.ts';
import { HOUR } from '../contract/durations.ts';
import { Failure } from '../contract/failure.ts';
import { dataFolder } from '../files/private.ts';
import { readPrivateFile, writePrivateFile } from '../files/whole.ts';
import { createReferenceServer, type ReferenceServer } from '../reference-server.ts';
import { forwardedAddress } from '../server/client-address.ts';
import { useLightResponses } from '../server/listener.ts';
import { jsonLog, type Log } from '../server/log.ts';
import { ISSUER_TIMEOUT } from '../server/trust.ts';
import { cookiesWork } from '../server/ui/login.ts';
import { takeFileLock } from '../store/sqlite/file.ts';
import { type CertificateFiles, readCertificate } from './certificate.ts';
import { type DataPlace, databaseFailure, dataPlace } from './database.ts';
import { readDirectory, readTopology, removeReadyFile, writeReadyFile } from './files.ts';
import {
  addressOf,
  createHttpServer,
  HTTP_LIMITS,
  type HttpServer,
  listeningFailure,
} from './http-server.ts';
import { openMetrics } from './metrics-socket.ts';
import type { ServeOptions } from './options.ts';
import { allowedDangers, checkSettings, checkUser } from './settings.ts';

/** The needs of `serve` from the process that runs it. */
export interface ServeSurroundings {
  /** Holds the data when no flag says where it is. */
  defaultFolder: string;
  /** Takes log lines, in JSON. */
  write: (line: string) => void;
  /** Takes events in place of `write`, to show them to a person. */
  show?: Log;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** A random number from 0 to 1. */
  random: () => number;
  /** Whether this process does nothing else; see {@link useLightResponses}. */
  ownsProcess?: boolean;
  /** Certificates to trust besides the usual ones when the issuers' keys are fetched, in PEM. */
  certificates?: string;
}

/** How often old audit rows and old deleted reservations are removed, in milliseconds. */
const FORGET_EVERY = HOUR;

/** A reference server that takes requests. */
export interface RunningServer {
  addresses: ReferenceServer['addresses'];
  /** The host and port of its socket, which differ from its addresses with `--base-url`. */
  listen: string;
  /** The page on which people log in. */
  loginPage: string;
  /** Who can log in; empty where other issuers are trusted. */
  users: ReferenceServer['users'];
  /** Where the data is kept: a folder, the address of a database, or `memory`. */
  data: string;
  /** The dangers that a flag has allowed, in sentences. */
  warnings: readonly string[];
  /** Reads the certificate again; left out without one. The log says whether it is used. */
  reload?: () => void;
  /** Where metrics are read. */
  metrics?: string;
  /** Finishes what is under way. */
  stop(): Promise<void>;
}

/**
 * Runs a reference server on a socket (cli/README.md, "Commands", serve).
 *
 * The socket is opened first, since with `--port 0` the services' addresses depend on it. Requests wait until the
 * services are ready.
 *
 * @throws Failure `usage` for a flag that can't be used, and for a server that is not safe for others to reach, `file_unusable` for a
 *   certificate, a topology or a folder, `network` for a port that is taken
 */
export async function serve(options: ServeOptions, surroundings: ServeSurroundings): Promise<RunningServer> {
  const { host, port, readyFile, tlsCert, tlsKey, autoApprove, trust, ui, drain } = options;
  const { now, write, show: log = jsonLog(write, now), ownsProcess = false } = surroundings;
  if (ownsProcess) useLightResponses();
  checkSettings(options);
  const topology = options.topology === undefined ? undefined : readTopology(options.topology);
  const directory = options.directory === undefined ? undefined : readDirectory(options.directory);
  if (directory)
    checkUser(
      autoApprove,
      directory.users.map(({ name }) => name),
    );
  const tls = tlsCert !== undefined && tlsKey !== undefined ? { cert: tlsCert, key: tlsKey } : undefined;
  const server = createHttpServer(
    tls && readCertificate(tls, now()),
    { ...HTTP_LIMITS, perAddress: options.maxConnectionsPerAddress },
    options.behindProxy ? forwardedAddress : undefined,
  );
  const bound = await server.open(host, port).catch((cause: unknown) => {
    throw listeningFailure(cause, { host, port }, { port: '0' });
  });
  const opened: Opened[] = [server];
  try {
    const watched = options.metrics && (await openMetrics(options.metrics));
    if (watched) opened.push(watched);
    const address = addressOf(tls ? 'https' : 'http', { host, port: bound });
    const { baseUrl = address } = options;
    const issuers = issuerTransport(options, surroundings);
    if (issuers) opened.push(issuers);
    const place: DataPlace = options.memory
      ? { database: ':memory:' }
      : dataPlace(options, surroundings.defaultFolder);
    const isShared = lockData(place, baseUrl, opened);
    const fetch = issuers?.fetch;
    const services = await createReferenceServer({
      ...options,
      ...{ baseUrl, topology, directory, log, now, metrics: watched?.metrics, database: place.database },
      ui: ui !== false && { clientId: options.uiClientId },
      trust: trust && { ...options, issuers: trust, fetch },
      ci: options.ciIssuer && { issuers: options.ciIssuer, fetch },
      administrators: options.administrator,
    }).catch((cause: unknown) => {
      if (!(cause instanceof TopologyError)) throw databaseFailure(cause, place);
      const what = `The topology ${options.topology} can't be used.`;
      throw new Failure('file_unusable', what, { lines: cause.violations, cause });
    });
    // Closed before the lock: until then it uses the data.
    opened.splice(1, 0, services);
    server.answerWith(services.listener);
    const { addresses, users, stranded } = services;
    const url = watched?.url;
    const listen = address.replace(/^https?:\/\//, '');
    log('info', 'listening', { listen, base_url: baseUrl });
    if (readyFile !== undefined) writeReadyFile(readyFile, addresses, { ...options, listen, url });
    const forgetting = setInterval(() => void forget(services, options.keep, { now, log }), FORGET_EVERY);
    forgetting.unref();
    return {
      addresses,
      listen,
      metrics: url,
      users,
      data: options.memory ? 'memory' : (place.folder ?? place.database),
      loginPage: trust ? addresses.identity : `${addresses.identity}/device`,
      warnings: [
        autoApprove && `Every login is approved at once, as ${autoApprove}: for tests only.`,
        ...allowedDangers(options),
        ui !== false && !cookiesWork(baseUrl) && NO_LOGIN,
        isShared && SHARED_DATA,
        stranded > 0 && strandedText(stranded),
      ].filter((each) => typeof each === 'string'),
      reload: tls && (() => renew(server, tls, { now, log })),
      stop: async () => {
        clearInterval(forgetting);
        try {
          if (readyFile !== undefined) removeReadyFile(readyFile);
          log('info', 'stopping', { drain });
          services.drain();
          if (drain > 0) {
            server.drain();
            await sleep(drain * 1000);
          }
        } finally {
          await closeAll(opened);
        }
      },
    };
  } catch (error) {
    // An error while closing must not hide why the server did not start.
    await closeAll(opened).catch(() => undefined);
    throw error;
  }
}

type Opened = { close(): Promise<void> };

/** Closes all, one after the other, also where one can't be closed. @throws the first one's error */
async function closeAll(opened: readonly Opened[]): Promise<void> {
  const failures: unknown[] = [];
  for (const each of opened) await each.close().catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw failures[0];
}

/**
 * The way to the issuers, through the proxies that the environment names: for their key sets, and for the page's requests
 * to identity provider and portal, which alone are sent tokens.
 */
function issuerTransport(
  { trust, ciIssuer, portalUrl, authUrl }: ServeOptions,
  { certificates, now, random }: ServeSurroundings,
): NetworkTransport | undefined {
  if (!trust && !ciIssuer) return undefined;
  const named = trust?.map(({ issuer }) => issuer) ?? [];
  const addresses = [portalUrl, authUrl, ...named, ...Object.values(ciIssuer ?? {})];
  return createTransport({
    origins: new Set(addresses.flatMap((address) => (address ? [new URL(address).origin] : []))),
    timeout: ISSUER_TIMEOUT,
    now,
    random,
    certificates,
  });
}

/** Removes what is older than `--keep`. After a failure it is tried again the next time. */
async function forget(
  services: ReferenceServer,
  keep: number,
  { now, log }: { now: () => number; log: Log },
): Promise<void> {
  try {
    const gone = await services.forget(now() - keep);
    if (gone.audit + gone.deleted > 0) log('info', 'forgotten', { ...gone });
  } catch (error) {
    log('error', 'not_forgotten', { why: String(error) });
  }
}

/** Reads the certificate again. If it can't be used, the old one stays. */
function renew(
  server: HttpServer,
  files: CertificateFiles,
  { now, log }: { now: () => number; log: Log },
): void {
  try {
    server.renew(readCertificate(files, now()));
    log('info', 'certificate_renewed', { file: files.cert });
  } catch (error) {
    const why = error instanceof Failure ? [error.message, error.facts.why].join(' ') : String(error);
    log('error', 'certificate_kept', { why });
  }
}

/** Said at the start of a server whose page browsers keep no cookies of. */
const NO_LOGIN =
  'Nobody can log in to the page: browsers keep its cookies over https, or on this machine, only.';

/** Said at the start of a server whose data another one serves. */
const SHARED_DATA =
  'Another server is running on this data. Both take bookings; --data gives this one a folder of its own.';

/** Said at the start of a server whose topology lacks links that are reserved. @param count of the reservations */
function strandedText(count: number): string {
  const are =
    count === 1 ? '1 reservation that has not ended is' : `${count} reservations that have not ended are`;
  return `${are} on links that the topology lacks. Such a reservation can be shown and deleted, not updated.`;
}

/**
 * Marks a data folder as served, until what is opened is closed.
 *
 * @returns whether another process had marked it
 * @throws Failure `file_unusable` where that one has another address: ids, keys and tokens in the data are of one address
 */
function lockData({ folder, ...place }: DataPlace, baseUrl: string, opened: Opened[]): boolean {
  if (folder === undefined) return false;
  // Others can't read the lock's own file.
  const note = join(folder, 'serve.address');
  try {
    dataFolder(folder);
    const unlock = takeFileLock(join(folder, 'serve.lock'));
    opened.push({ close: async () => unlock?.() });
    if (unlock) writePrivateFile(note, baseUrl);
    const address = readPrivateFile(note) ?? baseUrl;
    if (address === baseUrl) return unlock === undefined;
    throw new Failure('file_unusable', `The server ${address} is using the data in ${folder}.`, {
      why: `This one would be ${baseUrl}. Ids, keys and tokens in the data are those of one address.`,
      fix: { data: `${folder}-2` },
    });
  } catch (cause) {
    throw databaseFailure(cause, place);
  }
}
