import * as v from 'valibot';
import { sameIssuer } from '../../contract/addresses.ts';
import {
  CI_CLIENT_ID,
  CI_NAMES,
  CI_SYSTEMS,
  type CiIssuers,
  type CiSystem,
} from '../../contract/ci-rules.ts';
import { ServiceClaims } from '../../contract/claims.ts';
import { DAY, MINUTE } from '../../contract/durations.ts';
import { formatInstant } from '../../contract/instants.ts';
import { may } from '../../contract/roles.ts';
import { claimedClaims } from '../../tokens/claimed.ts';
import { TokenError } from '../../tokens/token-error.ts';
import { type KindRules, type Trust, verifyAs } from '../../tokens/verify.ts';
import type { ServiceIssuer } from '../keys/service-issuer.ts';
import type { Log } from '../log.ts';
import type { Users } from '../portal/users.ts';
import { type CiRule, type CiRules, differenceTo } from './ci-rules.ts';
import { hash, type IdentityRecords } from './records.ts';
import { type Person, userClaims } from './user-token.ts';

/** Options of {@link createTokenExchange}. */
export interface TokenExchangeOptions {
  issuers: CiIssuers;
  /** Trust in them, for ID tokens whose `aud` is `{auth_url}`. */
  trust: Trust;
  rules: Pick<CiRules, 'ofRepository' | 'hold' | 'audit'>;
  records: Pick<IdentityRecords, 'save'>;
  /** `{base_url}`: the `aud` of user tokens. */
  audience: string;
  users: Pick<Users, 'withId' | 'experimentsOf'>;
  /** Signs the user token. */
  issue: ServiceIssuer['issue'];
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  log: Log;
}

/** Why a job gets no token. */
export class ExchangeRefused extends Error {
  override readonly name = 'ExchangeRefused';
  /**
   * `told`: whether the job gets the reason; only a job of a repository that has a rule does. `isTemporary`: whether the job may
   * get a token later. `reason`: replaces the message in the audit where the message holds text that the job chose.
   */
  readonly facts: { told?: boolean; isTemporary?: boolean; reason?: string | undefined };

  constructor(message: string, facts: ExchangeRefused['facts'] = {}) {
    super(message);
    this.facts = facts;
  }
}

/** How long a job's user token lasts where it can get another, in milliseconds. */
const LIFETIME = 15 * MINUTE;
/** How long one lasts at most where it can't. */
const LONGEST = DAY;

/** The scope that opens an experiment, and not the user's logins and rules. */
const SCOPE = 'projects';

/** The claims of a job's ID token that decide. Their names are each CI's own. */
const JobClaims = v.looseObject({
  ...ServiceClaims.entries,
  sub: v.string(),
  jti: v.optional(v.pipe(v.string(), v.nonEmpty())),
});

const JOB_TOKEN: KindRules<typeof JobClaims> = { kind: 'service', schema: JobClaims, algorithms: ['RS256'] };

/** Exchanges a job's ID token for a user token. `expiresIn` is in seconds. @throws ExchangeRefused */
export type TokenExchange = (
  idToken: string,
  experiment: string | undefined,
) => Promise<{ token: string; expiresIn: number; scope: string }>;

/**
 * The exchange of a CI job's ID token for a user token of the person who added a rule for such jobs, limited to the rule's
 * experiment (RFC 8693). The reason of a refusal is logged and is in the audit; it is told to jobs of a repository that has a
 * rule only.
 */
export function createTokenExchange(options: TokenExchangeOptions): TokenExchange {
  const { log, issuers, rules, now } = options;
  return async (idToken, experiment) => {
    try {
      return await exchange(idToken, experiment, options);
    } catch (error) {
      if (error instanceof ExchangeRefused) {
        log('info', 'ci_refused', { why: error.message });
        const claimed = String(claimedClaims(idToken)['iss']);
        const by = Object.values(issuers).find((issuer) => sameIssuer(issuer, claimed)) ?? 'another issuer';
        await rules.audit({
          at: now(),
          accepted: false,
          by,
          experiment: '',
          why: error.facts.reason ?? error.message,
        });
      }
      throw error;
    }
  };
}

async function exchange(
  idToken: string,
  experiment: string | undefined,
  options: TokenExchangeOptions,
): ReturnType<TokenExchange> {
  const { records, rules, audience, issue, now, log } = options;
  const job = await jobOf(idToken, options);
  const { system, claims } = job;
  const { rule, person, name } = await ruleFor(job, experiment, options);
  const isFirst = await records.save({
    model: 'IdToken',
    // One without an id is known by itself: RS256 has one signature for a text.
    key: hash(`${claims.iss} ${claims.jti ?? idToken}`),
    payload: {},
    account: null,
    grant: null,
    userCode: null,
    decided: true,
    expiresAt: claims.exp * 1000,
  });
  if (!isFirst) throw new ExchangeRefused(`The ID token of a job of ${rule.repository} was used before.`);
  if (!(await rules.hold(rule.id, job.repository.id))) {
    throw new ExchangeRefused(`Another repository named ${rule.repository} had a job at the same time.`);
  }
  const login = now();
  const end = system.asksAnew ? login + LIFETIME : Math.min(claims.exp * 1000, login + LONGEST);
  const expiresIn = Math.floor((Math.min(end, rule.expiresAt) - login) / 1000);
  const token = await issue({
    ...userClaims(person, { audience, login, ttl: expiresIn }),
    scope: SCOPE,
    client_id: CI_CLIENT_ID,
    sid: rule.id,
    limited_to: rule.experiment,
  });
  const { repository } = rule;
  const why = `A job of ${repository}, by rule ${rule.id}.`;
  await rules.audit({ at: login, accepted: true, by: person.id, experiment: rule.experiment, why });
  log('info', 'login', {
    by: person.id,
    name: person.name,
    client: CI_CLIENT_ID,
    repository,
    experiment: name,
  });
  return { token, expiresIn, scope: SCOPE };
}

type Job = Awaited<ReturnType<typeof jobOf>>;

/** The job that an ID token is of, with the issuer as its rules name it. */
async function jobOf(idToken: string, { issuers, trust }: TokenExchangeOptions) {
  const claims = await verifyAs(JOB_TOKEN, idToken, trust).catch((error: unknown) => {
    if (!(error instanceof TokenError)) throw error;
    const isTemporary = error.code === 'keys_unreachable';
    throw new ExchangeRefused(error.message, {
      isTemporary,
      reason: `The ID token is not valid: ${error.code}.`,
    });
  });
  const name = CI_NAMES.find((one) => sameIssuer(issuers[one] ?? '', claims.iss));
  const issuer = name && issuers[name];
  if (name === undefined || issuer === undefined) throw new ExchangeRefused(`${claims.iss} is not named.`);
  // Another recipient of the ID token could send it here.
  if ([claims['aud']].flat().length !== 1) throw new ExchangeRefused('The ID token is for others too.');
  const system: CiSystem = CI_SYSTEMS[name];
  const repository = { id: textOf(claims[system.repositoryId]), name: textOf(claims[system.repository]) };
  if (repository.id === '') throw new ExchangeRefused(`The ID token has no ${system.repositoryId}.`);
  return { system, claims, issuer, repository };
}

/** The rule that lets a job in, and the person and the experiment's name. */
async function ruleFor(
  { system, claims, issuer, repository }: Job,
  wanted: string | undefined,
  { rules, users, now }: TokenExchangeOptions,
): Promise<{ rule: CiRule; person: Person; name: string }> {
  const tell = (why: string, reason?: string) =>
    new ExchangeRefused(why, { told: true, reason: `${all[0]?.repository}: ${reason ?? why}` });
  const all = await rules.ofRepository(issuer, repository);
  if (all.length === 0) {
    const why = `There is no rule for repository ${repository.name}, id ${repository.id}.`;
    throw new ExchangeRefused(why, { reason: 'There is no rule for its repository.' });
  }
  const event = textOf(claims[system.event]);
  if (!system.events.includes(event)) {
    const known = new Intl.ListFormat('en-GB').format(system.events);
    throw tell(`This job has ${system.event} ${event || 'none'}, and only jobs of ${known} get a token.`);
  }
  const isLive = ({ expiresAt }: CiRule): boolean => expiresAt > now();
  const named = all.filter((rule) => differenceTo(rule, claims) === undefined);
  if (named.length === 0) {
    // What differs is told of rules that count, where there are some.
    const why = differenceText(all.some(isLive) ? all.filter(isLive) : all, claims);
    throw tell(why, 'The job differs from each rule.');
  }
  const fitting = named.filter(isLive);
  if (fitting.length === 0) {
    const end = Math.max(...named.map(({ expiresAt }) => expiresAt));
    throw tell(`The rule for this job expired at ${formatInstant(end)}.`);
  }
  const usable = await Promise.all(
    fitting.map(async (rule) => {
      const [person, experiments] = await Promise.all([
        users.withId(rule.person),
        users.experimentsOf(rule.person),
      ]);
      const experiment = experiments.find(({ id, role }) => id === rule.experiment && may(role, 'ci-rules'));
      return person && experiment ? [{ rule, person, name: experiment.name }] : [];
    }),
  );
  const leads = usable.flat();
  if (leads.length === 0)
    throw tell('The rule was added by a user who is no longer a lead of its experiment.');
  const chosen = leads.filter(
    ({ rule, name }) => wanted === undefined || [rule.experiment, name].includes(wanted),
  );
  const [first] = chosen;
  if (!first) {
    const reason = 'The rules for this job are for other experiments.';
    throw tell(`The rules for this job are for other experiments than ${wanted}.`, reason);
  }
  if (chosen.some(({ rule }) => rule.experiment !== first.rule.experiment)) {
    const names = new Set(chosen.map(({ name }) => name).sort());
    throw tell(`Rules of several experiments are for this job: ${[...names].join(', ')}.`);
  }
  return first;
}

/** The most values of rules that are told. */
const MOST_TOLD = 8;

/** In what a job differs from the rules that are nearest to it. @param rules it differs from each of them, of which there is one */
function differenceText(rules: readonly CiRule[], claims: Job['claims']): string {
  const differences = rules.flatMap((rule) => differenceTo(rule, claims) ?? []);
  const most = Math.max(...differences.map(({ alike }) => alike));
  const nearest = differences.filter(({ alike }) => alike === most);
  const { claim, job = 'none' } = nearest[0] ?? {};
  const values = new Set(nearest.flatMap((one) => (one.claim === claim ? one.rule : [])));
  const told = new Intl.ListFormat('en-GB').format([...values].toSorted().slice(0, MOST_TOLD));
  return `${values.size > 1 ? 'The rules have' : 'The rule has'} ${claim} ${told}, this job has ${job}.`;
}

function textOf(claim: unknown): string {
  return typeof claim === 'string' ? claim : '';
}
