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
import { type Problem, ProblemBody, type ProblemCode, type RefusalFacts } from './problems.ts';
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

const RESERVED = {
  id: EXAMPLE_IDS.reservation,
  site1: 'be-gent1',
  site2: 'pl-poznan1',
  bandwidth: 1000,
  start_date: EXAMPLE_START,
  end_date: EXAMPLE_END,
  experiment_id: EXAMPLE_IDS.experiment,
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
    project_id: EXAMPLE_IDS.project,
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

/** What a link refuses, with its facts for programs: the refusals whose bodies have more than a sentence. */
export const REFUSAL_EXAMPLES: Partial<Record<ProblemCode, Pick<Problem, 'msg'> & RefusalFacts>> = {
  bandwidth_unavailable: {
    msg: `Not enough free bandwidth between be-gent1 and pl-poznan1. 500 Mbps of the 1 Gbps asked for are free from ${EXAMPLE_START} to ${EXAMPLE_END}. Would be accepted: 500 Mbps, same period; 1 Gbps from ${EXAMPLE_END}.`,
    limits: [{ limit: 'bandwidth', site: null, layer: null, capacity: 100_000, free: 500, ...PERIOD }],
    free: [{ ...PERIOD, bandwidth: 500 }],
    alternatives: [
      { kind: 'most_bandwidth', start_now: false, ...PERIOD, bandwidth: 500 },
      {
        ...{ kind: 'earliest', start_now: false, bandwidth: 1000 },
        ...{ start_date: EXAMPLE_END, end_date: EXAMPLE_LATER },
      },
    ],
  },
  vlans_unavailable: {
    msg: `No available VLANs between the two sites. None of the 1000 S-tags at be-gent1 is free all the time from ${EXAMPLE_START} to ${EXAMPLE_END}.`,
    limits: [{ limit: 'tags', site: 'be-gent1', layer: 'S', capacity: 1000, free: 0, ...PERIOD }],
    free: [{ ...PERIOD, bandwidth: 50_000 }],
  },
  share_exceeded: {
    msg: `One project may have 50 Gbps of this link, and yours has 500 Mbps left from ${EXAMPLE_START} to ${EXAMPLE_END}; 1 Gbps were asked for.`,
    limits: [{ limit: 'share', site: null, layer: null, capacity: 50_000, free: 500, ...PERIOD }],
    free: [{ ...PERIOD, bandwidth: 50_000 }],
  },
};
