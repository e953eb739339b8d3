import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Link, Own } from '../../src/page/service.ts';
import { launchChromium, titleInChromium, withoutChromium } from '../fixtures/chromium.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { serveTimeline, type TimelinePage } from '../fixtures/timeline-page.ts';

const HOUR = 3_600_000;
/** In Brussels: Sunday 22 Nov 2026, 11:30. */
const NOW = Date.UTC(2026, 10, 22, 10, 30);
/** Monday's midnight. */
const MONDAY = Date.UTC(2026, 10, 22, 23);
const LINKS: readonly Link[] = [
  { site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 10_000 },
  { site1: 'fr-lille', site2: 'fr-slices', bandwidth: 40_000 },
  { site1: 'gr-uth', site2: 'hu-sztaki', bandwidth: 1000 },
];
/** What is reserved: on the second link, all of Tuesday; on the first, 4 Gbps on Monday from 9:00 to 17:00. */
const RESERVED = [
  { link: 0, start: MONDAY + 9 * HOUR, end: MONDAY + 17 * HOUR, bandwidth: 4000 },
  { link: 1, start: MONDAY + 24 * HOUR, end: MONDAY + 48 * HOUR, bandwidth: 40_000 },
];
/** One of them is mine; its sites are named in the other order. */
const OWN: Own = {
  ...{ id: 'con_x_01jd3x0m2sf0vrv9mhb1wk6x4q', name: 'training', site1: 'pl-poznan1', site2: 'be-gent1' },
  ...{ bandwidth: 4000, start: MONDAY + 9 * HOUR, end: MONDAY + 17 * HOUR },
};

/** Answers as the service does. */
async function answer(path: string, tag: string | undefined): Promise<Response> {
  if (tag !== undefined) return new Response(null, { status: 304, headers: { etag: tag } });
  const url = new URL(path, 'http://service.example/');
  const [, site1] = url.pathname.split('/');
  const index = LINKS.findIndex((link) => link.site1 === site1);
  const capacity = LINKS[index]?.bandwidth ?? 0;
  const [start, end] = ['start', 'end'].map((name) => Date.parse(url.searchParams.get(name) ?? '')) as [
    number,
    number,
  ];
  const points = Number(url.searchParams.get('points'));
  const items = Array.from({ length: points }, (_, column) => {
    const [from, until] = [column, column + 1].map((at) => start + (at * (end - start)) / points) as [
      number,
      number,
    ];
    const held = RESERVED.filter((one) => one.link === index && one.start < until && one.end > from);
    const throughout = held.filter((one) => one.start <= from && one.end >= until);
    const sum = (some: typeof held): number => some.reduce((total, { bandwidth }) => total + bandwidth, 0);
    return {
      ...{ start_date: new Date(from).toISOString(), end_date: new Date(until).toISOString() },
      ...{ bandwidth: capacity - sum(held), bandwidth_max: capacity - sum(throughout) },
      vlans: 1000 - held.length,
    };
  });
  return Response.json({ items }, { headers: { etag: `"${path}"` } });
}

interface Pick {
  link: string;
  start: number;
  end: number;
}

describe.skipIf(withoutChromium)(titleInChromium('the timeline in a browser'), () => {
  let browser: Browser;
  let served: TimelinePage;
  beforeAll(async () => {
    [browser, served] = await Promise.all([
      launchChromium(),
      serveTimeline({ links: LINKS, own: [OWN], zone: 'Europe/Brussels', now: NOW, answer }),
    ]);
  });
  afterAll(async () => {
    await browser?.close();
    await served?.stop();
  });

  const complaints: string[] = [];
  afterEach(() => {
    expect(complaints.splice(0)).toEqual([]);
  });

  async function newPage(options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
    const page = await browser.newPage(options);
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    return page;
  }

  let only: Page | undefined;
  /**
   * A page that shows the week from Sunday on; every complaint of it fails the test. Where there is a mouse, it is one for
   * all tests: a new one costs more than the rest of a test.
   */
  async function open({
    hash = '',
    hasTouch = false,
    reducedMotion = 'reduce',
  }: {
    hash?: string;
    hasTouch?: boolean;
    reducedMotion?: 'reduce' | 'no-preference';
  } = {}) {
    const viewport = hasTouch ? { width: 375, height: 667 } : { width: 1280, height: 800 };
    const page = (hasTouch ? undefined : only) ?? (await newPage({ viewport, hasTouch }));
    if (!hasTouch) only = page;
    await page.goto('about:blank');
    await page.mouse.move(0, 0);
    await page.emulateMedia({ reducedMotion });
    await page.goto(`${served.url}${hash}`);
    await page.getByRole('button', { name: 'Week', pressed: true }).waitFor();
    await page.waitForLoadState('networkidle');
    const { x, y, width } = (await page.locator('canvas').boundingBox()) ?? { x: 0, y: 0, width: 0 };
    /** Where an instant of a row is in the window from Sunday's midnight for 7 days. */
    const at = (row: number, hours: number): [number, number] => {
      const isNarrow = width < 640;
      const top = isNarrow ? 44 + 64 * row + 35 : 44 + 48 * row + 19;
      return [x + (width * (24 + hours)) / 168, y + top];
    };
    return { page, at };
  }

  const picks = (page: Page): Promise<Pick[]> => page.evaluate<Pick[]>('window.picks');
  /** The window in which it has come to rest, once that is as expected: a slow machine also rests in the middle of a move. */
  const shown = (page: Page, check: (window: { start: number; end: number; length: number }) => void) =>
    vi.waitFor(async () => {
      const [last] = await page.evaluate<{ start: number; end: number }[]>('window.windows.slice(-1)');
      if (!last) throw new Error('it has not come to rest');
      const window = { ...last, length: last.end - last.start };
      check(window);
      return window;
    }, PATIENCE);
  const readout = (page: Page): Promise<string | null> => page.locator('.timeline-readout').textContent();

  test('a mouse picks by dragging and by a click on a free part, moves by the dates, and zooms with Ctrl', async () => {
    const { page, at } = await open();
    await page.mouse.move(...at(0, 10));
    expect(await readout(page)).toMatch(
      /^be-gent1 – pl-poznan1, Mon 23 Nov 10:00 to 10:15: 6 of 10 Gbps free throughout, 999 VLANs; yours: training with 4 Gbps\.$/,
    );
    await page.mouse.move(...at(2, 9.2));
    await page.mouse.down();
    await page.mouse.move(...at(2, 12));
    await page.mouse.move(...at(2, 16.8));
    await page.mouse.up();
    // Not free: nothing is picked.
    await page.mouse.click(...at(1, 36));
    expect(await readout(page)).toContain('0 of 40 Gbps free throughout');
    // Free until Tuesday begins.
    await page.mouse.click(...at(1, 22.2));
    expect(await picks(page)).toEqual([
      { link: 'gr-uth hu-sztaki', start: MONDAY + 8 * HOUR, end: MONDAY + 18 * HOUR },
      { link: 'fr-lille fr-slices', start: MONDAY + 22 * HOUR, end: MONDAY + 24 * HOUR },
    ]);
    const booked = {
      ...OWN,
      ...LINKS[1],
      id: 'con_x_booked',
      start: MONDAY + 22 * HOUR,
      end: MONDAY + 24 * HOUR,
    };
    // The draft becomes a reservation, and is empty then.
    await page.evaluate(`window.timeline.know({ mark: undefined, own: ${JSON.stringify([OWN, booked])} })`);
    await page.evaluate("window.timeline.act({ type: 'redrafted' })");
    expect(await readout(page)).toContain('Drag over a row');
    // My own bar lies below the plot, where a click picks; it can be clicked in the lowest 24 pixels of the row.
    const [ownX, ownY] = at(0, 12);
    await page.mouse.click(ownX, ownY + 6);
    expect(await page.evaluate('window.opened')).toEqual(['training']);
    // An edge of it is dragged.
    const [edgeX, edgeY] = at(0, 17);
    await page.mouse.move(edgeX - 1, edgeY + 28);
    await page.mouse.down();
    await page.mouse.move(...at(0, 19));
    await page.mouse.move(...at(0, 20));
    await page.mouse.up();
    expect(await page.evaluate('window.resized')).toEqual([
      { name: 'training', row: 0, own: OWN, start: OWN.start, end: MONDAY + 20 * HOUR },
    ]);
    expect(await picks(page)).toHaveLength(2);
    const [x, y] = at(0, 10);
    await page.mouse.move(x, y - 40);
    await page.mouse.down();
    await page.mouse.move(x - 100, y - 40, { steps: 4 });
    await page.mouse.up();
    const moved = await shown(page, ({ start, length }) => {
      expect(start).toBeGreaterThan(MONDAY - 24 * HOUR);
      expect(length).toBeCloseTo(168 * HOUR);
    });
    await page.mouse.move(x, y);
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, -50);
    await page.keyboard.up('Control');
    const zoomed = await shown(page, ({ length }) => expect(length).toBeLessThan(moved.length));
    expect(await page.evaluate<number>('devicePixelRatio')).toBe(1);
    await page.mouse.wheel(100, 0);
    await shown(page, ({ start }) => expect(start).toBeGreaterThan(zoomed.start));
  });

  test('a finger taps to pick, moves sideways, selects after a rest, and two fingers zoom; 375 wide', async () => {
    const { page, at } = await open({ hasTouch: true });
    expect(await page.evaluate<boolean>('document.scrollingElement.scrollWidth > window.innerWidth')).toBe(
      false,
    );
    await page.touchscreen.tap(...at(2, 36));
    expect(await picks(page)).toMatchObject([{ link: 'gr-uth hu-sztaki' }]);
    const devtools = await page.context().newCDPSession(page);
    const touch = (type: 'Start' | 'Move' | 'End', ...points: [number, number][]) =>
      devtools.send('Input.dispatchTouchEvent', {
        type: `touch${type}`,
        touchPoints: points.map(([x, y], id) => ({ x, y, id })),
      });
    const [x, y] = at(1, 72);
    await touch('Start', [x, y]);
    for (const by of [10, 20, 40, 80]) await touch('Move', [x - by, y]);
    await touch('End');
    const moved = await shown(page, ({ start }) => expect(start).toBeGreaterThan(MONDAY));
    expect(await picks(page)).toHaveLength(1);
    await touch('Start', [150, y], [220, y]);
    for (const by of [10, 20, 40]) await touch('Move', [150 - by, y], [220 + by, y]);
    await touch('End');
    await shown(page, ({ length }) => expect(length).toBeLessThan(0.7 * moved.length));
    await page.getByRole('button', { name: 'Now' }).click();
    await page.getByRole('button', { name: 'Week' }).click();
    await page.getByText('Sun 22 Nov to Sat 28 Nov 2026').waitFor();
    const [from, to] = [at(2, 51), at(2, 93)];
    await touch('Start', from);
    // The selection begins while the finger rests.
    await page.locator('.timeline-readout', { hasText: 'hu-sztaki, Wed 25 Nov' }).waitFor();
    await touch('Move', to);
    await touch('End');
    expect((await picks(page)).at(-1)).toMatchObject({
      link: 'gr-uth hu-sztaki',
      start: MONDAY + 48 * HOUR,
    });
    await page.close();
  });

  test('the keyboard is enough, and what it does is said', async () => {
    const { page } = await open();
    const said = page.getByRole('status');
    await page.getByRole('searchbox').focus();
    await page.keyboard.press('Tab');
    await page.getByText('be-gent1 – pl-poznan1, Sun 22 Nov 12:00 to 18:00').first().waitFor();
    await page.keyboard.press('ArrowDown');
    for (let times = 0; times < 3; times += 1) await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Shift+ArrowRight');
    await said
      .getByText(
        'fr-lille – fr-slices, Sun 22 Nov 18:00 to Mon 23 Nov 02:00: 40 of 40 Gbps free throughout, 1000 VLANs.',
      )
      .waitFor();
    expect(await page.locator('.timeline-keys').textContent()).toMatch(/lengthen, Enter picks\.$/);
    await page.keyboard.press('Enter');
    expect(await picks(page)).toEqual([
      { link: 'fr-lille fr-slices', start: MONDAY - 6 * HOUR, end: MONDAY + 2 * HOUR },
    ]);
    await page.keyboard.press('+');
    const closer = await shown(page, ({ length }) => expect(length).toBeCloseTo(84 * HOUR));
    await page.keyboard.press('-');
    await shown(page, ({ end }) => expect(end - closer.start).toBeGreaterThan(84 * HOUR));
    await page.keyboard.press('PageDown');
    await shown(page, ({ start }) => expect(start).toBeGreaterThan(closer.start + 100 * HOUR));
    await page.keyboard.press('Home');
    await shown(page, ({ start, end }) => {
      expect(start).toBeLessThan(NOW);
      expect(end).toBeGreaterThan(NOW);
    });
    expect(await page.evaluate<string>('getComputedStyle(document.activeElement).outlineStyle')).toBe(
      'solid',
    );
    // The keys of the browser and of the page stay theirs.
    await page.keyboard.press('Tab');
    expect(await page.evaluate<string>('document.activeElement.tagName')).not.toBe('CANVAS');
    expect(await page.locator('.timeline-keys').isVisible()).toBe(false);
  });

  test('what is pressed twice at once adds up', async () => {
    const { page } = await open();
    await page.evaluate('for (const _ of [1, 2]) document.querySelector(\'[aria-label="Zoom in"]\').click()');
    await shown(page, ({ start, end, length }) => {
      expect(length / HOUR).toBeCloseTo(42);
      expect([start < NOW, end > NOW]).toEqual([true, true]);
    });
  });

  test('the table says the same, marks what is mine, and picks', async () => {
    const { page } = await open();
    await page.evaluate('window.timeline.know({ selectedRows: [0] })');
    await page.getByRole('button', { name: 'Table' }).click();
    const table = page.getByRole('table', {
      name: 'What is free: Sun 22 Nov to Sat 28 Nov 2026, times in Europe/Brussels, rounded to 6 hours',
    });
    await table.waitFor();
    expect(await table.getByRole('rowheader').count()).toBeGreaterThan(2);
    const mine = table.getByRole('row', { name: 'training' }).first();
    expect(await mine.locator('th, td').allTextContents()).toEqual([
      ...['Pick', 'Mon 23 Nov 06:00', 'Mon 23 Nov 18:00', '6 Gbps', '10 Gbps', '999'],
      'training with 4 Gbps',
    ]);
    await mine.getByRole('button').click();
    expect(await picks(page)).toEqual([
      { link: 'be-gent1 pl-poznan1', start: MONDAY + 6 * HOUR, end: MONDAY + 18 * HOUR },
    ]);
    await page.getByRole('combobox').selectOption('All links');
    await table.getByText('gr-uth – hu-sztaki, 1 Gbps').waitFor();
    // Of many of mine a line has the number, and their names when it is opened; the head stays in view.
    const many = Array.from({ length: 40 }, (_, index) => ({
      ...{ ...OWN, id: `con_x_${index}`, name: `a-rather-long-name-of-number-${index}`, bandwidth: 100 },
    }));
    await page.evaluate(`window.timeline.know({ own: ${JSON.stringify(many)} })`);
    const several = table.locator('tr', { hasText: '40, 4 Gbps' });
    await several.locator('summary').click();
    await several.getByText('number-39 with 100 Mbps').waitFor();
    const { overflow, head, top } = await page.evaluate<{
      overflow: number;
      head: number;
      top: number;
    }>(`(() => {
      const place = document.querySelector('.timeline-lines');
      place.scrollTo(0, 200);
      const y = (element) => element.getBoundingClientRect().top;
      return { overflow: place.scrollWidth - place.clientWidth, head: y(place.querySelector('thead th')), top: y(place) };
    })()`);
    expect([overflow, head]).toEqual([0, top]);
  });

  test('the line below the drawing is as high for a long text as for a short one', async () => {
    const { page, at } = await open();
    const height = (of: 'client' | 'scroll') =>
      page.evaluate<number>(`document.querySelector('.timeline-readout').${of}Height`);
    const empty = await height('client');
    const many = Array.from({ length: 60 }, (_, index) => ({ ...OWN, id: `con_x_${index}` }));
    await page.evaluate(`window.timeline.know({ own: ${JSON.stringify(many)} })`);
    await page.mouse.move(...at(0, 10));
    expect(await readout(page)).toMatch(/; 60 of yours, 240 Gbps at most\.$/);
    expect([await height('client'), await height('scroll')]).toEqual([empty, empty]);
  });

  test('on paper it is light at once, also from a dark screen', async () => {
    const { page, at } = await open();
    const { x, y } = (await page.locator('canvas').boundingBox()) ?? { x: 0, y: 0 };
    const [left, top] = at(2, 39.5);
    const free = (): Promise<string> =>
      page.evaluate<string>(
        `(() => {
          const pixel = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
          pixel.drawImage(document.querySelector('canvas'), ${x - left}, ${y - top});
          return [...pixel.getImageData(0, 0, 1, 1).data].join();
        })()`,
      );
    await page.emulateMedia({ colorScheme: 'dark' });
    await vi.waitFor(async () => expect(await free()).toBe('46,138,88,255'), PATIENCE);
    // No frame comes before it is printed.
    await page.evaluate('window.requestAnimationFrame = () => 0');
    await page.emulateMedia({ colorScheme: 'light', media: 'print' });
    await vi.waitFor(async () => expect(await free()).toBe('53,147,95,255'), PATIENCE);
    await page.emulateMedia({ colorScheme: null, media: null });
  });

  test('who may not book is told what is free, and is not invited to book', async () => {
    const { page, at } = await open({ hash: '#look' });
    expect(await readout(page)).toMatch(/^Point at a row, or drag over it, to see what is free\./);
    await page.mouse.move(...at(2, 9.2));
    await page.mouse.down();
    await page.mouse.move(...at(2, 16.8), { steps: 2 });
    await page.mouse.up();
    expect(await readout(page)).toContain('gr-uth – hu-sztaki, Mon 23 Nov 08:00 to 18:00: 1 of 1 Gbps free');
    await page.getByRole('searchbox').focus();
    await page.keyboard.press('Tab');
    await page.getByText('Arrows move, + and − zoom, Shift+arrows lengthen').waitFor();
    await page.keyboard.press('Enter');
    expect(await picks(page)).toEqual([]);
    await page.getByRole('button', { name: 'Table' }).click();
    await page.getByRole('table').waitFor();
    expect(await page.getByText(/\b(Pick|Book|pick)\b/).count()).toBe(0);
    // The role changes.
    await page.evaluate('window.timeline.know({ mayPick: true })');
    await page.getByRole('columnheader', { name: 'Book' }).waitFor();
  });

  test('a refresh asks one tile of each link where nothing has changed', async () => {
    const { page } = await open();
    const asked = (): Promise<number> => page.evaluate<number>('window.asked.splice(0).length');
    expect(await asked()).toBeGreaterThan(LINKS.length);
    await page.evaluate('window.timeline.refresh()');
    await vi.waitFor(
      async () => expect(await page.evaluate<number>('window.asked.length')).toBe(LINKS.length),
      PATIENCE,
    );
  });
});
