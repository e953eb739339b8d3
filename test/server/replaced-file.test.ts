import { copyFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createReferenceServer, type ReferenceServer } from '../../src/reference-server.ts';
import type { LogFields } from '../../src/server/log.ts';
import { idIn, send, signedBy } from '../fixtures/asked-server.ts';
import { addressOf, booking, CONNECTIVITY, hours, NOW } from '../fixtures/service.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

let folder: string;
let file: string;
let log: { level: string; event: string; fields: LogFields }[];
let server: ReferenceServer | undefined;

beforeEach(() => {
  folder = temporaryFolder();
  file = join(folder, 'data.sqlite');
  log = [];
});
afterEach(async () => {
  await server?.close();
});

async function start(database: string): Promise<ReferenceServer> {
  await server?.close();
  // A server that was closed may still write what it held back.
  const own = log;
  server = await createReferenceServer({
    database,
    now: () => NOW,
    log: (level, event, fields) => void own.push({ level, event, fields }),
  });
  return server;
}

/** What may happen to a file, and where it is afterwards, if anywhere. */
const FATES: readonly { fate: string; happen: () => void; left?: () => string }[] = [
  { fate: 'deleted', happen: () => rmSync(file) },
  {
    fate: 'moved',
    happen: () => {
      for (const end of ['', '-wal', '-shm']) renameSync(file + end, `${file}.old${end}`);
    },
    left: () => `${file}.old`,
  },
  {
    fate: 'replaced by a copy of itself',
    happen: () => {
      copyFileSync(file, `${file}.copy`);
      renameSync(`${file}.copy`, file);
    },
  },
  { fate: 'left without its log', happen: () => rmSync(`${file}-wal`) },
  { fate: 'left without the file of its locks', happen: () => rmSync(`${file}-shm`) },
];

describe('the file of a running server', () => {
  test.each(FATES)(
    'that is $fate: nothing more is confirmed, not ready, and the log says why (THREATS.md 76)',
    async ({ happen, left }) => {
      const running = await start(file);
      const headers = await signedBy(running);
      const book = (hour: number) =>
        send(running, 'POST', CONNECTIVITY, { headers, body: booking(hours(hour, hour + 1)) });
      const booked = await book(1);
      expect(booked.status).toBe(201);
      expect((await send(running, 'GET', addressOf('readiness'))).status).toBe(200);
      happen();

      for (const asked of [2, 3]) {
        const { status, text } = await book(asked);
        expect({ status, ...JSON.parse(text) }).toMatchObject({ status: 503, code: 'unavailable' });
        expect(text).not.toContain(folder);
      }
      expect((await send(running, 'GET', addressOf('readiness'))).status).toBe(503);
      for (const event of ['store_unavailable', 'not_ready']) {
        const why = log.find((each) => each.event === event)?.fields['why'];
        expect(why).toMatch(/The file \S+ was deleted, moved or replaced while it was in use\./);
        expect(why).toContain(`The file ${file}`);
      }

      if (!left) return;
      // All that was confirmed is where the file is, and nothing else.
      const after = await start(left());
      const listed = await send(after, 'GET', CONNECTIVITY, { headers: await signedBy(after) });
      expect(JSON.parse(listed.text).items.map(({ id }: { id: string }) => id)).toEqual([idIn(booked.text)]);
    },
  );

  test('that is moved and put back: it goes on (THREATS.md 76)', async () => {
    const running = await start(file);
    const headers = await signedBy(running);
    const book = (hour: number) =>
      send(running, 'POST', CONNECTIVITY, { headers, body: booking(hours(hour, hour + 1)) });
    renameSync(file, `${file}.old`);
    expect((await book(1)).status).toBe(503);
    renameSync(`${file}.old`, file);
    expect((await book(1)).status).toBe(201);
    expect((await send(running, 'GET', addressOf('readiness'))).status).toBe(200);
  });
});

test('a start that makes a new database says so, and one that finds it does not (THREATS.md 76)', async () => {
  const made = () => log.filter(({ event }) => event === 'database_made');
  await start(file);
  expect(made()).toEqual([{ level: 'info', event: 'database_made', fields: { file } }]);
  log = [];
  await start(file);
  expect(made()).toEqual([]);
});
