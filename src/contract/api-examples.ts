import { EXAMPLE_IDS } from './ids.ts';
import { EXAMPLE_CREATED, EXAMPLE_END, EXAMPLE_LATER, EXAMPLE_START } from './instants.ts';
import type { ProblemCode } from './problem-codes.ts';
import type { RefusalFacts } from './problems.ts';
import type { SchemaName } from './routes.ts';

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
