import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { newMachine, reservationIn } from './command.ts';
import { LAUNCHER } from './served.ts';

const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G'];

/** A program in the home folder of a machine, with the machine's environment. */
function started(own: ReturnType<typeof newMachine>, command: string, ...args: string[]): ChildProcess {
  const env = {
    HOME: own.home,
    XDG_CONFIG_HOME: join(own.home, 'config'),
    XDG_STATE_HOME: join(own.home, 'state'),
    XDG_CACHE_HOME: join(own.home, 'cache'),
    PATH: '/usr/bin:/bin',
  };
  return spawn(command, args, { cwd: own.home, env, stdio: ['ignore', 'pipe', 'pipe'] });
}

const textOf = (stream: ChildProcess['stdout']): (() => string) => {
  let text = '';
  stream?.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  return () => text;
};

test('watch ends with 0 at the first line that its closed pipe does not take', async () => {
  const own = newMachine();
  const { id } = reservationIn(await own.json(...LINK, '--start', '+1s', '--for', '5s'));
  const watch = `'${process.execPath}' '${LAUNCHER}' --offline watch ${id} --json`;
  const shell = started(own, 'bash', '-c', `${watch} | head -n 1; echo "\${PIPESTATUS[0]}"`);
  const printed = textOf(shell.stdout);
  await once(shell, 'close');
  expect(printed().split('\n')[1]).toBe('0');
});

test.each<[string[], RegExp]>([
  [['watch', '--json'], /"event":"started"/],
  [[...LINK, '--start', '+1h', '--for', '1h', '--wait'], /^Reserved /],
])('Ctrl-C while %j waits: exit 130, and the reservation stays', async (args, expected) => {
  const own = newMachine();
  await own.json(...LINK, '--start-now', '--for', '2h');
  const child = started(own, process.execPath, LAUNCHER, '--offline', ...args);
  const [stdout, stderr] = [textOf(child.stdout), textOf(child.stderr)];
  while (!expected.test(stdout())) await once(child.stdout ?? child, 'data');
  child.kill('SIGINT');
  const [exitCode] = await once(child, 'close');
  expect(exitCode).toBe(130);
  const { items } = await own.json('list');
  const booked = Array.isArray(items) ? items.map((item) => reservationIn(item).id) : [];
  if (args[0] === 'watch') expect(stderr()).toContain('"code":"interrupted"');
  else expect(booked).toContain(/^ {2}reservation: (\S+)$/m.exec(stderr())?.[1]);
});
