import * as v from 'valibot';
import { ProtectedResource } from './addresses.ts';
import { Availability, RouteList, SlotList, UseList } from './availability.ts';
import { CiRule, CiRuleList, CiRuleRequest } from './ci-rules.ts';
import { KeyHistoryDocument, KeySetDocument } from './claims.ts';
import {
  Experiment,
  ExperimentList,
  ExperimentRequest,
  Project,
  ProjectList,
  SessionList,
} from './directory.ts';
import { EXAMPLE_IDS, NextCursor } from './fields.ts';
import { EXAMPLE_CREATED, EXAMPLE_END, EXAMPLE_LATER, EXAMPLE_START } from './instants.ts';
import { LinkList } from './links.ts';
import { ProblemBody, type ProblemCode, type RefusalFacts } from './problems.ts';
import {
  BatchRequest,
  BatchResults,
  Reservation,
  ReservationRequestBody,
  ReservationUpdate,
} from './reservation.ts';

const ReservationList = v.object({
  items: v.array(Reservation),
  nextCursor: NextCursor,
});

/** The answer to a health check that passed. A failed one is a problem body with a status of its own. */
const Health = v.object({ status: v.pipe(v.literal('ok'), v.description('`ok`.')) });

/** The schemas of the bodies that travel, by the names under which OpenAPI gathers them. */
export const SCHEMAS = {
  Reservation,
  ReservationRequest: ReservationRequestBody,
  ReservationUpdate,
  ReservationList,
  ...{ BatchRequest, BatchResults, LinkList, Availability, UseList, SlotList, RouteList },
  ...{ Project, ProjectList, ExperimentList, Experiment, ExperimentRequest, SessionList, ProtectedResource },
  ...{ CiRule, CiRuleRequest, CiRuleList, KeySetDocument, KeyHistoryDocument, Health, ProblemBody },
};
/** One of the names of {@link SCHEMAS}. */
export type SchemaName = keyof typeof SCHEMAS;

const { reservation: RESERVATION, experiment: EXPERIMENT, project: PROJECT } = EXAMPLE_IDS;

const RESERVED = {
  id: RESERVATION,
  site1: 'be-gent1',
  site2: 'pl-poznan1',
  bandwidth: 1000,
  start_date: EXAMPLE_START,
  end_date: EXAMPLE_END,
  experiment_id: EXPERIMENT,
  created_at: EXAMPLE_CREATED,
  created_by: EXAMPLE_IDS.user,
  site1_s_tag: 1001,
  site1_c_tag: 1,
  site2_s_tag: 1001,
  site2_c_tag: 1,
};

const AVAILABLE = {
  site1: 'be-gent1',
  site2: 'pl-poznan1',
  bandwidth: 100_000,
  start_date: EXAMPLE_START,
  end_date: EXAMPLE_LATER,
  exact: true,
  items: [
    { start_date: EXAMPLE_START, end_date: EXAMPLE_END, bandwidth: 500, bandwidth_max: 500, vlans: 12 },
    {
      start_date: EXAMPLE_END,
      end_date: EXAMPLE_LATER,
      bandwidth: 100_000,
      bandwidth_max: 100_000,
      vlans: 1000,
    },
  ],
  nextCursor: null,
};

/** Bodies where the schema's own examples do not fit together. A reservation is accepted as it stands here. */
export const BODY_EXAMPLES: Partial<Record<SchemaName, Readonly<Record<string, unknown>>>> = {
  Reservation: RESERVED,
  // With ?start_now=true a start_date would be refused, and an update may leave it out.
  ReservationUpdate: { bandwidth: '2000', end_date: EXAMPLE_END },
  Availability: AVAILABLE,
  UseList: { items: [{ ...AVAILABLE, exact: false }], nextCursor: null },
  SlotList: {
    items: [{ first_start_date: EXAMPLE_START, last_start_date: EXAMPLE_END }],
    nextCursor: null,
  },
  BatchResults: {
    items: [
      { connectivity: RESERVED, token: 'eyJhbGciOiJFUzI1NiIsImtpZCI6ImtleTEifQ.e30.c2lnbmF0dXJl' },
      { connectivity: null, token: null },
    ],
  },
  ExperimentRequest: {
    name: 'throughput-1',
    description: 'Throughput between Ghent and Poznań',
    project_id: PROJECT,
    expires_at: EXAMPLE_END,
  },
  CiRuleRequest: { ci: 'github', repository: 'octo/measure', ref: 'refs/heads/main' },
};

const PERIOD = { start_date: EXAMPLE_START, end_date: EXAMPLE_END };
const WANTED = { site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: '1000', ...PERIOD, tokens: [] };

/** A create as an item of a batch. */
function item(name: string): object {
  const { tokens: _tokens, ...body } = WANTED;
  return { action: 'create', name, ...body };
}

/** Requests of several kinds, each accepted as it stands here. */
export const REQUEST_EXAMPLES: Partial<
  Record<SchemaName, Readonly<Record<string, { summary: string; value: object }>>>
> = {
  ReservationRequest: {
    period: { summary: 'A period', value: WANTED },
    earliest: {
      summary: 'An hour, as early as possible: with earliest=true',
      value: { ...WANTED, duration: 'PT1H' },
    },
    volume: {
      summary: '100 GB, to be carried by end_date, at 1 Gbps at most',
      value: { ...WANTED, volume: '100000000000' },
    },
  },
  BatchRequest: {
    together: {
      summary: 'Two links for one period, with names',
      value: { items: [item('first'), item('second')], tokens: [] },
    },
  },
};

/** The facts of a refusal by a link, for programs. */
const REFUSED: RefusalFacts = {
  limits: [{ limit: 'bandwidth', site: null, layer: null, capacity: 100_000, free: 500, ...PERIOD }],
  free: [{ ...PERIOD, bandwidth: 500 }],
  alternatives: [
    { kind: 'most_bandwidth', start_now: false, ...PERIOD, bandwidth: 500 },
    { kind: 'earliest', start_now: false, start_date: EXAMPLE_END, end_date: EXAMPLE_LATER, bandwidth: 1000 },
  ],
};

/** The facts of refusals in addition to their messages; most have none. */
export const PROBLEM_FACTS: Partial<Record<ProblemCode, RefusalFacts>> = {
  bandwidth_unavailable: REFUSED,
  vlans_unavailable: {
    limits: [{ limit: 'tags', site: 'be-gent1', layer: 'S', capacity: 1000, free: 0, ...PERIOD }],
    free: [{ ...PERIOD, bandwidth: 50_000 }],
  },
  share_exceeded: {
    limits: [{ limit: 'share', site: null, layer: null, capacity: 50_000, free: 500, ...PERIOD }],
    free: [{ ...PERIOD, bandwidth: 50_000 }],
  },
};

const EXPIRED = '2025-01-01T12:00:00.000Z';

/** A message of each refusal. */
export const PROBLEM_MESSAGES: Readonly<Record<ProblemCode, string>> = {
  site_invalid: 'site1 must be the name of a site; got 17.',
  site_unknown: 'There is no site "be-ghent1". The sites are: be-gent1, pl-poznan1, ….',
  sites_equal: 'site1 and site2 are both be-gent1; a link needs two.',
  sites_fixed:
    "A reservation's sites can't be changed; this one's are be-gent1 and pl-poznan1. Book a new one.",
  no_route:
    'No route of at most 2 hops between be-gent1 and hu-sztaki avoids pl-poznan1. The shortest route is be-gent1 – pl-poznan1 – hu-sztaki.',
  sites_not_connected: 'be-gent1 and es-uc3m are not interconnected.',
  date_invalid: `start_date must be a day and time that exist, as an ISO 8601 UTC timestamp with a zone, such as ${EXAMPLE_START}; got "tomorrow".`,
  date_past: `The start, ${EXPIRED}, has passed. Give start_now=true to start at once.`,
  period_empty: `The end, ${EXAMPLE_START}, is not after the start, ${EXAMPLE_END}.`,
  reservation_started: `The reservation began at ${EXPIRED}: its end and bandwidth can change, its start can't.`,
  reservation_ended: `The reservation ended at ${EXPIRED}. Book a new one.`,
  experiment_ends_first: `The end, ${EXAMPLE_END}, is after the experiment's expiry, ${EXAMPLE_START}.`,
  experiment_expired: `The experiment expired at ${EXPIRED}. Use another one.`,
  project_ends_first: `The end, ${EXAMPLE_END}, is after the expiry of project demo, ${EXAMPLE_START}.`,
  project_expired: `The project demo expired at ${EXPIRED}.`,
  bandwidth_invalid: 'bandwidth must be a string of the digits 0 to 9, in Mbps, such as "1000"; got "1G".',
  bandwidth_unavailable: `Not enough free bandwidth between be-gent1 and pl-poznan1. 500 Mbps of the 1 Gbps asked for are free from ${EXAMPLE_START} to ${EXAMPLE_END}. Would be accepted: 500 Mbps, same period; 1 Gbps from ${EXAMPLE_END}.`,
  bandwidth_too_low: `50 TB by ${EXAMPLE_END} need 4.63 Gbps; at most 100 Mbps may be used. Would be accepted: done by ${EXAMPLE_END}.`,
  vlans_unavailable: `No available VLANs between the two sites. None of the 1000 S-tags at be-gent1 is free all the time from ${EXAMPLE_START} to ${EXAMPLE_END}.`,
  share_exceeded: `One project may have 50 Gbps of this link, and yours has 500 Mbps left from ${EXAMPLE_START} to ${EXAMPLE_END}; 1 Gbps were asked for.`,
  search_given_up: `The search was given up, since it took too long. Nothing fits before ${EXAMPLE_START}.`,
  volume_invalid: 'volume must be a string of 1 to 16 of the digits 0 to 9, in bytes; got "50T".',
  tokens_invalid: 'tokens must be an array of JWTs, which may be empty.',
  name_invalid:
    'name must be 1 to 64 of the letters a to z, the digits and "-", a letter first; got "Gent 1".',
  description_invalid: 'description must be one line of at most 200 printable characters.',
  items_invalid: 'A batch has 1 to 64 items; got 65.',
  experiment_invalid: 'name must be a string.',
  experiment_limit_reached:
    'Project demo has 100 experiments that have not ended or were made within a day. Wait until some have ended.',
  ci_rule_invalid: 'ref or environment must be given: otherwise every branch and pull request would do.',
  not_supported: 'This server takes no ID tokens of gitlab: it was started without --ci-issuer gitlab.',
  body_unreadable: 'The body is not JSON.',
  request_invalid: 'dry_run must be true or false.',
  experiment_tokens_differ: 'The request carries two different experiment tokens.',
  token_missing: 'The request has no Authorization: Bearer <token>.',
  token_invalid: 'This is not a token: it does not have three parts between dots.',
  token_expired: `The user token expired at ${EXPIRED}.`,
  scope_missing: 'Your login does not have the scope projects. Log in again.',
  role_not_allowed: 'Your role in experiment demo is viewer; this needs lead or admin.',
  wrong_experiment: `Reservation ${RESERVATION} belongs to another experiment than ${EXPERIMENT}.`,
  wrong_project: `You have no role in ${PROJECT}.`,
  not_found: `There is no reservation ${RESERVATION}.`,
  method_not_allowed: 'This address allows GET only.',
  name_taken: 'Project demo has an experiment named throughput-1 already.',
  idempotency_key_reused: 'The Idempotency-Key was used for another request.',
  cursor_too_old:
    'What happened since this cursor is not known any more. List the reservations again, and go on from the present.',
  body_too_large: 'The body is larger than 262144 bytes.',
  media_type_unsupported: 'The body must be JSON: Content-Type: application/json.',
  host_unknown: 'This server answers for conn.example.org only.',
  too_many_requests: 'You have asked for 10000 changes within an hour. Try again in 1 s.',
  internal: 'Something went wrong in the service; its log says what.',
  unavailable: 'The database does not answer. Nothing was changed; try again.',
  outcome_unknown:
    'The database did not say whether it kept the change. The change may have been made or not; check before you try again.',
};
