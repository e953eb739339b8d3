import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { builtInTopology } from '../../src/allocator/network.ts';
import { HOUR } from '../../src/contract/durations.ts';
import { launchChromium, logInByHand, titleInChromium, withoutChromium } from '../fixtures/chromium.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { type Served, serveInProcess } from './served.ts';
import { book, logIn } from './wire-caller.ts';

/** Where the week that the timeline shows begins. */
const MIDNIGHT = Math.floor(Date.now() / (24 * HOUR)) * 24 * HOUR;
/** The link of these tests, of 100 Gbps: the hours of the week from 57 to 65 are the lead's own, with 60 Gbps. */
const LINK = 'be-gent1 – pl-poznan1';
const OWN = { from: 57, until: 65 };

// What is decided without a browser is in test/page/timeline.
describe.skipIf(withoutChromium)(titleInChromium('the timeline in a browser'), () => {
  let browser: Browser;
  let served: Served;
  beforeAll(async () => {
    const { sites, links } = builtInTopology();
    const kept = (site: string): boolean => /gent|antwerp|poznan/.test(site);
    const file = join(temporaryFolder(), 'network.json');
    const few = links.filter(({ site1, site2 }) => kept(site1) && kept(site2));
    writeFileSync(file, JSON.stringify({ sites: sites.filter(kept), links: few }));
    [browser, served] = await Promise.all([
      launchChromium(),
      serveInProcess('--topology', file, '--auto-approve', 'lead'),
    ]);
    const booked = await book(served, await logIn(served), {
      ...{ site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: '60000', name: 'training' },
      start_date: new Date(MIDNIGHT + OWN.from * HOUR).toISOString(),
      end_date: new Date(MIDNIGHT + OWN.until * HOUR).toISOString(),
    });
    expect(booked.status, booked.text).toBe(201);
  });

  /** The page in a browser of its own, as somebody sees it who has logged in. */
  async function open(user: string, options: BrowserContextOptions = {}) {
    // All of it is in view: nothing scrolls.
    const viewport = { width: 1280, height: 1300 };
    const page = await browser.newPage({ timezoneId: 'UTC', viewport, reducedMotion: 'reduce', ...options });
    page.setDefaultTimeout(PATIENCE);
    await page.goto(served.addresses.base_url);
    await logInByHand(page, user);
    await page.getByRole('heading', { name: 'training' }).waitFor();
    const canvas = page.locator('.timeline canvas');
    const readout = page.locator('.timeline-readout');
    /** Where an hour of the week is in the link's row, in its plot. */
    const at = async (hours: number): Promise<[number, number]> => {
      await canvas.scrollIntoViewIfNeeded();
      const { x, y, width } = (await canvas.boundingBox()) ?? expect.fail('no canvas');
      const label = await page.locator('.timeline-labels li', { hasText: LINK }).first().boundingBox();
      const [row, plot] = options.hasTouch ? [64, 35] : [48, 19];
      const index = Math.floor(((label?.y ?? 0) + (label?.height ?? 0) / 2 - y - 44) / row);
      return [x + (width * hours) / 168, y + 44 + row * index + plot];
    };
    /** Looks at the window, which the address has once it was moved, until it is as it should be. */
    const shown = (check: (window: { start: number; end: number; length: number }) => void) =>
      vi.waitFor(() => {
        const { searchParams } = new URL(page.url());
        const [start = 0, end = 0] = ['from', 'until'].map((name) =>
          Date.parse(searchParams.get(name) ?? ''),
        );
        check({ start, end, length: end - start });
        return { start, end, length: end - start };
      }, PATIENCE);
    return { page, readout, at, shown };
  }

  const start = (page: Page) => page.getByLabel('Start', { exact: true });

  test('a mouse looks, picks by dragging, lengthens what is its own, moves by the dates and zooms with Ctrl', async () => {
    const { page, readout, at, shown } = await open('lead');
    await page.mouse.move(...(await at(60)));
    await readout
      .getByText(/40 of 100 Gbps free throughout, \d+ VLANs; yours: training with 60 Gbps\.$/)
      .waitFor();
    // One's own bar lies below the plot: a click leads to the reservation, and an edge can be dragged.
    const [middle, plot] = await at(61);
    await page.mouse.click(middle, plot + 26);
    await page.locator('.reservations :focus', { hasText: 'training' }).waitFor();
    const [edge, y] = await at(OWN.until);
    await page.mouse.move(edge - 1, y + 26);
    await page.mouse.down();
    await page.mouse.move(...(await at(70)));
    await page.mouse.move(...(await at(72)));
    await page.mouse.up();
    await page.getByRole('form', { name: /^Change training/ }).waitFor();
    await page.getByRole('button', { name: 'Leave it as it is' }).click();

    // A click says when it starts; how long it lasts stays as it was typed.
    await page.mouse.click(...(await at(100.5)));
    await page.getByText(/^It fits/).waitFor();
    expect(await page.getByLabel('Duration').inputValue()).toBe('2h');
    expect(await start(page).inputValue()).toMatch(/ 04:00$/);

    await page.mouse.move(...(await at(105)));
    await page.mouse.down();
    await page.mouse.move(...(await at(108)));
    await page.mouse.move(...(await at(114)));
    await page.mouse.up();
    await page.getByText(/^It fits/).waitFor();
    expect(await page.getByLabel('Site 1').inputValue()).toBe('be-gent1');
    const picked = await start(page).inputValue();
    expect(picked).not.toBe('');
    await page.getByRole('button', { name: 'Clear the form' }).click();

    const [x, row] = await at(84);
    const dates = row - 40;
    await page.mouse.move(x, dates);
    await page.mouse.down();
    await page.mouse.move(x - 100, dates, { steps: 4 });
    await page.mouse.up();
    const moved = await shown(({ start: from, length }) => {
      expect(from).toBeGreaterThan(MIDNIGHT);
      expect(length).toBeCloseTo(168 * HOUR);
    });
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, -50);
    await page.keyboard.up('Control');
    await shown(({ length }) => expect(length).toBeLessThan(moved.length));
    await page.context().close();
  });

  test('the keyboard is enough, and what it does is said; the table says the same, and picks', async () => {
    const { page, shown } = await open('lead');
    await page.getByRole('searchbox').first().focus();
    await page.locator('.timeline canvas').focus();
    for (const key of ['ArrowRight', 'ArrowRight', 'Shift+ArrowRight']) await page.keyboard.press(key);
    await page.locator('.timeline [role=status]', { hasText: 'Gbps free throughout' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByText(/^It fits/).waitFor();
    await page.getByRole('button', { name: 'Clear the form' }).click();
    await page.locator('.timeline canvas').focus();
    await page.keyboard.press('+');
    await shown(({ length }) => expect(length).toBeCloseTo(84 * HOUR));
    await page.keyboard.press('PageDown');
    await shown(({ start: from }) => expect(from).toBeGreaterThan(MIDNIGHT + 60 * HOUR));
    await page.keyboard.press('Home');
    await shown(({ start: from }) => expect(from).toBeLessThan(Date.now()));
    // The keys of the browser stay its own.
    await page.keyboard.press('Tab');
    expect(await page.evaluate<string>('document.activeElement.tagName')).not.toBe('CANVAS');

    await page.getByRole('button', { name: 'Week', exact: true }).click();
    await page.getByRole('button', { name: 'Table' }).click();
    const mine = page.getByRole('row', { name: /training with 60 Gbps/ }).first();
    await mine.waitFor();
    expect(await mine.textContent()).toContain('40 Gbps');
    await mine.getByRole('button').click();
    await vi.waitFor(async () => expect(await start(page).inputValue()).not.toBe(''), PATIENCE);
    await page.context().close();
  });

  test('a finger taps to pick, moves sideways, and two fingers zoom; 375 wide', async () => {
    const viewport = { width: 375, height: 667 };
    const { page, at, shown } = await open('lead', { viewport, hasTouch: true });
    expect(await page.evaluate<boolean>('document.scrollingElement.scrollWidth > innerWidth')).toBe(false);
    await page.touchscreen.tap(...(await at(108)));
    await page.getByText(/^It fits/).waitFor();
    expect(await start(page).inputValue()).not.toBe('');
    await page.locator('.timeline canvas').scrollIntoViewIfNeeded();
    const devtools = await page.context().newCDPSession(page);
    const touch = (type: 'Start' | 'Move' | 'End', ...points: [number, number][]) =>
      devtools.send('Input.dispatchTouchEvent', {
        type: `touch${type}`,
        touchPoints: points.map(([x, y], id) => ({ x, y, id })),
      });
    const [x, y] = await at(108);
    await touch('Start', [x, y]);
    for (const by of [10, 20, 40, 80]) await touch('Move', [x - by, y]);
    await touch('End');
    const moved = await shown(({ start: from }) => expect(from).toBeGreaterThan(MIDNIGHT));
    await touch('Start', [150, y], [220, y]);
    for (const by of [10, 20, 40]) await touch('Move', [150 - by, y], [220 + by, y]);
    await touch('End');
    await shown(({ length }) => expect(length).toBeLessThan(0.7 * moved.length));
    await page.context().close();
  });

  test('who may not book is told what is free, and is not invited to book', async () => {
    const { page, readout, at } = await open('viewer');
    expect(await readout.textContent()).toMatch(/^Point at a row, or drag over it, to see what is free\./);
    await page.mouse.move(...(await at(105)));
    await page.mouse.down();
    await page.mouse.move(...(await at(114)), { steps: 2 });
    await page.mouse.up();
    await readout.getByText('100 of 100 Gbps free').waitFor();
    await page.getByRole('button', { name: 'Table' }).click();
    const table = page.locator('.timeline-lines');
    await table.waitFor();
    expect(await table.getByText(/\b(Pick|Book|pick)\b/).count()).toBe(0);
    await page.context().close();
  });
});
