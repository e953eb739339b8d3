// GitHub's runner starts this file as it is, with nothing installed: first as the step, then after the job's last step.
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { appendFileSync, chmodSync, cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The variables of slices-conn that an input of the action sets. */
const VARIABLES = {
  experiment: 'SLICES_CONN_EXPERIMENT',
  'base-url': 'SLICES_CONN_BASE_URL',
  'portal-url': 'SLICES_CONN_PORTAL_URL',
  'auth-url': 'SLICES_CONN_AUTH_URL',
};

/** The inputs that every use of the action gives. */
const REQUIRED = ['site1', 'site2', 'bandwidth', 'for'];

/** How often the link is asked for while the service is not available (exit code 7). The program waits by itself. */
const ATTEMPTS = 3;

/** A step that can't go on; the message is for people. */
class Stopped extends Error {
  /** @param {string} message @param {number} exitCode */
  constructor(message, exitCode) {
    super(message);
    this.exitCode = exitCode;
  }
}

try {
  if (process.env['STATE_started']) release();
  else book();
} catch (error) {
  // In a workflow command these characters have a meaning.
  const message = String(error instanceof Error ? error.message : error)
    .replaceAll('%', '%25')
    .replaceAll('\r', '%0D')
    .replaceAll('\n', '%0A');
  process.stdout.write(`::error title=slices-conn::${message}\n`);
  process.exitCode = error instanceof Stopped ? error.exitCode : 1;
}

/** The step itself: sets the program up, books the link, and tells the job about it. */
function book() {
  tell('GITHUB_STATE', { started: 'true' });
  const missing = REQUIRED.filter((name) => input(name) === '');
  // GitHub's runner does not look whether they are there.
  if (missing.length > 0) throw new Stopped(`An input is missing: ${missing.join(', ')}.`, 2);
  const program = setUp();
  const file = join(folder(), `link-${randomUUID()}.jwt`);
  const flags = ['--bandwidth', input('bandwidth'), '--start-now', '--for', input('for')];
  // The same key at each attempt: an answer that got lost does not book twice.
  const args = ['reserve', input('site1'), input('site2'), ...flags, '--idempotency-key', randomUUID()];
  // Before anything is sent: a job that is cancelled meanwhile ends this step, and its answer with it.
  tell('GITHUB_STATE', { program: kept(program), asked: JSON.stringify(args) });
  const reserve = () => run(program, [...args, '--save', file]);
  let ended = reserve();
  for (let attempt = 1; attempt < ATTEMPTS && ended.exitCode === 7; attempt += 1) ended = reserve();
  // What a failure has booked is released too: the answer may not have verified.
  const id = ended.result?.reservation?.id ?? ended.error?.reservation;
  if (id || !ended.error?.maybeDone) tell('GITHUB_STATE', { answered: 'true', reservation: id ?? '' });
  if (ended.exitCode !== 0) throw stopped(ended);
  const { site1, site2, bandwidth, end_date: end, ...reservation } = ended.result.reservation;
  const tags = ['site1_s_tag', 'site1_c_tag', 'site2_s_tag', 'site2_c_tag'];
  const shown = Object.fromEntries(tags.map((tag) => [tag, reservation[tag]]));
  tell('GITHUB_OUTPUT', { id, ...shown, end, file });
  // The names that `slices-conn run` gives its command.
  const variables = {
    RESERVATION_ID: id,
    RESERVATION_FILE: file,
    SITE1: site1,
    SITE2: site2,
    ...Object.fromEntries(tags.map((tag) => [tag.toUpperCase(), reservation[tag]])),
    BANDWIDTH: bandwidth,
    END: end,
  };
  tell(
    'GITHUB_ENV',
    Object.fromEntries(Object.entries(variables).map(([name, value]) => [`SLICES_CONN_${name}`, value])),
  );
  const reserved = `Reserved ${site1} – ${site2}, ${bandwidth} Mbps until ${end}: ${id}`;
  process.stdout.write(`${reserved}\n`);
  for (const tag of tags) process.stdout.write(`  ${tag} ${reservation[tag]}\n`);
  summarise(reserved, '', ...tags.map((tag) => `- ${tag} ${reservation[tag]}`), '');
}

/** After the job's last step, whatever it came to. */
function release() {
  const { STATE_program: program, STATE_asked: asked, STATE_answered: answered } = process.env;
  const id = answered ? process.env['STATE_reservation'] : asked && idUnderKey(program, JSON.parse(asked));
  if (!id) {
    process.stdout.write('Nothing was booked.\n');
    return;
  }
  const ended = run(program, ['delete', '--yes', id]);
  if (ended.exitCode === 3) process.stdout.write(`${id} was released before.\n`);
  else if (ended.exitCode === 0) process.stdout.write(`Released ${id}\n`);
  else throw stopped(ended);
}

/**
 * What the step has booked, of whose answer nothing is known: the same request under the same key is answered with that
 * reservation. Where the step had not sent it yet, it is booked now, to be released.
 */
function idUnderKey(program, args) {
  const ended = run(program, args);
  const id = ended.result?.reservation?.id ?? ended.error?.reservation;
  // What was refused is not booked; of all else nobody knows.
  if (!id && ended.exitCode !== 6) throw stopped(ended);
  return id;
}

/** A copy of the program for the end of the job, since a later step may change or remove what it finds on the PATH. @returns its launcher */
function kept(program) {
  const copy = join(folder(), `kept-${randomUUID()}`);
  const own = join(dirname(program), '..');
  for (const part of ['bin', join('dist', 'cli'), 'package.json']) {
    cpSync(join(own, part), join(copy, part), { recursive: true });
  }
  return join(copy, 'bin', 'slices-conn.js');
}

/**
 * Installs the program, and puts `slices-conn` on the PATH of the job's later steps.
 *
 * @returns {string} the path of its launcher
 */
function setUp() {
  const wanted = input('package');
  const own = fileURLToPath(new URL('../../..', import.meta.url));
  const launcher = join('bin', 'slices-conn.js');
  let program = join(own, launcher);
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  if (/^git\+/.test(wanted)) {
    throw new Stopped(
      'The input package is a repository: npm can’t build this program from one. Give the address of a tarball.',
      2,
    );
  }
  if (wanted !== '') {
    install('npm', ['install', '--prefix', folder(), ...quiet, wanted], folder());
    program = join(folder(), 'node_modules', 'slices-conn', launcher);
  } else if (!existsSync(join(own, 'dist', 'cli', 'entry.cjs'))) {
    install('npm', ['ci', '--include=dev', ...quiet], own);
    install(process.execPath, [join('src', 'build', 'bundle.ts')], own);
  }
  const bin = join(folder(), 'bin');
  mkdirSync(bin, { recursive: true });
  // This Node.js is new enough; the job's own one may not be.
  writeFileSync(join(bin, 'slices-conn'), `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`);
  chmodSync(join(bin, 'slices-conn'), 0o755);
  // PowerShell and cmd on a Windows runner read this one.
  writeFileSync(join(bin, 'slices-conn.cmd'), `@"${process.execPath}" "${program}" %*\r\n`);
  appendFileSync(process.env['GITHUB_PATH'] ?? '', `${bin}\n`);
  return program;
}

/** Runs a step of the installation, which needs no secret. */
function install(command, args, cwd) {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(INPUT|SLICES_CONN|ACTIONS)_/.test(name)),
  );
  const { PATH = '' } = env;
  // What npm starts finds this Node.js first.
  env['PATH'] = [join(process.execPath, '..'), PATH].join(delimiter);
  // On Windows npm is a script of cmd, which a shell alone starts.
  const shell = process.platform === 'win32' && command === 'npm';
  const { status, error } = spawnSync(command, args, {
    cwd,
    env,
    shell,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status !== 0) throw new Stopped(`${command} ${args.join(' ')} failed. ${error?.message ?? ''}`, 1);
}

/** Runs slices-conn. @returns its exit code, its result and its error object */
function run(program, args) {
  const env = { ...process.env };
  for (const [name, variable] of Object.entries(VARIABLES)) {
    const value = input(name);
    if (value !== '') env[variable] = value;
  }
  const { status, stdout, stderr, error } = spawnSync(process.execPath, [program, ...args, '--json'], {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (error) throw error;
  const exitCode = status ?? 1;
  if (exitCode === 0) return { exitCode, result: JSON.parse(stdout) };
  const lines = stderr.trimEnd().split('\n');
  return { exitCode, error: parsed(lines.at(-1) ?? '')?.error, said: stderr };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function stopped({ exitCode, error, said = '' }) {
  const { message = said, why, fix } = error ?? {};
  // Of the flags, a person has chosen those of the inputs.
  const tried = fix?.replace(/ --(?:json\b|(?:idempotency-key|save) (?:'[^']*'|\S+))/g, '');
  const parts = [message, ...(why ? [why] : []), ...(tried ? [`Try: ${tried}`] : [])];
  return new Stopped(parts.join('\n'), exitCode);
}

/** The value of an input, as the runner gives it; empty where it is left out. */
function input(name) {
  return (process.env[`INPUT_${name.toUpperCase()}`] ?? '').trim();
}

/** A folder of this job alone, which the runner empties. */
function folder() {
  const path = join(process.env['RUNNER_TEMP'] ?? '', 'slices-conn');
  mkdirSync(path, { recursive: true });
  return path;
}

/** Adds values to one of the runner's files. A delimiter that no value holds keeps them apart. */
function tell(variable, values) {
  const delimiterLine = `end-${randomUUID()}`;
  for (const [name, value] of Object.entries(values)) {
    appendFileSync(process.env[variable] ?? '', `${name}<<${delimiterLine}\n${value}\n${delimiterLine}\n`);
  }
}

/** Adds lines to the summary that the job's page shows. Runners of a GitHub of one's own may have none. */
function summarise(...lines) {
  const file = process.env['GITHUB_STEP_SUMMARY'];
  if (file) appendFileSync(file, `${lines.join('\n')}\n`);
}
