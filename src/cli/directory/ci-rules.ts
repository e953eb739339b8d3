import * as v from 'valibot';
import { issuerName } from '../../contract/addresses.ts';
import { type CiRule, CiRuleRequest, type CiRuleRequestBody } from '../../contract/ci-rules.ts';
import { Failure, ownCommand } from '../../contract/failure.ts';
import type { OptionsOf, OptionTable } from '../../contract/flags.ts';
import { formatInstant } from '../../contract/instants.ts';
import { ADDRESSES } from '../../session/profiles/profile.ts';
import { GROUP_VARIABLES, PROFILE_KEYS } from '../../session/profiles/profile-keys.ts';
import type { Profile } from '../../session/profiles/profiles.ts';
import { parseTime } from '../../words/typed-time.ts';
import type { CommandFile } from '../command.ts';
import type { Context } from '../context.ts';
import { theOne } from '../one-of.ts';
import { answeredTime } from '../print/cards.ts';
import { folded } from '../print/folded.ts';
import { escapeText } from '../print/output.ts';
import { shortTime, timeTeller } from '../times.ts';

const ADD_OPTIONS = {
  github: {
    flags: '--github <owner/repository>',
    help: 'a repository on GitHub',
    conflicts: ['gitlab', 'refType'],
  },
  gitlab: { flags: '--gitlab <group/project>', help: 'a project on GitLab' },
  ref: {
    flags: '--ref <ref>',
    help: 'on GitHub in full, such as refs/heads/main; on GitLab the name of a branch or tag',
  },
  refType: {
    flags: '--ref-type <type>',
    help: 'what --ref is on GitLab (default: branch)',
    choices: ['branch', 'tag'],
  },
  environment: { flags: '--environment <name>', help: 'the environment that the job names' },
  end: {
    flags: '--end <time>',
    help: 'until when (default: as long as the experiment lasts, 90 days at most)',
  },
} as const satisfies OptionTable;
type CiFlags = OptionsOf<typeof ADD_OPTIONS>;

/** `slices-conn experiment ci add`. */
export const add: CommandFile = {
  command: {
    about:
      'Jobs of the repository that run for exactly this branch, tag or environment act as you in the experiment, and nowhere else. They prove who they are by the ID token of their CI, so no secret is kept there. Only jobs of a push, of a schedule and of a start by hand do: pull requests and merge requests may run code of others.\nThe repository is known by its id from its first job on: who takes its name later is refused.',
    options: ADD_OPTIONS,
  },
  run: addCiRule,
};

/** Lets the jobs of a repository act as the user in the experiment. */
async function addCiRule(context: Context, _args: readonly string[], flags: CiFlags): Promise<void> {
  const { session, output, clock } = context;
  const asked = requestOf(flags);
  const shown = await clock.times();
  const { end } = flags;
  const expires_at = end === undefined ? undefined : formatInstant(parseTime(end, shown, { isEnd: true }));
  const opened = await session();
  const { id, name } = await opened.experiment();
  const rule = await opened.portal.addCiRule(id, { ...asked, expires_at });
  const until = answeredTime(rule.expires_at, timeTeller(shown));
  const variables = variablesOf(opened.profile, name);
  const { authUrl = '', issuer = authUrl } = opened.profile;
  /** Lets the CI give the job ID tokens. */
  const permission =
    rule.ci === 'github'
      ? 'permissions: { id-token: write, contents: read }'
      : `id_tokens: { SLICES_CONN_ID_TOKEN: { aud: ${issuerName(issuer)} } }`;
  await output.result({ rule, variables }, ({ columns = Number.POSITIVE_INFINITY }) => {
    const lines = Object.entries(variables).map(([variable, value]) => `  ${variable}=${value}`);
    const acting = `Jobs of ${jobsOf(rule)} now act as you in experiment ${name}, until ${until}.`;
    return [
      ...folded(escapeText(acting), columns),
      'They need these variables, which are no secrets:',
      ...lines.map(escapeText),
      'and in the file of the job:',
      `  ${escapeText(permission)}`,
      ...folded(`To end this: ${output.advised(ownCommand('experiment', 'ci', 'remove', rule.id))}`, columns),
      '',
    ].join('\n');
  });
}

/** The variables that a job needs, since it has no profile: the services, and the experiment where it is known. */
export function variablesOf(profile: Profile, experiment?: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const key of ADDRESSES) {
    const value = profile[key];
    if (value !== undefined) found[PROFILE_KEYS[key].variables[0]] = value;
  }
  const usual = PROFILE_KEYS.apiGroups.default.split(',');
  for (const [at, group] of profile.apiGroups.split(',').entries()) {
    const variable = GROUP_VARIABLES[at];
    if (variable !== undefined && group !== usual[at]) found[variable] = group;
  }
  return experiment === undefined ? found : { ...found, SLICES_CONN_EXPERIMENT: experiment };
}

/** @throws Failure `usage` for flags that make no rule: the service would refuse it with the same words */
function requestOf({ github, gitlab, ref, refType, environment }: CiFlags): CiRuleRequestBody {
  const repository = github ?? gitlab;
  if (repository === undefined) throw new Failure('usage', '--github or --gitlab is missing.');
  const isBranch = gitlab !== undefined && ref !== undefined;
  const request = {
    ci: github === undefined ? 'gitlab' : 'github',
    repository,
    ref,
    ref_type: refType ?? (isBranch ? 'branch' : undefined),
    environment,
  } as const;
  const { issues } = v.safeParse(CiRuleRequest, request);
  if (issues) {
    const [, path] = /^https:\/\/github\.com\/([^/]+\/[^/]+?)(?:\.git)?\/?$/.exec(github ?? '') ?? [];
    const isShort = github !== undefined && ref !== undefined && !ref.startsWith('refs/');
    const whole = isShort ? { ref: `refs/heads/${ref}` } : undefined;
    throw new Failure('usage', issues[0].message, {
      fix: path === undefined ? whole : { ...whole, github: path },
    });
  }
  return request;
}

/** `slices-conn experiment ci list`. */
export const list: CommandFile = { command: {}, run: listCiRules };

/** Lists whose jobs act as whom in the experiment. */
async function listCiRules({ session, output, clock: { times } }: Context): Promise<void> {
  const opened = await session();
  const { id } = await opened.experiment();
  const items = await opened.portal.ciRules(id);
  const context = await times();
  await output.result({ items }, (print) => {
    if (items.length === 0) return 'No jobs of a CI act in this experiment.\n';
    const head = ['id', 'jobs of', 'act as', `until (${context.zone})`];
    const tell = (instant: number): string => shortTime(instant, context);
    const rows = items.map((rule) => [
      rule.id,
      jobsOf(rule),
      rule.user_name,
      answeredTime(rule.expires_at, tell),
    ]);
    return print.tableOrCards(head, rows);
  });
}

/** `slices-conn experiment ci remove ID`. */
export const remove: CommandFile = {
  command: { args: { '<rule-id>': 'the id of a rule, or a part of it that is in no other id' } },
  run: removeCiRule,
};

/** Ends a rule: its jobs act no more. */
async function removeCiRule({ session, output }: Context, [wanted = '']: readonly string[]): Promise<void> {
  const opened = await session();
  const { id: experiment, name } = await opened.experiment();
  const rule = theOne(wanted, await opened.portal.ciRules(experiment), {
    missing: `Experiment ${name} has no rule ${JSON.stringify(wanted)} for jobs of a CI.`,
    fix: 'slices-conn experiment ci list',
  });
  await opened.portal.removeCiRule(experiment, rule.id);
  await output.result(
    { items: [{ id: rule.id, removed: true }] },
    ({ paint }) => `${paint.green('Removed')} ${escapeText(`${rule.id} (${jobsOf(rule)})`)}\n`,
  );
}

/** @example jobsOf(rule) // 'octo/measure on refs/heads/main' */
function jobsOf({ repository, ref, ref_type: type, environment }: CiRule): string {
  const on = ref === null ? '' : ` on ${type === null ? '' : `${type} `}${ref}`;
  return `${repository}${on}${environment === null ? '' : ` in environment ${environment}`}`;
}
