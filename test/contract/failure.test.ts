import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { moveAway, shellWord } from '../../src/contract/failure.ts';

const TEXTS = [
  'plain-word_1.0:/@%+,=',
  '',
  "my link's",
  '$(touch run) `touch run` $HOME',
  '~',
  '=ls',
  '%1',
  '!!',
  'a\\b',
  'a\\',
  "\\'",
  "'",
  "''\\\\'",
  '{a,b} * ? [x] #',
  'a;b|c&d>e<f',
  'two\nlines',
  '"quoted"',
  'Poznań',
];

const SHELLS = ['sh', 'bash', 'zsh', 'fish'].filter((shell) => spawnSync(shell, ['-c', 'true']).status === 0);

describe.each(SHELLS)('row 60: in %s', (shell) => {
  test('each text stays one unchanged word', () => {
    const line = `printf '%s\\n--\\n' ${TEXTS.map(shellWord).join(' ')}`;
    const { stdout, stderr } = spawnSync(shell, ['-c', line], { encoding: 'utf8' });
    expect(stderr).toBe('');
    expect(stdout).toBe(TEXTS.map((text) => `${text}\n--\n`).join(''));
  });
});

test('plain words stay unquoted', () => {
  for (const text of ['be-gent1', '2026-12-01T10:00:00.000Z', 'https://a.example/x', 'a=b', '--flag']) {
    expect(shellWord(text)).toBe(text);
  }
});

test('row 45: a file with a space in its path is moved as one file', () => {
  expect(moveAway('/home/my files/x')).toBe("mv '/home/my files/x' '/home/my files/x.bad'");
});
