import { expect, onTestFinished, test, vi } from 'vitest';
import { createReferenceServer } from '../../../src/reference-server.ts';
import { commandWorld, tokenOf } from '../../fixtures/command-world.ts';
import { PATIENCE } from '../../fixtures/patience.ts';
import { recordedStream } from '../../fixtures/recorded-stream.ts';

const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G'];

/** A service with streams, and a person who watches it; no pause of theirs ends by itself. */
async function scene() {
  const server = await createReferenceServer();
  const opened: ReadableStreamDefaultController<Uint8Array>[] = [];
  let looks = 0;
  const connectionOf = (isWatcher: boolean) => ({
    async fetch(request: Request): Promise<Response> {
      const path = new URL(request.url).pathname;
      const reply = await server.fetch(request);
      if (isWatcher && request.method === 'GET' && path.includes('/connectivity')) looks += 1;
      if (!path.endsWith('/events') || !reply.body) return reply;
      const reader = reply.body.getReader();
      // A stream that the test can break.
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => void opened.push(controller),
        async pull(controller) {
          const { done, value } = await reader.read();
          if (done) controller.close();
          else controller.enqueue(value);
        },
        cancel: () => reader.cancel(),
      });
      return new Response(body, reply);
    },
    userToken: tokenOf(() => server.signIn('lead')),
    close: async () => undefined,
  });
  const person = commandWorld(connectionOf(false), { now: Date.now });
  const ran: { call: readonly string[]; input: string | undefined }[] = [];
  const stdout = recordedStream();
  const watcher = commandWorld(connectionOf(true), {
    now: Date.now,
    stdout,
    runProgram: async (call, { input } = {}) => {
      ran.push({ call, input });
      return { exitCode: 3, stdout: '', stderr: 'it failed\n' };
    },
    sleep: (_, signal) =>
      new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
  });
  onTestFinished(() => server.close());
  return {
    server,
    opened,
    looks: () => looks,
    watcher,
    ran,
    events: () => [...stdout.text.matchAll(/"event":"(\w+)"/g)].map(([, event]) => event),
    run: async (...args: string[]) => {
      const { stdout: text } = await person.run('--offline', ...args, '--json');
      return text === '' ? undefined : JSON.parse(text);
    },
  };
}

test('watch is told what happens without looking again, and goes on where its stream breaks off', async () => {
  const { run, watcher, events, opened, looks } = await scene();
  const { reservation } = await run(...LINK, '--start-now', '--for', '2h');
  const watching = watcher.run('--offline', 'watch', reservation.id, '--json');
  const until = (count: number) => vi.waitUntil(() => events().length === count, { timeout: PATIENCE });
  await until(1);
  await vi.waitUntil(() => opened.length === 2, { timeout: PATIENCE });
  const before = looks();
  await run('update', reservation.id, '--bandwidth', '2G', '--yes');
  await until(2);
  opened.at(-1)?.error(new Error('broken'));
  await run('update', reservation.id, '--bandwidth', '3G', '--yes');
  await until(3);
  await run('delete', reservation.id, '--yes');
  expect((await watching).exitCode).toBe(0);
  expect(events()).toEqual(['started', 'updated', 'updated', 'deleted']);
  expect(looks()).toBe(before);
});

test('watch --exec runs a command for each event, with the event on its standard input, and goes on where it fails', async () => {
  const { run, watcher, events, ran } = await scene();
  const { reservation } = await run(...LINK, '--start-now', '--for', '2h');
  const watching = watcher.run('--offline', 'watch', reservation.id, '--json', '--exec', 'cat >> log');
  await vi.waitUntil(() => events().length === 1, { timeout: PATIENCE });
  await run('delete', reservation.id, '--yes');
  expect(await watching).toMatchObject({ exitCode: 0 });
  expect(ran.map(({ call }) => call)).toEqual([
    ['sh', '-c', 'cat >> log'],
    ['sh', '-c', 'cat >> log'],
  ]);
  expect(ran.map(({ input }) => JSON.parse(input ?? ''))).toMatchObject([
    { event: 'started', reservation: { id: reservation.id } },
    { event: 'deleted', reservation: { id: reservation.id } },
  ]);
});
