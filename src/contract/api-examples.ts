import { MAX_ITEMS } from './batch.ts';
import { EXAMPLE_CREATED, EXAMPLE_END, EXAMPLE_LATER, EXAMPLE_START } from './fields.ts';
import type { Problem, ProblemCode, RefusalFacts } from './problems.ts';
import type { SchemaName } from './routes.ts';

const RESERVATION = 'con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q';
const EXPERIMENT = 'exp_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q';
const PROJECT = 'proj_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q';
const EXPIRED = '2025-01-01T12:00:00.000Z';

const RESERVED = {
  id: RESERVATION,
  site1: 'be-gent1',
  site2: 'pl-poznan1',
  bandwidth: 1000,
  start_date: EXAMPLE_START,
  end_date: EXAMPLE_END,
  experiment_id: EXPERIMENT,
  created_at: EXAMPLE_CREATED,
  created_by: 'user_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
  site1_s_tag: 1001,
  site1_c_tag: 1,
  site2_s_tag: 1001,
  site2_c_tag: 1,
};

/** Bodies where the schema's own examples do not fit together. A reservation is accepted as it stands here. */
export const BODY_EXAMPLES: Partial<Record<SchemaName, Readonly<Record<string, unknown>>>> = {
  Reservation: RESERVED,
  // With ?start_now=true a start_date would be refused, and an update may leave it out.
  ReservationUpdate: { bandwidth: '2000', end_date: EXAMPLE_END },
  Availability: {
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
  },
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

/** What a refusal by a link says for programs. */
const REFUSED: RefusalFacts = {
  limits: [{ limit: 'bandwidth', site: null, layer: null, capacity: 100_000, free: 500, ...PERIOD }],
  free: [{ ...PERIOD, bandwidth: 500 }],
  alternatives: [
    { kind: 'most_bandwidth', start_now: false, ...PERIOD, bandwidth: 500 },
    { kind: 'earliest', start_now: false, start_date: EXAMPLE_END, end_date: EXAMPLE_LATER, bandwidth: 1000 },
  ],
};

/** What refusals say beside their messages; most say nothing. */
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

/** For each code, where the error belongs and what a reply says. */
export const PROBLEM_EXAMPLES: Readonly<Record<ProblemCode, Omit<Problem, 'code'>>> = {
  site_invalid: { loc: 'Site', msg: 'site1 must be the name of a site; got 17.' },
  site_unknown: { loc: 'Site', msg: 'There is no site "be-ghent1". The sites are: be-gent1, pl-poznan1, ….' },
  sites_equal: { loc: 'Site', msg: 'site1 and site2 are both be-gent1; a link needs two.' },
  sites_fixed: {
    loc: 'Site',
    msg: "A reservation's sites can't be changed; this one's are be-gent1 and pl-poznan1. Book a new one.",
  },
  sites_not_connected: { loc: 'Site', msg: 'be-gent1 and es-uc3m are not interconnected.' },
  date_invalid: {
    loc: 'Date',
    msg: `start_date must be a day and time that exist, as an ISO 8601 UTC timestamp with a zone, such as ${EXAMPLE_START}; got "tomorrow".`,
  },
  date_past: {
    loc: 'Date',
    msg: `start_date ${EXPIRED} has passed. Give start_now=true to start at once.`,
  },
  period_empty: { loc: 'Date', msg: `end_date ${EXAMPLE_START} is not after start_date ${EXAMPLE_END}.` },
  reservation_ended: { loc: 'Date', msg: `The reservation ended at ${EXPIRED}.` },
  experiment_ends_first: {
    loc: 'Date',
    msg: `end_date ${EXAMPLE_END} is after the experiment's expiry, ${EXAMPLE_START}; the reservation can last until then.`,
  },
  experiment_expired: { loc: 'Date', msg: `The experiment demo expired at ${EXPIRED}.` },
  project_ends_first: {
    loc: 'Date',
    msg: `end_date ${EXAMPLE_END} is after the expiry of project demo, ${EXAMPLE_START}; the reservation can last until then.`,
  },
  project_expired: { loc: 'Date', msg: `The project demo expired at ${EXPIRED}.` },
  bandwidth_invalid: {
    loc: 'Bandwidth',
    msg: 'bandwidth must be a string of the digits 0 to 9, in Mbps, such as "1000"; got "1G".',
  },
  bandwidth_unavailable: {
    loc: 'Bandwidth',
    msg: `Not enough free bandwidth between be-gent1 and pl-poznan1: 99500 + 1000 = 100500 Mbps of 100000 from ${EXAMPLE_START} to ${EXAMPLE_END}. Would be accepted: 500 Mbps for the same period; 1000 Mbps from ${EXAMPLE_END} to ${EXAMPLE_LATER}.`,
  },
  vlans_unavailable: {
    loc: 'Bandwidth',
    msg: `No available VLANs between the two sites from ${EXAMPLE_START} to ${EXAMPLE_END}: each of the 1000 S-tags at be-gent1 is taken for some of it.`,
  },
  share_exceeded: {
    loc: 'Bandwidth',
    msg: 'A project may have 50000 Mbps of a link; 49500 Mbps are reserved already.',
  },
  volume_invalid: {
    loc: 'Bandwidth',
    msg: 'volume must be a string of 1 to 16 of the digits 0 to 9, in bytes; got "50T".',
  },
  name_invalid: {
    msg: 'name must be 1 to 64 of the letters a to z, the digits and "-", a letter first; got "Gent 1".',
  },
  items_invalid: { msg: `A batch has 1 to ${MAX_ITEMS} items; got ${MAX_ITEMS + 1}.` },
  tokens_invalid: { msg: 'tokens must be an array of JWTs, which may be empty.' },
  experiment_invalid: { msg: 'name must be a string.' },
  experiment_limit_reached: {
    msg: 'Project demo has 100 experiments that have not ended or were made within a day. Wait until some have ended.',
  },
  body_unreadable: { msg: 'The body is not JSON.' },
  request_invalid: { msg: 'dry_run must be true or false.' },
  experiment_tokens_differ: { msg: 'The request carries two different experiment tokens.' },
  token_missing: { msg: 'The request has no Authorization: Bearer <token>.' },
  token_invalid: { msg: 'This is not a token: it does not have three parts between dots.' },
  token_expired: { msg: `The user token expired at ${EXPIRED}.` },
  scope_missing: { msg: 'Your login does not have the scope projects. Log in again with it.' },
  role_not_allowed: { msg: 'Your role in experiment demo is viewer; this needs lead or admin.' },
  wrong_experiment: {
    msg: `Reservation ${RESERVATION} belongs to another experiment than ${EXPERIMENT}.`,
  },
  wrong_project: { msg: `You have no role in ${PROJECT}.` },
  not_found: { msg: `There is no reservation ${RESERVATION}.` },
  method_not_allowed: { msg: 'This address allows GET only.' },
  name_taken: { msg: 'Project demo has an experiment named throughput-1 already.' },
  idempotency_key_reused: { msg: 'The Idempotency-Key was used for another request.' },
  body_too_large: { msg: 'The body is larger than 262144 bytes.' },
  media_type_unsupported: { msg: 'The body must be JSON: Content-Type: application/json.' },
  host_unknown: { msg: 'This server answers for conn.example.org only.' },
  too_many_requests: {
    msg: 'You have asked for 10000 changes within an hour. Nothing was changed; try again in 1 s.',
  },
  internal: { msg: 'Something went wrong in the service; its log says what.' },
  unavailable: { msg: 'The database does not answer. Nothing was changed; try again.' },
  outcome_unknown: {
    msg: 'The database did not say whether it kept the change. The change may have been made or not; check before you try again.',
  },
};
