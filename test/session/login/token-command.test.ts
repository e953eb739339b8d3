import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { Failure } from '../../../src/contract/failure.ts';
import { commandToken, filledIn, type Placeholders } from '../../../src/session/login/token-source.ts';

const CANARY = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2ln';

const folder = mkdtempSync(join(tmpdir(), 'slices-conn-command-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A program of this test's own: Node with a line of code. */
function nodeToken(code: string, args: readonly string[] = [], placeholders: Placeholders = {}) {
  return commandToken([process.execPath, '-e', code, '--', ...args], placeholders, {
    SEEN: 'in the environment',
  });
}

async function failureOf(token: Promise<unknown>): Promise<Failure> {
  const error = await token.catch((found: unknown) => found);
  if (error instanceof Failure) return error;
  throw new Error(`no failure: ${String(error)}`);
}

/** Everything that is told of a failure. */
function told({ message, facts: { why = '', fix = '' } }: Failure): string {
  return [message, why, fix].join('\n');
}

describe('a program that gives a token', () => {
  test('prints it, with white space around', async () => {
    const token = await nodeToken('console.log(" canary ")').get();
    expect(token.reveal()).toBe('canary');
  });

  test('is run without a shell, as it was written', async () => {
    const words = ['a b', '$HOME', '`id`', ';', '*', '>out', "it's", '"', '\\'];
    const token = await nodeToken('console.log(JSON.stringify(process.argv.slice(1)))', words).get();
    expect(JSON.parse(token.reveal())).toEqual(words);
  });

  test('gets the experiment and the project, wherever they stand', async () => {
    const words = ['{experiment}', '--project={project}', '{experiment}/{experiment}', '{other}'];
    const code = 'console.log(JSON.stringify(process.argv.slice(1)))';
    const token = await nodeToken(code, words, { experiment: '$& my; demo', project: 'p' }).get();
    expect(JSON.parse(token.reveal())).toEqual([
      '$& my; demo',
      '--project=p',
      '$& my; demo/$& my; demo',
      '{other}',
    ]);
  });

  test('sees the environment that it is given, and has nothing to read', async () => {
    const code = 'process.stdin.on("end", () => console.log(process.env.SEEN)).resume()';
    expect((await nodeToken(code).get()).reveal()).toBe('in the environment');
  });

  test('is told of as its words, without what they are filled in with', () => {
    const source = commandToken(['slices', 'experiment', 'jwt', '{experiment}', 'a b'], {}, {});
    expect(source.origin).toBe('command');
    expect(source.where).toBe("slices experiment jwt '{experiment}' 'a b'");
  });

  test('may say what it likes on stderr when it succeeds', async () => {
    const token = await nodeToken('console.error("warning"); console.log("canary")').get();
    expect(token.reveal()).toBe('canary');
  });
});

describe('placeholders', () => {
  test.each<[string, string]>([
    ['{experiment}', 'experiment'],
    ['--project={project}', 'project'],
  ])('%s without a value: which is missing, and what to type', (arg, name) => {
    expect(() => filledIn([arg], {})).toThrow(
      expect.objectContaining({
        code: 'usage',
        message: `The profile's token command needs a ${name}.`,
        facts: expect.objectContaining({ fix: `slices-conn ${name} use NAME` }),
      }),
    );
  });

  test('a value that would be taken for a flag is refused where it stands alone', () => {
    expect(() => filledIn(['{experiment}'], { experiment: '--help' })).toThrow(
      expect.objectContaining({ code: 'usage', message: expect.stringContaining('"--help"') }),
    );
    expect(filledIn(['--of={experiment}'], { experiment: '-x' })).toEqual(['--of=-x']);
  });

  test('a value that looks like a placeholder is not filled in again', () => {
    expect(filledIn(['{experiment}'], { experiment: '{project}', project: 'p' })).toEqual(['{project}']);
  });
});

describe('a program that gives none', () => {
  test('ends with another code than 0: which, and what it said last', async () => {
    const code = 'console.error("first\\nYou are logged out."); process.exitCode = 3';
    const failure = await failureOf(nodeToken(code).get());
    expect(failure).toMatchObject({ code: 'not_logged_in', facts: { why: 'It said: You are logged out.' } });
    expect(failure.message).toContain('it ended with 3');
  });

  test('what it printed is no token then, and is not repeated', async () => {
    const code = `console.log("${CANARY}"); console.error("bad: ${CANARY}!"); process.exitCode = 1`;
    const failure = await failureOf(commandToken([process.execPath, script(code)], {}, {}).get());
    expect(failure.facts.why).toBe('It said: bad: [secret]!');
    expect(told(failure)).not.toContain(CANARY);
  });

  test.each(['', 'console.log()', 'console.log(" \\n\\t")'])('prints nothing: %j', async (code) => {
    const failure = await failureOf(nodeToken(code).get());
    expect(failure.code).toBe('not_logged_in');
    expect(failure.message).toContain('gave no token.');
  });

  test('prints without end', async () => {
    const code = 'setInterval(() => process.stdout.write("canary".repeat(10000)), 1)';
    const failure = await failureOf(nodeToken(code).get());
    expect(failure.code).toBe('not_logged_in');
    expect(failure.facts.why).toBeUndefined();
  });

  test('row 56: complains without an end, or in one line of 60,000 characters: cut off, and read in linear time', async () => {
    const began = performance.now();
    for (const code of [
      'setInterval(() => process.stderr.write("canary".repeat(10000)), 1)',
      'console.error("a".repeat(60000)); process.exitCode = 1',
      'console.log("abcdef\\n".repeat(9000)); console.error("abcdef ".repeat(9000)); process.exitCode = 1',
    ]) {
      const failure = await failureOf(nodeToken(code).get());
      expect(failure.code).toBe('not_logged_in');
      expect(failure.facts.why?.length ?? 0).toBeLessThan(1000);
    }
    expect(performance.now() - began).toBeLessThan(15_000);
  });

  test('of a long line no half of what it printed is left', async () => {
    const code = `console.log("${CANARY}"); console.error("x".repeat(480) + " ${CANARY}" + "y".repeat(100)); process.exitCode = 1`;
    const failure = await failureOf(nodeToken(code).get());
    expect(failure.facts.why).toBe(`It said: ${'x'.repeat(480)} …`);
  });

  test('is killed', async () => {
    const failure = await failureOf(nodeToken('process.kill(process.pid, "SIGKILL")').get());
    expect(failure.code).toBe('not_logged_in');
  });

  test.each<[string, () => string]>([
    ['is not there', () => join(folder, 'missing')],
    ['is not on the PATH', () => 'slices-conn-no-such-program'],
    ['may not be run', () => script('')],
  ])('%s', async (_, program) => {
    const failure = await failureOf(commandToken([program(), 'x'], {}, { PATH: '/usr/bin:/bin' }).get());
    expect(failure.code).toBe('usage');
    expect(failure.message).toContain("can't be run");
  });
});

/** A file with code, which nobody may execute by itself. */
function script(code: string): string {
  const path = join(mkdtempSync(join(folder, 'script-')), 'token.mjs');
  writeFileSync(path, code, { mode: 0o600 });
  return path;
}
