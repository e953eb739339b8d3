import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { AxeResults } from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { launchChromium, logInByHand, titleInChromium, withoutChromium } from '../fixtures/chromium.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { type Served, serveInProcess } from './served.ts';

/** The rule of WCAG 2.2 that axe runs only when it is asked to: 24 pixels. */
const RULES = { 'target-size': { enabled: true } };
const NARROW = { ...RULES, 'color-contrast': { enabled: false } };
const WIDE = { width: 1280, height: 900 };
/** What a page is made of does not depend on its colours, and its colours not on its width. */
const LOOKS = [
  { colorScheme: 'light', viewport: WIDE, options: { rules: RULES } },
  { colorScheme: 'dark', viewport: WIDE, options: { runOnly: ['color-contrast'] } },
  { colorScheme: 'light', viewport: { width: 375, height: 900 }, options: { rules: NARROW } },
] as const;
const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

describe.skipIf(withoutChromium)(titleInChromium('axe finds nothing'), () => {
  let browser: Browser;
  let served: Served;
  /** One for all, one after another: what each of them begins with is written in its test. */
  let page: Page;
  beforeAll(async () => {
    [browser, served] = await Promise.all([launchChromium(), serveInProcess()]);
    page = await browser.newPage({ viewport: WIDE, reducedMotion: 'reduce' });
    page.setDefaultTimeout(PATIENCE);
  });

  const open = (path: string) => page.goto(`${served.addresses.base_url}${path}`);

  async function logIn(user: string): Promise<void> {
    await page.context().clearCookies();
    await open('/');
    await logInByHand(page, user);
    // All uses are known once the map has its legend.
    await page.locator('.map-legend').waitFor();
  }

  /**
   * What axe finds at its default rules as the page is now, wide in light and in dark, and narrow; and whether it scrolls
   * sideways.
   *
   * @param within what alone has changed since the page was looked at, as a selector
   */
  async function findings(within = 'html'): Promise<string[]> {
    // The page's policy lets no script in by an element; the debugger's evaluation is not the page's.
    if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(AXE);
    const found: string[] = [];
    for (const { colorScheme, viewport, options } of LOOKS) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize(viewport);
      // What changes with the width is drawn by now; colours that move for a moment are read when they have come to rest.
      await page.evaluate(
        'new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))).then(() => Promise.all(document.getAnimations().map(({ finished }) => finished.catch(() => {}))))',
      );
      // Of what is in order it says no details, which is half of its work.
      const { violations, passes } = await page.evaluate<AxeResults>(
        `axe.run(${JSON.stringify(within)}, ${JSON.stringify({ resultTypes: ['violations'], ...options })})`,
      );
      expect(passes.length).toBeGreaterThan(0);
      const look = `${colorScheme} ${viewport.width}`;
      found.push(
        ...violations.flatMap(({ id, nodes }) =>
          nodes.map(({ html, failureSummary }) => `${look} ${id} ${html} ${failureSummary ?? ''}`),
        ),
      );
      if (await page.evaluate<boolean>('document.scrollingElement.scrollWidth > innerWidth'))
        found.push(`${look} scrolls sideways`);
    }
    // The map is behind a button where it is narrow.
    await page.setViewportSize(WIDE);
    return found;
  }

  test('logged out, and while choosing who logs in', async () => {
    await open('/');
    await page.locator('.map-site').first().waitFor();
    await page.getByText('Log in to see').waitFor();
    expect(await findings()).toEqual([]);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await page.getByRole('radio').first().waitFor();
    expect(await findings()).toEqual([]);
  });

  test('as lead: with a form that is wrong, refused and sent; with a reservation and its dialogs; in the table', async () => {
    await logIn('lead');
    await page.getByRole('button', { name: /^3 sites: / }).click();
    await page.getByRole('button', { name: 'be-gent1', exact: true }).click();
    await page.getByText('be-gent1 is chosen.').waitFor();
    await page.getByRole('button', { name: 'gr-uth', exact: true }).click();
    await page.getByLabel('Bandwidth').fill('much');
    await page.getByRole('button', { name: 'Book', exact: true }).click();
    await page.getByText('is not a bandwidth').waitFor();
    expect(await findings()).toEqual([]);
    await page.getByLabel('Bandwidth').fill('2G');
    await page.getByRole('list', { name: 'What would be accepted' }).getByRole('button').first().click();
    await page.getByLabel('Name').fill('seen');
    await page.locator('.answer[data-kind=fits]').waitFor();
    await page.getByLabel('Bandwidth').fill('100M');
    await page.getByRole('button', { name: 'Book', exact: true }).click();
    await page.getByRole('button', { name: /^seen/ }).click();
    await page.getByLabel('On a server at be-gent1, device').fill('');
    await page.getByRole('button', { name: 'pl-poznan1', exact: true }).focus();
    expect(await findings()).toEqual([]);
    await page.getByRole('button', { name: 'Actions: seen' }).click();
    expect(await findings('.menu')).toEqual([]);
    await page.getByRole('menuitem', { name: 'Delete…' }).click();
    expect(await findings('dialog')).toEqual([]);
    await page.getByRole('button', { name: 'Keep it' }).click();
    await page.setViewportSize({ width: 375, height: 900 });
    await page.getByRole('button', { name: 'Map', exact: true }).click();
    expect(await findings('.work')).toEqual([]);
    await page.getByRole('button', { name: 'Table' }).click();
    await page.getByRole('table').first().waitFor();
    expect(await findings('.timeline')).toEqual([]);
  });

  test('as viewer, and with the server away', async () => {
    await logIn('viewer');
    expect(await findings()).toEqual([]);
    await page.route('**/ui/api/**', (route) => route.abort());
    await page.evaluate('dispatchEvent(new Event("online"))');
    await page.locator('.away[role=alert]').waitFor();
    expect(await findings('.away[role=alert]')).toEqual([]);
    await page.unroute('**/ui/api/**');
  });

  test.each(['/nowhere'])('%s', async (path) => {
    await open(path);
    // What is no page is JSON, in which the browser's own viewer is all there is to check.
    if (!(await page.evaluate<string>('document.contentType')).includes('html')) return;
    expect(await findings()).toEqual([]);
  });

  test('/auth/device with a wrong code', async () => {
    await open('/auth/device');
    await page.getByLabel('Code').fill('BBBB-BBBB-BBBB');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('alert').waitFor();
    expect(await findings()).toEqual([]);
  });

  test('/api-docs', async () => {
    await open('/api-docs');
    await page.locator('.opblock').first().waitFor();
    expect(await findings()).toEqual([]);
  });
});
