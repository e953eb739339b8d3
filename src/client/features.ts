import * as v from 'valibot';
import { type Changes, Failure } from '../contract/failure.ts';
import { SiteName } from '../contract/fields.ts';
import { isWithin } from '../contract/instants.ts';
import { isObject, readJson } from '../contract/json.ts';
import { EXTENSIONS, EXTENSIONS_MEMBER, ROUTES, SITES_MEMBER } from '../contract/routes.ts';
import type { Send } from '../contract/sending.ts';
import { renewing } from '../tokens/shared-copy.ts';
import { exchange } from './exchange.ts';

/** The name of an extension of the API. */
export type Extension = (typeof EXTENSIONS)[number];

/** Whether a connectivity service has each of the {@link EXTENSIONS}, and the names of its sites where it tells them. */
export type ServiceFeatures = Record<Extension, boolean> & { sites?: readonly string[] };

/** Reading routes: a path in the description is enough, also of a service that announces no extensions. */
const READ_BY = { list: 'listReservations', availability: 'linkAvailability', slots: 'linkSlots' } as const;

/** Reads YAML, of which JSON is a part. @throws for a text that is neither */
export type ReadYaml = (text: string) => Promise<unknown>;

/**
 * Reads a service's extensions from its API description (contract/README.md, "Extensions"). A description that can't be read
 * has none.
 *
 * @param readYaml reads a description in YAML; without it only JSON is read
 * @throws Failure when the description can't be fetched
 */
export async function readFeatures(
  send: Send,
  baseUrl: string,
  readYaml: ReadYaml = async () => undefined,
): Promise<ServiceFeatures> {
  const headers = { accept: 'application/json, application/yaml;q=0.5' };
  const { text, type } = await exchange(send, { method: 'GET', url: `${baseUrl}/api-spec`, headers });
  const reading = readJson(text);
  const asYaml = async () => (type === 'text/html' ? undefined : readYaml(text).catch(() => undefined));
  const description = reading.ok ? reading.value : await asYaml();
  const announced = member(member(description, 'info'), EXTENSIONS_MEMBER);
  const paths = member(description, 'paths');
  const has = (extension: Extension): boolean => {
    if (Array.isArray(announced) && announced.includes(extension)) return true;
    if (!Object.hasOwn(READ_BY, extension)) return false;
    const { path } = ROUTES[READ_BY[extension as keyof typeof READ_BY]];
    return [path, `${path}/`].some((name) => isObject(member(member(paths, name), 'get')));
  };
  const features = Object.fromEntries(EXTENSIONS.map((name) => [name, has(name)])) as Record<
    Extension,
    boolean
  >;
  const sites = v.safeParse(v.array(SiteName), member(member(description, 'info'), SITES_MEMBER));
  return sites.success ? { ...features, sites: sites.output } : features;
}

/** A description is read again after this time: it serves one command, not the whole life of a client. */
const DESCRIPTION_TTL_MS = 60_000;

/**
 * Reads the extensions of a service when they are first asked for, and again after a minute. A failure is not remembered.
 *
 * @param now milliseconds since the Unix epoch
 */
export function rememberedFeatures(
  send: Send,
  baseUrl: string,
  now: () => number,
  readYaml?: ReadYaml,
): () => Promise<ServiceFeatures> {
  const read = () => readFeatures(send, baseUrl, readYaml);
  return renewing(read, (_, askedAt) => isWithin(askedAt, DESCRIPTION_TTL_MS, now()), now);
}

/** The extensions of a service; undefined where it answers without a description. @throws Failure where no answer came */
export async function describedFeatures(
  features: () => Promise<ServiceFeatures>,
): Promise<ServiceFeatures | undefined> {
  return features().catch((error: unknown) => {
    if (error instanceof Failure && error.facts.httpStatus !== undefined) return undefined;
    throw error;
  });
}

/**
 * Checks that a service has the extensions that a request needs. A service without them would ignore an unknown parameter
 * and book something else, so this comes before anything is sent.
 *
 * @param isQuestion whether the request books nothing in any case
 * @throws Failure `not_supported`
 */
export async function requireFeatures(
  features: () => Promise<ServiceFeatures>,
  needed: readonly (keyof typeof LACKING)[],
  isQuestion = false,
): Promise<void> {
  if (needed.length === 0) return;
  const known = await describedFeatures(features);
  const lacked = needed.find((feature) => !known?.[feature]);
  if (lacked === undefined) return;
  const [lacks, unmentioned, might] = LACKING[lacked];
  const so = might === undefined ? '' : `, so it might ${might}`;
  throw new Failure('not_supported', `This service ${lacks}.`, {
    why: `Its API description does not mention ${unmentioned}${isQuestion ? '.' : `${so}. Nothing was booked.`}`,
    fix: ASKED_BY[lacked],
  });
}

/** For each extension: the service's lack in words, what its description leaves out, and what a request would do all the same. */
const LACKING = {
  dryRun: ["can't do dry runs", 'dry runs', 'book the link'],
  earliest: ["can't look for the earliest start", '`earliest`', 'book the whole period'],
  batch: ["can't make several changes together", 'batches with dry runs, `earliest` and idempotency keys'],
  volume: ["can't book for a volume", '`volume`', 'book something else'],
  routes: ["can't be asked for a route", '`via`, `avoid` and `direct`', 'book another route'],
  availability: ["does not tell a link's use over time", "a link's availability"],
  slots: ['does not tell when a reservation can start', "a link's slots"],
} as const satisfies Partial<
  Record<Extension, readonly [lacks: string, unmentioned: string, might?: string]>
>;

/** The flags without which the typed command does not need the extension. */
const ASKED_BY: Partial<Record<keyof typeof LACKING, Changes>> = {
  routes: { via: undefined, avoid: undefined, direct: undefined },
  slots: { bandwidth: undefined, duration: undefined },
};

function member(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
