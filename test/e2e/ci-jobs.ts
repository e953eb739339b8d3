import { spawn } from 'node:child_process';
import { once } from 'node:events';
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
  return { steps: scripts, shell: ['-e'] };
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
  return { steps, shell: ['-eo', 'pipefail'] };
}

/** Runs a job's steps with bash in a folder. `env` is all that they see besides their own variables. */
export async function runJob({ steps, shell }: Job, folder: string, env: Variables): Promise<JobRun> {
  const exported = join(folder, 'exported');
  rmSync(exported, { force: true });
  const result: JobRun = { exitCode: 0, released: '', log: '' };
  for (const step of steps) {
    if (result.exitCode !== 0 && !step.always) continue;
    const child = spawn('bash', [...shell, '-c', step.script], {
      cwd: folder,
      env: { ...env, GITHUB_ENV: exported, ...exportedBy(exported), ...step.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 60_000,
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      result.log += text;
    });
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      result.log += text;
      if (step.always) result.released += text;
    });
    const [status] = await once(child, 'close');
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
