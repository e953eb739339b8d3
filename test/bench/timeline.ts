import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { builtInTopology } from '../../src/allocator/network.ts';
import { launchChromium } from '../fixtures/chromium.ts';
import { serveTimeline, type TimelinePage } from '../fixtures/timeline-page.ts';
import type { Benchmark, Result } from './benchmark.ts';
import { folderOnDisk } from './disk.ts';
import { type LiveReservations, makeDatabase } from './live-rows.ts';
import { median } from './measure.ts';
import { DATABASE_FILE, signIn, startServe } from './serving.ts';

const LIVE = 10_000;
const YEAR = 365 * 86_400_000;
/** Milliseconds: 50 frames a second. */
const LIMIT = 20;
/** How many frames a way of moving takes. */
const FRAMES = 240;

/** Without these two a frame lasts as long as the display's, however little work it is. */
const UNLIMITED = ['--disable-frame-rate-limit', '--disable-gpu-vsync'];

/**
 * Every link with a year of reservations. A tag is held for less than half of the time on average, and all together never
 * take more than the link has.
 */
function aYear(from: number): LiveReservations[] {
  return builtInTopology().links.map((link) => {
    const [first, last] = link.site1_s_tags;
    const tags = last - first + 1;
    const turns = Math.ceil(LIVE / tags) + 1;
    return {
      ...{ link, live: LIVE, from, turn: YEAR / turns },
      most: Math.max(1, Math.floor((1.6 * link.bandwidth) / tags)),
    };
  });
}

/** How the timeline is moved, a step in each frame, by events as a wheel sends them. */
const WAYS: Readonly<Record<string, string>> = {
  scroll: `canvas.dispatchEvent(new WheelEvent('wheel', { deltaX: frame < count / 2 ? 24 : -24, ...at }))`,
  zoom: `canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: Math.floor(frame / 30) % 2 ? 12 : -12, ctrlKey: true, ...at }))`,
};

/** What happens in a page while it is moved: the times between its frames, and the work of painting in each. */
interface Frames {
  intervals: number[];
  work: number[];
}

/**
 * Moves the timeline in every frame. Chromium draws on the processor here and waits for no display, so the time from frame
 * to frame is that of all their work.
 *
 * @param way see {@link WAYS}
 * @param isWork whether the painting is measured on its own: until a pixel of the canvas can be read, which takes longer
 */
function moving(way: string, isWork: boolean): string {
  return `new Promise((resolve) => {
    const canvas = document.querySelector('canvas');
    const context = canvas.getContext('2d');
    const { left, top, width } = canvas.getBoundingClientRect();
    const at = { clientX: left + width / 3, clientY: top + 100, cancelable: true, bubbles: true };
    const [count, intervals, work] = [${FRAMES}, [], []];
    let [frame, before, began] = [0, undefined, 0];
    const step = (time) => {
      if (${isWork} && frame > 0) {
        context.getImageData(0, 0, 1, 1);
        work.push(performance.now() - began);
      }
      if (before !== undefined) intervals.push(time - before);
      before = time;
      if (frame === count) return resolve({ intervals, work });
      // Of what is asked for the next frame, the timeline's painting lies between these two.
      requestAnimationFrame(() => { began = performance.now(); });
      ${way};
      requestAnimationFrame(step);
      frame += 1;
    };
    requestAnimationFrame(step);
  })`;
}

/**
 * The processor time of all of Chromium's processes until now, in milliseconds: of the descendants of this process that are
 * called so (proc_pid_stat(5)). Unlike a frame's time it hardly depends on what else the machine does.
 */
function processorTime(): number {
  const processes = new Map<number, { name: string; parent: number; ticks: number }>();
  for (const pid of readdirSync('/proc').map(Number).filter(Number.isInteger)) {
    try {
      const [, name = '', rest = ''] = /\((.*)\) (.*)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
      const fields = rest.split(' ');
      processes.set(pid, { name, parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) });
    } catch {
      // It has ended meanwhile.
    }
  }
  const isOurs = (pid: number): boolean => {
    const parent = processes.get(pid)?.parent ?? 0;
    return parent === process.pid || (parent > 1 && isOurs(parent));
  };
  let ticks = 0;
  for (const [pid, one] of processes) if (one.name.startsWith('chrom') && isOurs(pid)) ticks += one.ticks;
  // A hundred in a second, whatever the kernel's own clock.
  return ticks * 10;
}

/** A year in view, all of it loaded. */
async function openYear(
  browser: Browser,
  served: TimelinePage,
  { width, scale }: { width: number; scale: number },
): Promise<Page> {
  const context = await browser.newContext({ viewport: { width, height: 900 }, deviceScaleFactor: scale });
  const page = await context.newPage();
  await page.goto(served.url);
  await page.getByRole('button', { name: 'Year' }).click();
  await page.waitForLoadState('networkidle');
  return page;
}

async function measured(browser: Browser, served: TimelinePage): Promise<Result[]> {
  const results: Result[] = [];
  for (const width of [375, 1280]) {
    for (const scale of [1, 2]) {
      for (const [name, way] of Object.entries(WAYS)) {
        const page = await openYear(browser, served, { width, scale });
        const frames = (isWork: boolean): Promise<Frames> => page.evaluate<Frames>(moving(way, isWork));
        // What is on the way is loaded the first time.
        const loading = median((await frames(false)).intervals);
        await page.waitForLoadState('networkidle');
        const before = processorTime();
        const again = median((await frames(false)).intervals);
        const processor = (processorTime() - before) / FRAMES;
        const work = median((await frames(true)).work);
        results.push({
          name: `timeline, ${name} ${width} px × ${scale}`,
          what: `a frame of a year of 12 links × ${LIVE} reservations while more is loaded ÷ ${LIMIT} ms`,
          ratio: loading / LIMIT,
          limit: 1,
          bound: 'atMost',
          measured: `${loading.toFixed(1)} ms; loaded ${again.toFixed(1)} ms, of all processors ${processor.toFixed(1)} ms, painting ${work.toFixed(1)} ms`,
        });
        await page.context().close();
      }
    }
  }
  return results;
}

/** How long a frame of the page's timeline takes while it is moved. */
export const timeline: Benchmark = {
  name: 'timeline',
  method: `Chromium without a display's frame rate and without a graphics card, the timeline on a page of its own, asking \`serve\` on a SQLite file with ${LIVE} reservations over a year on each of the 12 links; a wheel event in each of ${FRAMES} frames, sideways or with Ctrl; the median time from frame to frame, with all work of page and browser; of all processors: their time for it; painting: until a pixel of the canvas can be read`,
  async run() {
    // First: without a browser nothing else has begun.
    const browser = await launchChromium(...UNLIMITED);
    const folder = folderOnDisk();
    const from = Date.now() + 3_600_000;
    const reservations = aYear(from);
    await makeDatabase(join(folder, DATABASE_FILE), reservations);
    const server = await startServe(folder);
    const { headers } = await signIn(folder, server.url);
    const links = builtInTopology().links.map(({ site1, site2, bandwidth }) => ({ site1, site2, bandwidth }));
    const served = await serveTimeline({
      links,
      zone: 'Europe/Brussels',
      answer: (path, tag) =>
        fetch(`${server.url}/apis/v1alpha1/links/${path}`, {
          headers: {
            ...headers,
            accept: 'application/json',
            ...(tag === undefined ? {} : { 'if-none-match': tag }),
          },
        }),
    });
    try {
      return await measured(browser, served);
    } finally {
      await browser.close();
      await served.stop();
      await server.stop();
    }
  },
};
