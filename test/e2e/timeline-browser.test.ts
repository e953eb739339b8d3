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

/** Where the week that the timeline shows begins: an hour before now, give or take a quarter of an hour. */
const QUARTER = HOUR / 4;
const START = Math.floor((Date.now() - HOUR) / QUARTER) * QUARTER;
/** The link of these tests, of 100 Gbps: the hours of the week from 57 to 65 are the lead's own, with 60 Gbps. */
const LINK = /be-gent1.*pl-poznan1/;
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
      start_date: new Date(START + OWN.from * HOUR).toISOString(),
      end_date: new Date(START + OWN.until * HOUR).toISOString(),
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
    await page.getByRole('button', { name: /^training/ }).waitFor();
    const canvas = page.locator('.timeline-rows canvas');
    const card = page.locator('.timeline-card');
    /** Where an hour of the week is in the link's row, below the lanes. */
    const at = async (hours: number, below = 30): Promise<[number, number]> => {
      await canvas.scrollIntoViewIfNeeded();
      const { x, width } = (await canvas.boundingBox()) ?? expect.fail('no canvas');
      const { y } =
        (await page.locator('.timeline-labels li', { hasText: LINK }).boundingBox()) ?? expect.fail('no row');
      return [x + (width * hours) / 168, y + (options.hasTouch ? 19 : 0) + below];
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
    return { page, card, at, shown };
  }

  const start = (page: Page) => page.getByLabel('Start', { exact: true });

  test('a mouse looks, picks by clicking and dragging, changes what is its own, moves by the dates and zooms with Ctrl', async () => {
    const { page, card, at, shown } = await open('lead');
    await page.mouse.move(...(await at(60)));
    await card.getByText(/^40 of 100 Gbps free throughout, \d+ VLANs$/).waitFor();
    await card.getByText('training with 60 Gbps').waitFor();
    // One's own block lies in a lane at the top: a click leads to the reservation, and an end can be dragged.
    await page.mouse.click(...(await at(61, 5)));
    await page.locator('.reservations :focus', { hasText: 'training' }).waitFor();
    const [edge, y] = await at(OWN.until, 5);
    await page.mouse.move(edge - 1, y);
    await page.mouse.down();
    await page.mouse.move(...(await at(70)));
    await page.mouse.move(...(await at(72)));
    await page.mouse.up();
    await page.getByRole('form', { name: /^Change training/ }).waitFor();
    await page.getByRole('button', { name: 'Leave it as it is' }).click();

    // A click says when it starts; how long it lasts stays as it was typed.
    await page.mouse.click(...(await at(100.1)));
    await page.getByText(/^It fits/).waitFor();
    const clicked = Math.round((START + 100.1 * HOUR) / HOUR) * HOUR;
    const time = new Date(clicked).toISOString().slice(11, 16);
    expect(await page.getByLabel('End, or how long').inputValue()).toBe('2h');
    expect(await start(page).inputValue()).toMatch(new RegExp(` ${time}$`));

    await page.mouse.move(...(await at(105)));
    await page.mouse.down();
    await page.mouse.move(...(await at(108)));
    await page.mouse.move(...(await at(114)));
    // Beside the pointer are the times.
    const [from = '', until = ''] = (await card.locator('strong').textContent())?.split(' to ') ?? [];
    await page.mouse.up();
    await page.getByText(/^It fits/).waitFor();
    expect(await page.getByLabel('Site 1').inputValue()).toBe('be-gent1');
    expect(await start(page).inputValue()).toBe(from);
    expect(until).toMatch(/\d\d:[03]0$/);
    await page.getByRole('button', { name: 'Clear the form' }).click();

    const { x, y: dates } = (await page.locator('.timeline-axis').boundingBox()) ?? expect.fail('no dates');
    await page.mouse.move(x + 300, dates + 10);
    await page.mouse.down();
    await page.mouse.move(x + 200, dates + 10, { steps: 4 });
    await page.mouse.up();
    const moved = await shown(({ start: begin, length }) => {
      expect(begin).toBeGreaterThan(START + HOUR);
      expect(length).toBeCloseTo(168 * HOUR);
    });
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, -50);
    await page.keyboard.up('Control');
    await shown(({ length }) => expect(length).toBeLessThan(moved.length));
    await page.context().close();
  });

  test('a week is asked for in one request', async () => {
    const { page } = await open('lead');
    await page.goto('about:blank');
    const asked: string[] = [];
    page.on('request', (request) => {
      const { pathname, searchParams } = new URL(request.url());
      if (pathname.startsWith('/ui/')) asked.push(`${pathname} ${searchParams.getAll('link').length}`);
    });
    await page.goto(served.addresses.base_url);
    const uses = (): string[] => asked.filter((path) => path.includes('links/')).toSorted();
    await vi.waitFor(() => expect(uses().length).toBeGreaterThan(1), PATIENCE);
    await page.getByRole('button', { name: /^training/ }).waitFor();
    await page.waitForTimeout(300);
    // One for the map, one for the two links of the timeline.
    expect(uses()).toEqual(['/ui/api/links/use 0', '/ui/api/links/use 2']);
    expect(asked.filter((path) => path.includes('/api/')).length, `${asked}`).toBeLessThanOrEqual(8);
    await page.context().close();
  });

  test('the keyboard is enough, and what it does is said; the table says the same, and picks', async () => {
    const { page, shown } = await open('lead');
    await page.getByRole('button', { name: 'Table' }).focus();
    await page.keyboard.press('Tab');
    for (const key of ['ArrowRight', 'ArrowRight', 'Shift+ArrowRight']) await page.keyboard.press(key);
    await page.locator('.timeline [role=status]', { hasText: 'Gbps free throughout' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByText(/^It fits/).waitFor();
    await page.getByRole('button', { name: 'Clear the form' }).click();
    await page.locator('.timeline-rows canvas').focus();
    await page.keyboard.press('+');
    await shown(({ length }) => expect(length).toBeCloseTo(84 * HOUR));
    await page.keyboard.press('PageDown');
    await shown(({ start: from }) => expect(from).toBeGreaterThan(START + 60 * HOUR));
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
    await page.locator('.timeline-rows canvas').scrollIntoViewIfNeeded();
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
    const moved = await shown(({ start: from }) => expect(from).toBeGreaterThan(START));
    await touch('Start', [150, y], [220, y]);
    for (const by of [10, 20, 40]) await touch('Move', [150 - by, y], [220 + by, y]);
    await touch('End');
    await shown(({ length }) => expect(length).toBeLessThan(0.7 * moved.length));
    await page.context().close();
  });

  test('who may not book is told what is free, and is not invited to book', async () => {
    const { page, card, at } = await open('viewer');
    await page.getByText(/^Click a row, or drag over it/).waitFor();
    await page.mouse.move(...(await at(105)));
    await page.mouse.down();
    await page.mouse.move(...(await at(114)), { steps: 2 });
    await page.mouse.up();
    await card.getByText('100 of 100 Gbps free').waitFor();
    await page.getByRole('button', { name: 'Table' }).click();
    const table = page.locator('.timeline-lines');
    await table.waitFor();
    expect(await table.getByText(/\b(Pick|Book|pick)\b/).count()).toBe(0);
    await page.context().close();
  });
});
