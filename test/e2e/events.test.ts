import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { EventSource } from 'eventsource';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { HOUR } from '../../src/contract/durations.ts';
import { launchChromium, logInByHand, titleInChromium, withoutChromium } from '../fixtures/chromium.ts';
import { atEndOfFile } from '../fixtures/end-of-file.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { freePort } from '../fixtures/postgres.ts';
import { EVENTS } from '../fixtures/service.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { serveWith } from './served.ts';
import { book, idIn, logIn } from './wire-caller.ts';

const port = await freePort();
const folder = temporaryFolder();
const serve = () => serveWith('--port', `${port}`, '--data', folder, '--auto-approve', 'lead');
let served = await serve();
const headers = await logIn(served);
const url = `${served.base}${EVENTS}`;

/** The data of a reservation's event. */
const idOf = (data: string): string => JSON.parse(data).reservation.id;

test('eventsource of the registry reads the stream, and comes back with its cursor', async () => {
  const told: string[] = [];
  const cursors: (string | null)[] = [];
  const source = new EventSource(url, {
    fetch: (address, init) => {
      const all = new Headers({ ...init?.headers, ...headers });
      cursors.push(all.get('last-event-id'));
      return fetch(address, { ...init, headers: all });
    },
  });
  atEndOfFile(() => source.close());
  source.addEventListener('reservation', ({ data }) => told.push(idOf(data)));
  await vi.waitUntil(() => source.readyState === source.OPEN, PATIENCE);
  const first = idIn(await book(served, headers));
  await vi.waitUntil(() => told.includes(first), PATIENCE);
  await restart();
  const second = idIn(await book(served, headers));
  await vi.waitUntil(() => told.includes(second), PATIENCE);
  expect(told).toEqual([first, second]);
  expect(cursors[0]).toBeNull();
  expect(cursors.at(-1)).toMatch(/^[\w-]+$/);
  source.close();
});

test('curl -N prints each event as it happens', async () => {
  const named = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const curl = spawn('curl', ['-sN', ...named, url]);
  atEndOfFile(() => curl.kill());
  let printed = '';
  curl.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
  });
  await vi.waitUntil(() => printed.includes('event: cursor\n'), PATIENCE);
  const id = idIn(await book(served, headers));
  await vi.waitUntil(() => printed.includes(id), PATIENCE);
  expect(printed).toMatch(/^retry: 2000\nid: \S+\nevent: cursor\ndata: \{\}\n\n(?::\n\n)*id: /);
  curl.kill();
});

async function restart(): Promise<void> {
  served.process.signal('SIGKILL');
  await served.process.ended;
  served = await serve();
}

describe.skipIf(withoutChromium)(titleInChromium('events in a browser'), () => {
  let browser: Awaited<ReturnType<typeof launchChromium>>;
  beforeAll(async () => {
    browser = await launchChromium();
  });

  test('tabs show at once what others book, ask nothing while nothing happens, and go on after the server was killed', async () => {
    const context = await browser.newContext();
    context.setDefaultTimeout(PATIENCE);
    await context.clock.install();
    const asked: string[] = [];
    context.on('request', (request) => asked.push(request.url()));
    const open = async (): Promise<Page> => {
      const page = await context.newPage();
      await page.goto(served.base);
      return page;
    };
    const first = await open();
    await logInByHand(first, 'lead');
    const tabs = [first, await open()];
    const showing = async (name: string): Promise<void> => {
      await book(served, headers, { name });
      await Promise.all(tabs.map((tab) => tab.getByText(name, { exact: true }).first().waitFor()));
    };
    const streams = () => asked.filter((address) => address.includes('&since=')).length;
    await vi.waitUntil(() => streams() === tabs.length, PATIENCE);
    asked.length = 0;
    await showing('told');
    // It was told, and not found by a look in the list.
    expect(asked.filter((address) => address.includes('/connectivity?'))).toEqual([]);
    await context.clock.runFor(2000);
    // A busy machine is still drawing: it is quiet once half a second has brought nothing.
    await vi.waitUntil(async () => {
      const before = asked.length;
      await sleep(500);
      return asked.length === before;
    }, PATIENCE);
    asked.length = 0;
    // At the full hour the map's use is asked for.
    const isHour = Math.floor(Date.now() / HOUR) !== Math.floor((Date.now() + 31_000) / HOUR);
    // After 35 s without a word, as here, the stream would count as broken.
    await context.clock.runFor(20_000);
    await sleep(500);
    expect(asked.slice(isHour ? 6 : 0)).toEqual([]);
    await restart();
    await showing('after');
    for (const tab of tabs) expect(await tab.getByRole('alert').count()).toBe(0);
    await context.close();
  });
});
