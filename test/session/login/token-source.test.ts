import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Failure } from '../../../src/contract/failure.ts';
import type { Secret } from '../../../src/contract/secret.ts';
import {
  commandToken,
  filledIn,
  givenToken,
  type Placeholders,
} from '../../../src/session/login/token-source.ts';
import { failureOf } from '../../fixtures/failures.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';

const folder = temporaryFolder();

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

describe.each(['SLICES_CONN_USER_TOKEN', 'SLICES_CONN_EXPERIMENT_TOKEN'] as const)('%s', (variable) => {
  const twin = `${variable}_FILE`;
  const given = (env: Readonly<Record<string, string>>) => givenToken(env, variable);

  test('gives its text without the white space around it', async () => {
    const source = given({ [variable]: ' canary\n' });
    expect(source).toMatchObject({ origin: 'environment', where: variable });
    expect((await source?.get())?.reveal()).toBe('canary');
  });

  test.each([
    'canary',
    'canary\n',
    '\n canary\r\n',
    '\ufeffcanary',
    '"canary"',
    "Bearer 'canary'",
    '"bearer canary"\n',
  ])('its twin names a file that holds %j', async (text) => {
    const path = file('good', text);
    const source = given({ [twin]: path });
    expect(source).toMatchObject({ origin: 'file', where: path });
    expect((await source?.get())?.reveal()).toBe('canary');
  });

  test('has priority over its twin', () => {
    expect(given({ [variable]: 'canary', [twin]: '/nowhere' })).toMatchObject({ origin: 'environment' });
  });

  test.each(['', ' ', '\n'])('counts as unset when it is %j', (empty) => {
    expect(given({ [variable]: empty })).toBeUndefined();
    expect(given({ [variable]: empty, [twin]: '/nowhere' })).toMatchObject({ origin: 'file' });
  });

  test('gives no token when it and its twin are unset', () => {
    expect(given({})).toBeUndefined();
    expect(given({ [twin]: '' })).toBeUndefined();
  });

  test.each<[string, () => string, RegExp]>([
    ['missing', () => join(folder, 'missing'), /can't be read/],
    ['a folder', () => folder, /can't be read/],
    ['empty', () => file('empty', ''), /is empty/],
    ['white space', () => file('blank', ' \n'), /is empty/],
  ])('its twin names a file that is %s: the failure names file and variable', async (_, make, says) => {
    const path = make();
    const error = await given({ [twin]: path })
      ?.get()
      .catch((found: unknown) => found);
    expect(error).toBeInstanceOf(Failure);
    expect(error).toMatchObject({ code: 'file_unusable', message: expect.stringMatching(says) });
    expect(String(error)).toContain(path);
    expect(String(error)).toContain(twin);
  });

  test.each(['\u001b[2Jcanary', 'can\u202eary', 'can\nary', '\u9053'])(
    'with %j is a failure that does not repeat it (THREATS.md 110)',
    async (text) => {
      for (const env of [{ [variable]: text }, { [twin]: file('odd', text) }]) {
        const { code, message, facts } = await failureOf(async () => given(env)?.get());
        expect([code, message]).toEqual(['token_invalid', expect.stringContaining('has no token.')]);
        expect(`${message}${facts.why}`).not.toContain(text);
      }
    },
  );
});

const CANARY = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2ln';

/** A token of a program: Node with a line of code. */
function nodeToken(code: string, args: readonly string[] = [], placeholders: Placeholders = {}) {
  return commandToken([process.execPath, '-e', code, '--', ...args], placeholders, {
    SEEN: 'in-the-environment',
  });
}

/** Prints its arguments in the place of a token, which has no spaces. */
const SHOWN_WORDS = 'console.log(Buffer.from(JSON.stringify(process.argv.slice(1))).toString("base64url"))';

function wordsIn(token: Secret): unknown {
  return JSON.parse(Buffer.from(token.reveal(), 'base64url').toString());
}

/** All text of a failure. */
function told({ message, facts: { why = '', fix = '' } }: Failure): string {
  return [message, why, fix].join('\n');
}

describe('a program that gives a token', () => {
  test('gives none with control characters in it (THREATS.md 110)', async () => {
    const { code, message } = await failureOf(() => nodeToken('console.log("a\\u001b[2J")').get());
    expect([code, message]).toEqual(['not_logged_in', expect.stringContaining('gave no token.')]);
  });

  test('runs without a shell, with unchanged words', async () => {
    const words = ['a b', '$HOME', '`id`', ';', '*', '>out', "it's", '"', '\\'];
    const token = await nodeToken(SHOWN_WORDS, words).get();
    expect(wordsIn(token)).toEqual(words);
  });

  test('gets the experiment and the project in place of every placeholder', async () => {
    const words = ['{experiment}', '--project={project}', '{experiment}/{experiment}', '{other}'];
    const token = await nodeToken(SHOWN_WORDS, words, { experiment: '$& my; demo', project: 'p' }).get();
    expect(wordsIn(token)).toEqual(['$& my; demo', '--project=p', '$& my; demo/$& my; demo', '{other}']);
  });

  test('gets the given environment and an empty stdin', async () => {
    const code = 'process.stdin.on("end", () => console.log(process.env.SEEN)).resume()';
    expect((await nodeToken(code).get()).reveal()).toBe('in-the-environment');
  });

  test('is described by its words, with the placeholders', () => {
    const source = commandToken(['slices', 'experiment', 'jwt', '{experiment}', 'a b'], {}, {});
    expect(source.origin).toBe('command');
    expect(source.where).toBe("slices experiment jwt '{experiment}' 'a b'");
  });
});

describe('placeholders', () => {
  test.each<[string, string]>([
    ['{experiment}', 'experiment'],
    ['--project={project}', 'project'],
  ])('%s without a value: the failure names it and the next step', (arg, name) => {
    expect(() => filledIn([arg], {})).toThrow(
      expect.objectContaining({
        code: 'usage',
        message: `The profile's token command needs ${name === 'experiment' ? 'an' : 'a'} ${name}.`,
        facts: expect.objectContaining({ fix: `slices-conn ${name} list` }),
      }),
    );
  });

  test('a value that looks like a flag is refused when it is a whole word', () => {
    expect(() => filledIn(['{experiment}'], { experiment: '--help' })).toThrow(
      expect.objectContaining({ code: 'usage', message: expect.stringContaining('"--help"') }),
    );
    expect(filledIn(['--of={experiment}'], { experiment: '-x' })).toEqual(['--of=-x']);
  });

  test('a value that looks like a placeholder is not filled in again', () => {
    expect(filledIn(['{experiment}'], { experiment: '{project}', project: 'p' })).toEqual(['{project}']);
  });
});

describe('a program without a token', () => {
  test('ends with another code than 0: the failure has the code and the last line of stderr', async () => {
    const code = 'console.error("first\\nYou are logged out."); process.exitCode = 3';
    const failure = await failureOf(() => nodeToken(code).get());
    expect(failure).toMatchObject({ code: 'not_logged_in', facts: { why: 'It said: You are logged out.' } });
    expect(failure.message).toContain('it ended with 3');
  });

  test('fails: its output is not a token and is not repeated', async () => {
    const code = `console.log("${CANARY}"); console.error("bad: ${CANARY}!"); process.exitCode = 1`;
    const failure = await failureOf(() => commandToken([process.execPath, script(code)], {}, {}).get());
    expect(failure.facts.why).toBe('It said: bad: [secret]!');
    expect(told(failure)).not.toContain(CANARY);
  });

  test.each(['', 'console.log()', 'console.log(" \\n\\t")'])('prints nothing: %j', async (code) => {
    const failure = await failureOf(() => nodeToken(code).get());
    expect(failure.code).toBe('not_logged_in');
    expect(failure.message).toContain('gave no token.');
  });

  test('prints endlessly', async () => {
    const code = 'setInterval(() => process.stdout.write("canary".repeat(10000)), 1)';
    const failure = await failureOf(() => nodeToken(code).get());
    expect(failure.code).toBe('not_logged_in');
    expect(failure.facts.why).toBeUndefined();
  });

  test('row 56: prints endless or very long errors: they are cut and read in linear time', async () => {
    const began = performance.now();
    for (const code of [
      'setInterval(() => process.stderr.write("canary".repeat(10000)), 1)',
      'console.error("a".repeat(60000)); process.exitCode = 1',
      'console.log("abcdef\\n".repeat(9000)); console.error("abcdef ".repeat(9000)); process.exitCode = 1',
    ]) {
      const failure = await failureOf(() => nodeToken(code).get());
      expect(failure.code).toBe('not_logged_in');
      expect(String(failure.facts.why).length).toBeLessThan(1000);
    }
    expect(performance.now() - began).toBeLessThan(15_000);
  });

  test('prints a token in a long line of stderr: no part of it is left', async () => {
    const code = `console.log("${CANARY}"); console.error("x".repeat(480) + " ${CANARY}" + "y".repeat(100)); process.exitCode = 1`;
    const failure = await failureOf(() => nodeToken(code).get());
    expect(failure.facts.why).toBe(`It said: ${'x'.repeat(480)} …`);
  });

  test.each<[string, () => string]>([
    ['is not there', () => join(folder, 'missing')],
    ['is not on the PATH', () => 'slices-conn-no-such-program'],
    ['may not be run', () => script('')],
  ])('%s', async (_, program) => {
    const failure = await failureOf(() =>
      commandToken([program(), 'x'], {}, { PATH: '/usr/bin:/bin' }).get(),
    );
    expect(failure.code).toBe('usage');
    expect(failure.message).toContain("can't be run");
  });
});

/** A file with code, without the right to execute it. */
function script(code: string): string {
  const path = join(temporaryFolder(), 'token.mjs');
  writeFileSync(path, code, { mode: 0o600 });
  return path;
}
