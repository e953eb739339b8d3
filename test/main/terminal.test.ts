import { spawn } from 'node:child_process';
import { onTestFinished, test, vi } from 'vitest';
import { PATIENCE } from '../fixtures/patience.ts';

const terminal = new URL('../../src/main/terminal.ts', import.meta.url).href;
const program = `
import { terminal } from '${terminal}';
const { ask } = terminal(process.env);
const answers = [];
for (const question of ['first? ', 'second? ', 'third? ']) answers.push(await ask(question));
console.log(JSON.stringify(answers));
`;

test('what is typed ahead of a question answers it, also the beginning of a line', async () => {
  // It gives the program a terminal.
  const person = spawn(
    'script',
    ['-qec', `"${process.execPath}" --input-type=module -e "$PROGRAM"`, '/dev/null'],
    {
      env: { ...process.env, PROGRAM: program, NODE_OPTIONS: '' },
    },
  );
  onTestFinished(() => void person.kill('SIGKILL'));
  let shown = '';
  person.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
  });
  const sees = (text: string) => vi.waitUntil(() => shown.includes(text), { timeout: PATIENCE });
  await sees('first? ');
  person.stdin.write('one\rtwo\rthr');
  await sees('third? ');
  person.stdin.write('ee\r');
  await sees('["one","two","three"]');
});
