import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as v from 'valibot';
import { expect, vi } from 'vitest';
import { parse } from 'yaml';
import { PATIENCE } from '../fixtures/patience.ts';

type Variables = Readonly<Record<string, string>>;

/** A part of a job that is a process of its own. */
export interface Step {
  command: readonly string[];
  /** Whether it is run after a failure too. */
  always: boolean;
  /** Its variables besides the job's. */
  env: Variables;
}

/** A job, as the machine that runs it sees it. */
export interface Job {
  steps: readonly Step[];
}

/** A script, with the shell as the maker of the runner documents. */
export function inBash(options: readonly string[], script: string): readonly string[] {
  return ['bash', ...options, '-c', script];
}

/** The action in this repository. */
export const ACTION = new URL('../../src/packaging/action/', import.meta.url);
const ACTION_USED = /^[\w-]+\/[\w-]+\/src\/packaging\/action@\w+$/;

const Action = v.object({
  inputs: v.record(v.string(), v.object({ required: v.optional(v.string()) })),
  outputs: v.record(v.string(), v.unknown()),
  runs: v.strictObject({ using: v.literal('node24'), main: v.string(), post: v.string() }),
});

/** What `action.yml` says. */
export function readAction(): v.InferOutput<typeof Action> {
  return v.parse(Action, readYaml(readFileSync(new URL('action.yml', ACTION), 'utf8')));
}

/** The step of the action and the one after the job's last step. @throws Error for inputs that it does not take */
function actionSteps(given: Variables, env: Variables): [Step, Step] {
  const { inputs, runs } = readAction();
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(inputs, name));
  const missing = Object.keys(inputs).filter((name) => inputs[name]?.required === 'true' && !given[name]);
  if (unknown.length + missing.length > 0) throw new Error(`inputs: ${[...unknown, ...missing].join()}`);
  const named = Object.fromEntries(
    Object.entries(given).map(([name, text]) => [`INPUT_${name.toUpperCase()}`, text]),
  );
  const step = (file: string, always: boolean): Step => ({
    command: [process.execPath, fileURLToPath(new URL(file, ACTION))],
    always,
    env: { ...env, ...named },
  });
  return [step(runs.main, false), step(runs.post, true)];
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
const Workflow = v.object({
  permissions: v.strictObject({ 'id-token': v.literal('write'), contents: v.literal('read') }),
  jobs: v.strictObject({
    measure: v.object({
      env: Text,
      steps: v.array(
        v.union([
          v.strictObject({ uses: v.string(), with: v.optional(Text) }),
          v.object({ if: v.optional(v.literal('always()')), env: v.optional(Text, {}), run: v.string() }),
        ]),
      ),
    }),
  }),
});

/**
 * A workflow of GitHub Actions with one job, `measure`, which may ask for ID tokens.
 *
 * @param contexts holds what `${{ vars.NAME }}` and others mean
 * @param idTokens what the runner gives to each step of such a job
 */
export function githubJob(
  yaml: string,
  contexts: Readonly<Record<string, Variables>>,
  idTokens: Variables,
): Job {
  const { env, steps } = v.parse(Workflow, readYaml(yaml)).jobs.measure;
  const filled = (variables: Variables): Variables =>
    Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, evaluated(value, contexts)]));
  const job = { ...filled(env), ...idTokens };
  const posts: Step[] = [];
  const commands = steps.flatMap((step): Step[] => {
    if ('run' in step) {
      const command = inBash(['-e'], step.run);
      return [{ command, always: step.if !== undefined, env: { ...job, ...filled(step.env) } }];
    }
    if (!ACTION_USED.test(step.uses)) return [];
    const [main, post] = actionSteps(filled(step.with ?? {}), job);
    posts.unshift(post);
    return [main];
  });
  return { steps: [...commands, ...posts] };
}

function evaluated(value: string, contexts: Readonly<Record<string, Variables>>): string {
  return value.replaceAll(/\$\{\{(.*?)\}\}/g, (_, expression: string) => {
    const [, context = '', name = ''] = /^ (\w+)\.(\w+) $/.exec(expression) ?? [];
    const found = contexts[context]?.[name];
    if (found === undefined) throw new Error(`no value for ${expression}`);
    return found;
  });
}

const Script = v.array(v.string());
const Pipeline = v.object({
  measure: v.object({
    id_tokens: v.record(v.string(), v.strictObject({ aud: v.string() })),
    ...{ before_script: Script, script: Script, after_script: Script },
  }),
});

/**
 * A job of GitLab CI named `measure`: one shell for its scripts, and another one for what is run after them.
 *
 * @param idToken signs an ID token for an audience
 * @param shell of the image: its runner prefers bash, and sets what each of them has
 */
export function gitlabJob(
  yaml: string,
  given: Variables,
  idToken: (audience: string) => string,
  shell: 'bash' | 'sh' = 'bash',
): Job {
  const { before_script, script, after_script, id_tokens } = v.parse(Pipeline, readYaml(yaml)).measure;
  const variables = { ...given };
  for (const [name, { aud }] of Object.entries(id_tokens)) {
    variables[name] = idToken(aud.replace(/\$(\w+)/, (_, of: string) => given[of] ?? ''));
  }
  const step = (script: string, always = false): Step => ({
    command: shell === 'bash' ? inBash(['-eo', 'pipefail'], script) : ['/bin/sh', '-e', '-c', script],
    always,
    env: variables,
  });
  const steps = [...before_script.map((line) => step(line)), step(script.join('\n'))];
  return { steps: [...steps, step(after_script.join('\n'), true)] };
}

/** The files in which GitHub's runner takes what a step tells. */
export const FILES = [
  'GITHUB_ENV',
  'GITHUB_OUTPUT',
  'GITHUB_STATE',
  'GITHUB_PATH',
  'GITHUB_STEP_SUMMARY',
] as const;

/**
 * Runs a job's steps in a folder. `env` is all that they see besides their own variables.
 *
 * @param cancelled the job is cancelled as soon as a step has kept a value of this name for the end of the job: as GitHub's
 *   runner does, the step gets SIGINT, and what it started goes on
 */
export async function runJob(
  { steps }: Job,
  folder: string,
  env: Variables,
  cancelled?: string,
): Promise<JobRun> {
  const temporary = join(folder, 'runner');
  mkdirSync(temporary, { recursive: true });
  const files = Object.fromEntries(FILES.map((name) => [name, join(temporary, name)]));
  for (const file of Object.values(files)) writeFileSync(file, '');
  const told = (name: (typeof FILES)[number]): Variables => toldIn(files[name] ?? '');
  const result: JobRun = { exitCode: 0, released: '', log: '' };
  /** Groups of processes whose leader was cancelled. */
  const left: number[] = [];
  for (const { command, always, env: own } of steps) {
    if (result.exitCode !== 0 && !always) continue;
    const [program = '', ...args] = command;
    const state = Object.entries(told('GITHUB_STATE')).map(([name, value]) => [`STATE_${name}`, value]);
    const added = readFileSync(files['GITHUB_PATH'] ?? '', 'utf8');
    const child = spawn(program, args, {
      cwd: folder,
      env: {
        ...{ ...env, ...files, RUNNER_TEMP: temporary },
        PATH: [...added.split('\n').filter(Boolean), env['PATH']].join(delimiter),
        ...{ ...told('GITHUB_ENV'), ...Object.fromEntries(state), ...own },
      },
      ...{ stdio: ['ignore', 'pipe', 'pipe'], timeout: PATIENCE, detached: true },
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        result.log += text;
        if (always && stream === child.stdout) result.released += text;
      });
    }
    const [ended, closed] = [once(child, 'exit'), once(child, 'close')];
    if (cancelled !== undefined && !always) {
      const isNow = () => told('GITHUB_STATE')[cancelled] !== undefined;
      await vi.waitUntil(() => isNow() || child.exitCode !== null, PATIENCE);
      if (child.exitCode === null) {
        child.kill('SIGINT');
        const [code, signal] = await ended;
        // Some end by it, and some after it.
        expect(signal === 'SIGINT' ? 130 : code).toBe(130);
        result.exitCode = 130;
        left.push(child.pid ?? 0);
        continue;
      }
    }
    const [status] = await closed;
    if (result.exitCode === 0) result.exitCode = status;
  }
  for (const group of left) await vi.waitUntil(() => !isAlive(-group), PATIENCE);
  return result;
}

/** Whether a process, or one of a group, runs. */
function isAlive(id: number): boolean {
  try {
    return process.kill(id, 0);
  } catch {
    return false;
  }
}

/** The values in one of the runner's files: `name=value`, or `name<<END`, lines and `END`. */
export function toldIn(file: string): Record<string, string> {
  const found = readFileSync(file, 'utf8').matchAll(/^(?:(\w+)=(.*)|(\w+)<<(.+)\n([\s\S]*?)\n\4)$/gm);
  return Object.fromEntries(
    [...found].map(([, name, value, long, , lines]) => [name ?? long ?? '', value ?? lines ?? '']),
  );
}
