import { expect, test } from 'vitest';
import { environmentIn, LAUNCHER, startCommand, startProgram } from '../fixtures/program.ts';
import { newMachine, reservationIn } from './command.ts';

const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G'];

test('watch ends with 0 at the first line that its closed pipe does not take', async () => {
  const own = newMachine();
  const { id } = reservationIn(await own.json(...LINK, '--start-now', '--for', '2h'));
  const watch = `'${process.execPath}' '${LAUNCHER}' --offline watch ${id} --json`;
  const command = ['bash', '-c', `${watch} | head -n 1; echo "\${PIPESTATUS[0]}"`];
  const shell = startProgram(command, { cwd: own.home, env: environmentIn(own.home) });
  await shell.saw(/"event":"started"/, 'stdout');
  await own.json('delete', '--yes', id);
  expect((await shell.ended).stdout.split('\n')[1]).toBe('0');
});

test.each<[string[], RegExp]>([
  [['watch', '--json'], /"event":"started"/],
  [[...LINK, '--start', '+1h', '--for', '1h', '--wait'], /^Reserved /],
])('Ctrl-C while %j waits: exit 130, and the reservation stays', async (args, expected) => {
  const own = newMachine();
  await own.json(...LINK, '--start-now', '--for', '2h');
  const waiting = startCommand(['--offline', ...args], { home: own.home });
  await waiting.saw(expected, 'stdout');
  waiting.signal('SIGINT');
  const { exitCode, stderr } = await waiting.ended;
  expect(exitCode).toBe(130);
  const { items } = await own.json('list');
  const booked = Array.isArray(items) ? items.map((item) => reservationIn(item).id) : [];
  if (args[0] === 'watch') expect(stderr).toContain('"code":"interrupted"');
  else expect(booked).toContain(/^ {2}reservation: (\S+)$/m.exec(stderr)?.[1]);
});
