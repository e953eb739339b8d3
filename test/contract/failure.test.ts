import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { moveAway, shellWord } from '../../src/contract/failure.ts';

const TEXTS = [
  ...['plain-word_1.0:/@%+,=', '', "my link's", '$(touch run) `touch run` $HOME', '~', '=ls', '%1', '!!'],
  ...[
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
  ],
];
const SHELLS = ['sh', 'bash', 'zsh', 'fish'].filter((shell) => spawnSync(shell, ['-c', 'true']).status === 0);

test.each(SHELLS)('row 60: in %s each text stays one unchanged word', (shell) => {
  const line = `printf '%s\\n--\\n' ${TEXTS.map(shellWord).join(' ')}`;
  const { stdout, stderr } = spawnSync(shell, ['-c', line], { encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(stdout).toBe(TEXTS.map((text) => `${text}\n--\n`).join(''));
});

test('plain words stay unquoted, and a file with a space in its path is moved as one file (THREATS.md 45)', () => {
  const plain = ['be-gent1', '2026-12-01T10:00:00.000Z', 'https://a.example/x', 'a=b', '--flag'];
  expect(plain.map(shellWord)).toEqual(plain);
  expect(moveAway('/home/my files/x')).toBe("mv '/home/my files/x' '/home/my files/x.bad'");
});
