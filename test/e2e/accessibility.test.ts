import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { AxeResults } from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Served, serveInProcess } from './served.ts';

/** Debian's; on another machine name it in CHROMIUM. */
const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const missing = !existsSync(executablePath);
const TITLE = missing ? `NOT TESTED with axe: there is no ${executablePath}` : 'axe finds nothing';
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

/** In CI a browser that is missing is a failure: these tests would be green without having run. */
describe.skipIf(missing && !process.env['CI'])(TITLE, () => {
  let browser: Browser;
  let served: Served;
  let contexts: BrowserContext[] = [];
  beforeAll(async () => {
    [browser, served] = await Promise.all([
      chromium.launch({ executablePath, args: ARGS }),
      serveInProcess(),
    ]);
  });
  afterAll(() => browser?.close());
  afterEach(async () => {
    await Promise.all(contexts.map((context) => context.close()));
    contexts = [];
  });

  async function open(path: string, width = 1280): Promise<Page> {
    const context = await browser.newContext({
      ...{ viewport: { width, height: 900 }, reducedMotion: 'reduce' },
    });
    contexts.push(context);
    const page = await context.newPage();
    await page.goto(`${served.addresses.base_url}${path}`);
    return page;
  }

  async function openPage(width?: number): Promise<Page> {
    const page = await open('/', width);
    await page.locator('.map-sites').first().waitFor();
    return page;
  }

  async function logIn(page: Page, user: string): Promise<void> {
    await page.getByRole('link', { name: 'Log in', exact: true }).click();
    await page.getByRole('radio', { name: user }).check();
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText(`Logged in as ${user}`).waitFor();
    // All uses are known once the map has its legend.
    await page.locator('.map-legend').waitFor();
  }

  /** What axe finds on a page as it is now, at its default rules, in light and in dark; and whether it scrolls sideways. */
  async function findings(page: Page): Promise<string[]> {
    // The page's policy lets no script in by an element; the debugger's evaluation is not the page's.
    if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(AXE);
    const found: string[] = [];
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      // Colours that move for a moment are read when they have come to rest.
      await page.evaluate(
        'Promise.all(document.getAnimations().map(({ finished }) => finished.catch(() => {})))',
      );
      // What a page is made of does not depend on its colours.
      const options = colorScheme === 'light' ? '' : ", { runOnly: ['color-contrast'] }";
      const { violations, passes } = await page.evaluate<AxeResults>(`axe.run(document${options})`);
      expect(passes.length).toBeGreaterThan(0);
      found.push(
        ...violations.flatMap(({ id, nodes }) =>
          nodes.map(({ html, failureSummary }) => `${colorScheme} ${id} ${html} ${failureSummary ?? ''}`),
        ),
      );
    }
    if (await page.evaluate<boolean>('document.scrollingElement.scrollWidth > innerWidth'))
      found.push('sideways');
    return found;
  }

  test('logged out, and while choosing who logs in', async () => {
    const page = await openPage();
    await page.getByText('Log in to see').waitFor();
    expect(await findings(page)).toEqual([]);
    await page.getByRole('link', { name: 'Log in', exact: true }).click();
    await page.getByRole('radio').first().waitFor();
    expect(await findings(page)).toEqual([]);
  });

  test.each([375, 1280])(
    'as lead, %i wide: with a form that is wrong, refused and sent; with a reservation and its dialogs; in the table',
    async (width) => {
      const page = await openPage(width);
      await logIn(page, 'lead');
      await page.getByLabel('Site 1').selectOption('be-gent1');
      await page.getByLabel('Site 2').selectOption('se-kth');
      await page.getByLabel('Bandwidth').fill('much');
      await page.getByRole('button', { name: 'Book', exact: true }).click();
      await page.getByText('is not a bandwidth').waitFor();
      expect(await findings(page)).toEqual([]);
      await page.getByLabel('Bandwidth').fill('1000G');
      await page.getByRole('list', { name: 'What would be accepted' }).getByRole('button').first().click();
      await page.getByLabel('Name').fill(`wide-${width}`);
      await page.locator('.answer[data-kind=fits]').waitFor();
      await page.getByLabel('Bandwidth').fill('100M');
      await page.getByRole('button', { name: 'Book', exact: true }).click();
      await page.getByRole('heading', { name: `wide-${width}` }).waitFor();
      await page.getByRole('button', { name: 'be-gent1 – se-kth' }).focus();
      expect(await findings(page)).toEqual([]);
      await page.getByRole('button', { name: `Delete: wide-${width}` }).click();
      expect(await findings(page)).toEqual([]);
      await page.getByRole('button', { name: 'Keep it' }).click();
      await page.getByRole('button', { name: `On a server, what to paste: wide-${width}` }).click();
      await page.getByLabel('Its network device').fill('eth1');
      expect(await findings(page)).toEqual([]);
      await page.getByRole('button', { name: 'Close' }).click();
      await page.getByRole('button', { name: 'Table' }).click();
      await page.getByRole('table').first().waitFor();
      expect(await findings(page)).toEqual([]);
    },
  );

  test('as viewer, and with the server away', async () => {
    const page = await openPage();
    await logIn(page, 'viewer');
    expect(await findings(page)).toEqual([]);
    await page.route('**/ui/api/**', (route) => route.abort());
    await page.evaluate('dispatchEvent(new Event("online"))');
    await page.locator('.away').waitFor();
    expect(await findings(page)).toEqual([]);
  });

  test.each(['/portal', '/auth', '/ui/callback'])('%s', async (path) => {
    const page = await open(path);
    // What is no page is JSON, in which the browser's own viewer is all there is to check.
    if (!(await page.evaluate<string>('document.contentType')).includes('html')) return;
    expect(await findings(page)).toEqual([]);
  });

  test('/auth/device with a wrong code', async () => {
    const page = await open('/auth/device');
    await page.getByLabel('Code').fill('BBBB-BBBB');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('alert').waitFor();
    expect(await findings(page)).toEqual([]);
  });

  test('/api-docs', async () => {
    const page = await open('/api-docs');
    await page.locator('.opblock').first().waitFor();
    expect(await findings(page)).toEqual([]);
  });
});
