import type { Browser, Page } from 'playwright-core';
import { builtInTopology } from '../../src/allocator/network.ts';
import { launchChromium } from '../fixtures/chromium.ts';
import type { Benchmark, Result } from './benchmark.ts';
import { folderOnDisk } from './disk.ts';
import { median } from './measure.ts';
import { startServe } from './serving.ts';

const OWN = 3000;
/** Milliseconds until the list is there, and of a task; the layout shift of opening the page. */
const [LIST, TASK, SHIFT] = [1000, 100, 0.1];
/** Milliseconds in which the page comes to rest. */
const REST = 2000;
const HOUR = 3_600_000;

/** Reservations as the service lists them, in pages. Another bandwidth each time: no answer is as the one before. */
async function listOwn(page: Page): Promise<void> {
  const { links } = builtInTopology();
  const from = Date.now() + HOUR;
  let round = 0;
  await page.route('**/ui/api/connectivity?*', (route) => {
    const query = new URL(route.request().url()).searchParams;
    const [first, most] = [Number(query.get('cursor') ?? 0), Number(query.get('limit'))];
    round += 1;
    const items = Array.from({ length: Math.min(most, OWN - first) }, (_, index) => {
      const at = first + index;
      const [start, end] = [from + at * 600_000, from + at * 600_000 + 3 * HOUR];
      const { site1, site2 } = links[at % links.length] ?? { site1: '', site2: '' };
      return {
        ...{ id: `con_host_${at}`, name: `run-${at}`, site1, site2, bandwidth: 100 + (round % 50) },
        ...{ start_date: new Date(start).toISOString(), end_date: new Date(end).toISOString() },
        ...{ site1_s_tag: 100, site1_c_tag: 200, site2_s_tag: 300, site2_c_tag: 400 },
      };
    });
    const next = first + most < OWN ? `${first + most}` : null;
    const isScheduled = query.get('state') === 'scheduled';
    return route.fulfill({
      json: isScheduled ? { items, nextCursor: next } : { items: [], nextCursor: null },
    });
  });
}

const WATCH = `Object.assign(window, { tasks: [], shift: 0 });
new PerformanceObserver((list) => { for (const { duration } of list.getEntries()) tasks.push(duration); }).observe({ type: 'longtask', buffered: true });
new PerformanceObserver((list) => { for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) shift += value; }).observe({ type: 'layout-shift', buffered: true });`;

interface Opened {
  list: number;
  task: number;
  shift: number;
}

/** Opens the page of a user who is logged in, and asks for news once. */
async function opened(page: Page, url: string): Promise<Opened> {
  await page.goto(url);
  const list = await page
    .locator('.reservations > li')
    .first()
    .waitFor()
    .then(() => page.evaluate<number>('performance.now()'));
  await page.waitForTimeout(REST);
  await page.evaluate('dispatchEvent(new Event("online"))');
  await page.waitForTimeout(REST);
  return page.evaluate<Opened>(`({ list: ${list}, task: Math.max(0, ...tasks), shift })`);
}

async function measured(browser: Browser, url: string, rounds: number): Promise<Result[]> {
  const results: Result[] = [];
  for (const width of [375, 1280]) {
    const context = await browser.newContext({ viewport: { width, height: 900 } });
    const page = await context.newPage();
    await listOwn(page);
    await page.goto(url);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await page.getByRole('radio', { name: 'lead' }).check();
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('Logged in as lead').waitFor();
    await page.addInitScript(WATCH);
    const all: Opened[] = [];
    for (let round = 0; round < rounds; round += 1) all.push(await opened(page, url));
    await context.close();
    const [list, task, shift] = [
      median(all.map((one) => one.list)),
      median(all.map((one) => one.task)),
      Math.max(...all.map((one) => one.shift)),
    ];
    const add = (name: string, what: string, ratio: number, figure: string): void => {
      results.push({ name: `${name} ${width} px`, what, ratio, limit: 1, bound: 'atMost', measured: figure });
    };
    add('own list', `until ${OWN} own are listed ÷ ${LIST} ms`, list / LIST, `${list.toFixed(0)} ms`);
    add('own task', `the longest task of page and news ÷ ${TASK} ms`, task / TASK, `${task.toFixed(0)} ms`);
    add('own shift', `the layout shift of opening ÷ ${SHIFT}`, shift / SHIFT, shift.toFixed(3));
  }
  return results;
}

/** How long the page takes for a user with thousands of reservations, and whether it moves while it loads. */
export const ownReservations: Benchmark = {
  name: 'own-reservations',
  method: `Chromium without a graphics card, the page of \`serve\`, ${OWN} reservations in the list, each time with another bandwidth; the median of all rounds from the start of opening it, and of each round's longest task; the largest layout shift`,
  async run({ quick }) {
    const browser = await launchChromium();
    const server = await startServe(folderOnDisk());
    try {
      return await measured(browser, server.url, quick ? 3 : 7);
    } finally {
      await browser.close();
      await server.stop();
    }
  },
};
