import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { parse } from 'yaml';

type Variables = Readonly<Record<string, string>>;

/** A part of a job that a shell runs by itself. */
export interface Step {
  script: string;
  /** Whether it is run after a failure too. */
  always: boolean;
  /** Its variables besides the job's. */
  env: Variables;
}

/** A job, as the machine that runs it sees it. */
export interface Job {
  steps: readonly Step[];
  /** How its shell is started, as the maker of the runner documents. */
  shell: readonly string[];
}

/** What a job came to. */
export interface JobRun {
  /** Of the first step that failed; 0 when none did. */
  exitCode: number | null;
  /** What the steps printed that are run after a failure too. */
  released: string;
  /** What they all printed, for the message of a test that fails. */
  log: string;
}

/** What both jobs install, which the test's machine has. */
const INSTALLED = /^(npm install -g slices-conn|apt-get update && apt-get install -y jq)$/;

/** Reads YAML in which every scalar stays the text that it is. @throws YAMLParseError */
const readYaml = (text: string): unknown => parse(text, { schema: 'failsafe' });

const Text = v.record(v.string(), v.string());
const Workflow = v.strictObject({
  name: v.string(),
  on: v.literal('workflow_dispatch'),
  jobs: v.strictObject({
    measure: v.strictObject({
      'runs-on': v.literal('ubuntu-latest'),
      'timeout-minutes': v.string(),
      env: Text,
      steps: v.array(
        v.union([
          v.strictObject({ uses: v.string(), with: v.optional(Text) }),
          v.strictObject({
            name: v.optional(v.string()),
            if: v.optional(v.literal('always()')),
            env: v.optional(Text, {}),
            run: v.string(),
          }),
        ]),
      ),
    }),
  }),
});

/** A workflow of GitHub Actions with one job, `measure`. `contexts` holds what `${{ secrets.NAME }}` and others mean. */
export function githubJob(yaml: string, contexts: Readonly<Record<string, Variables>>): Job {
  const { env, steps } = v.parse(Workflow, readYaml(yaml)).jobs.measure;
  const filled = (variables: Variables): Variables =>
    Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, evaluated(value, contexts)]));
  const scripts = steps.flatMap((step) =>
    'run' in step
      ? [{ script: step.run, always: step.if !== undefined, env: { ...filled(env), ...filled(step.env) } }]
      : [],
  );
  return { steps: withoutInstalls(scripts), shell: ['-e'] };
}

function evaluated(value: string, contexts: Readonly<Record<string, Variables>>): string {
  return value.replaceAll(/\$\{\{(.*?)\}\}/g, (_, expression: string) => {
    const [, context = '', name = ''] = /^ (\w+)\.(\w+) $/.exec(expression) ?? [];
    const found = contexts[context]?.[name];
    if (found === undefined) throw new Error(`no value for ${expression}`);
    return found;
  });
}

const Pipeline = v.strictObject({
  measure: v.strictObject({
    image: v.literal('node:24'),
    timeout: v.string(),
    before_script: v.array(v.string()),
    script: v.array(v.string()),
    after_script: v.array(v.string()),
  }),
});

/** A job of GitLab CI named `measure`: one shell for its scripts, and another one for what is run after them. */
export function gitlabJob(yaml: string, variables: Variables): Job {
  const { before_script, script, after_script } = v.parse(Pipeline, readYaml(yaml)).measure;
  const installs = before_script.map((line) => ({ script: line, always: false, env: variables }));
  const steps = [
    ...installs,
    { script: script.join('\n'), always: false, env: variables },
    { script: after_script.join('\n'), always: true, env: variables },
  ];
  return { steps: withoutInstalls(steps), shell: ['-eo', 'pipefail'] };
}

function withoutInstalls(steps: readonly Step[]): Step[] {
  const left = steps.filter(({ script }) => !INSTALLED.test(script));
  if (left.length === steps.length) throw new Error('the job installs nothing');
  return left;
}

/** Runs a job's steps with bash in a folder. `env` is all that they see besides their own variables. */
export function runJob({ steps, shell }: Job, folder: string, env: Variables): JobRun {
  const exported = join(folder, 'exported');
  rmSync(exported, { force: true });
  const result: JobRun = { exitCode: 0, released: '', log: '' };
  for (const step of steps) {
    if (result.exitCode !== 0 && !step.always) continue;
    const { status, stdout, stderr } = spawnSync('bash', [...shell, '-c', step.script], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...env, GITHUB_ENV: exported, ...exportedBy(exported), ...step.env },
      timeout: 60_000,
    });
    result.log += stdout + stderr;
    if (step.always) result.released += stdout;
    if (result.exitCode === 0) result.exitCode = status;
  }
  return result;
}

/** The variables that earlier steps have left for later ones, a line each. */
function exportedBy(file: string): Variables {
  if (!existsSync(file)) return {};
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}
