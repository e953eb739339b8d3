import { spawn } from 'node:child_process';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { openProgressLine } from '../../src/main/terminal.ts';
import { PATIENCE } from '../fixtures/patience.ts';

const module = new URL('../../src/main/terminal.ts', import.meta.url).href;
const program = `
import { terminal } from '${module}';
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

afterEach(() => void vi.unstubAllEnvs());

function terminalOf(columns: number | undefined) {
  // ora draws nothing in a job.
  vi.stubEnv('CI', undefined);
  vi.stubEnv('TERM', 'xterm');
  const write = vi.fn(() => true);
  const terminal: NodeJS.WriteStream = Object.create(process.stderr, {
    columns: { value: columns, writable: true },
    isTTY: { value: true },
    write: { value: write, writable: true },
    ...{ cursorTo: { value: vi.fn() }, clearLine: { value: vi.fn() } },
  });
  return { write, terminal };
}

test.each([0, undefined])(
  'on a terminal of %s columns nothing is drawn: ora would clear lines for ever',
  async (columns) => {
    const { write, terminal } = terminalOf(columns);
    const line = await openProgressLine(terminal, () => 'x');
    line.start();
    line.stop();
    expect(write).not.toHaveBeenCalled();
  },
);

test.each<[string, (terminal: NodeJS.WriteStream) => void]>([
  ['is gone', (terminal) => void terminal.emit('error', new Error('EIO'))],
  ['has no columns any more', (terminal) => void Object.assign(terminal, { columns: 0 }).emit('resize')],
])('once the terminal %s, it stops for good', async (_what, happens) => {
  vi.useFakeTimers();
  const { write, terminal } = terminalOf(80);
  const line = await openProgressLine(terminal, () => 'x');
  line.start();
  expect(write.mock.calls.join('')).toContain(' Waiting for x');
  write.mockClear();
  happens(terminal);
  line.start();
  line.stop();
  expect([write.mock.calls, vi.getTimerCount()]).toEqual([[], 0]);
  vi.useRealTimers();
});
