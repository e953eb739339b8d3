import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { builtInTopology } from '../../src/allocator/network.ts';
import { createVerifier } from '../../src/verifier.ts';
import {
  launchChromium,
  logInByHand,
  noteComplaints,
  titleInChromium,
  withoutChromium,
} from '../fixtures/chromium.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { type Served, serveInProcess } from './served.ts';

const FOREVER = '2099-01-01T00:00:00Z';
const experiment = (name: string, project: string, members: Readonly<Record<string, string>>) => ({
  ...{ name, project, members, expires_at: FOREVER },
});
/** Users with one experiment, with two, and with none: one server for all tests, since each is a process. */
const DIRECTORY = {
  users: ['lead', 'viewer', 'alice', 'bob'].map((name) => ({ name })),
  projects: [
    { name: 'lab', expires_at: FOREVER, members: { lead: 'lead', viewer: 'viewer' } },
    { name: 'optics', expires_at: FOREVER, members: { alice: 'lead' } },
  ],
  experiments: [
    experiment('demo', 'lab', { lead: 'lead', viewer: 'viewer' }),
    ...['run1', 'run2'].map((name) => experiment(name, 'optics', { alice: 'lead' })),
  ],
};

/** A part of the built-in network: a page asks for the use of each of its links. */
function smallNetwork() {
  const { sites, links, places = {} } = builtInTopology();
  const kept = (site: string): boolean => /gent|antwerp|poznan|sztaki|uth/.test(site);
  return {
    sites: sites.filter(kept),
    links: links.filter(({ site1, site2 }) => kept(site1) && kept(site2)),
    places: Object.fromEntries(Object.entries(places).filter(([site]) => kept(site))),
  };
}

describe.skipIf(withoutChromium)(titleInChromium('the page, by a person’s clicks'), () => {
  let browser: Browser;
  let served: Served;
  beforeAll(async () => {
    const folder = temporaryFolder();
    const written = (name: string, content: unknown): string => {
      writeFileSync(join(folder, name), JSON.stringify(content));
      return join(folder, name);
    };
    const files = [
      ...['--directory', written('users.json', DIRECTORY)],
      ...['--topology', written('network.json', smallNetwork())],
    ];
    [browser, served] = await Promise.all([
      launchChromium(),
      serveInProcess('--name', '<b>Lab</b>', ...files),
    ]);
  });

  const complaints: string[] = [];
  afterEach(() => expect(complaints.splice(0)).toEqual([]));

  /** A tab of a browser. What it complains about or asks of others is noted. */
  async function openTab(context?: BrowserContext): Promise<Page> {
    const { base_url } = served.addresses;
    const own =
      context ??
      (await browser.newContext({ timezoneId: 'Europe/Brussels', locale: 'en-GB', reducedMotion: 'reduce' }));
    own.setDefaultTimeout(PATIENCE);
    const page = await own.newPage();
    noteComplaints(page, base_url, complaints);
    await page.clock.install();
    await page.goto(base_url);
    return page;
  }

  let only: Page | undefined;
  let whose = '';
  /**
   * The one tab that most tests share, of a user or of nobody: another one, and opening the page again, would cost more than
   * most tests.
   */
  async function tabOf(user: string, address?: string): Promise<Page> {
    const page = only ?? (await openTab());
    if (whose !== user || address !== undefined) {
      await page.context().clearCookies();
      await page.evaluate('localStorage.clear(); sessionStorage.clear();');
      await page.goto(address ?? served.addresses.base_url);
      if (user !== '') await logInByHand(page, user);
    }
    [only, whose] = [page, user];
    return page;
  }

  const form = (page: Page) => page.getByRole('form', { name: /^Book a link|^Change / });
  const answer = (page: Page) => form(page).getByRole('status');
  const result = (page: Page) => page.locator('main .result');
  const fits = (page: Page) =>
    answer(page)
      .getByText(/^It fits/)
      .waitFor();

  async function fill(page: Page, bandwidth: string, name = ''): Promise<void> {
    await page.getByLabel('Site 1').selectOption('be-gent1');
    await page.getByLabel('Site 2').selectOption('pl-poznan1');
    await page.getByLabel('Bandwidth').fill(bandwidth);
    await page.getByLabel('Name (optional)').fill(name);
    await page.clock.runFor(400);
  }

  async function book(page: Page, bandwidth: string, name: string): Promise<void> {
    await fill(page, bandwidth, name);
    await fits(page);
    await page.getByRole('button', { name: 'Book', exact: true }).click();
    await result(page).getByText(`Booked: ${name}`).waitFor();
  }

  const row = (page: Page, name: string) => page.getByRole('listitem').filter({ hasText: name });

  /** Chooses an entry of a reservation's menu. */
  async function choose(page: Page, name: string, entry: string): Promise<void> {
    await page.getByRole('button', { name: `Actions: ${name}` }).click();
    await page.getByRole('menuitem', { name: entry }).click();
  }

  async function remove(page: Page, name: string): Promise<void> {
    await choose(page, name, 'Delete…');
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await result(page).getByText(`Deleted: ${name}`).waitFor();
  }

  test('a lead books what fits, extends, changes, downloads, deletes and logs out; the table is all that is left', async () => {
    const page = await tabOf('');
    expect(await page.locator('header .brand').textContent()).toContain('<b>Lab</b>');
    await page.getByText('Log in to see what is free').waitFor();
    expect(await page.getByRole('table').getByRole('row').count()).toBe(1 + smallNetwork().links.length);
    await logInByHand(page, 'lead');
    whose = 'lead';
    await page.waitForURL(/\?experiment=exp_/);
    await page.getByText('lead: may book, change and delete').waitFor();

    await fill(page, '500G', 'night-run');
    await answer(page).getByText('The link has 100 Gbps; 500 Gbps were asked for.').waitFor();
    await page.getByRole('button', { name: 'Book', exact: true }).click();
    await answer(page)
      .getByText(/^Not booked: The link has 100 Gbps/)
      .waitFor();
    expect(await page.locator(':focus').textContent()).toMatch(/^Not booked: /);
    await page.getByRole('button', { name: '100 Gbps, same period' }).click();
    await answer(page).getByText('100 of 100 Gbps and 1000 VLANs are free').waitFor();
    expect(await page.getByLabel('Bandwidth').inputValue()).toBe('100G');
    await page.getByLabel('Bandwidth').fill('60G');
    await page.clock.runFor(400);
    // A second click finds an empty form.
    await page.getByRole('button', { name: 'Book', exact: true }).dblclick();
    await result(page).getByText('Booked: night-run, be-gent1 – pl-poznan1, 60 Gbps').waitFor();
    await row(page, 'night-run').getByText('active').waitFor();
    expect(await page.locator('[data-id]').count()).toBe(1);

    await choose(page, 'night-run', 'Extend by 1 hour');
    await result(page).getByText('Extended: night-run').waitFor();
    await row(page, 'night-run').getByText(', 3 h').waitFor();
    await choose(page, 'night-run', 'Change…');
    await page.getByLabel('Bandwidth').fill('90G');
    await page.clock.runFor(400);
    await fits(page);
    await page.getByRole('button', { name: 'Save the change' }).click();
    await result(page).getByText('Changed: night-run, be-gent1 – pl-poznan1, 90 Gbps').waitFor();
    expect(await page.locator(':focus').textContent()).toMatch(/^night-run/);
    await page.getByRole('button', { name: 'Close' }).click();
    expect(await result(page).isVisible()).toBe(false);

    // Opened, it stays so where its row is made anew, as each minute does.
    await page.getByRole('button', { name: /^night-run/ }).click();
    const when = () => row(page, 'night-run').locator('.when').textContent();
    const local = await when();
    await page.getByLabel('Times in').selectOption('UTC');
    expect(await when()).not.toBe(local);
    await page.getByLabel('Times in').selectOption('Europe/Brussels');
    await page.getByLabel('On a server at pl-poznan1, device').fill('eno2');
    await page.getByText(/^ip link add link eno2 name sc|ip link add link eno2 name sc/).waitFor();
    expect(await page.getByText('ip link add link eth1 name sc').count()).toBe(1);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      choose(page, 'night-run', 'Download the proof'),
    ]);
    expect(download.suggestedFilename()).toBe('night-run.jwt');
    const { base_url } = served.addresses;
    const verified = await createVerifier({ issuers: { [base_url]: true } }).verify(
      readFileSync(await download.path(), 'utf8'),
    );
    expect(verified).toMatchObject({ kind: 'connectivity' });

    const question = page.getByRole('dialog', { name: 'Delete night-run?' });
    // By keyboard: Escape leaves the menu, arrows move in it.
    await page.getByRole('button', { name: 'Actions: night-run' }).focus();
    for (const key of [
      'Enter',
      'Escape',
      'Enter',
      'ArrowUp',
      'ArrowDown',
      'ArrowDown',
      'ArrowDown',
      'ArrowDown',
      'ArrowDown',
    ])
      await page.keyboard.press(key);
    expect(await page.locator(':focus').textContent()).toBe('Delete…');
    await page.keyboard.press('Enter');
    expect(await question.locator(':focus').textContent()).toBe('Keep it');
    await page.keyboard.press('Escape');
    await question.waitFor({ state: 'detached' });
    expect(await page.locator(':focus').getAttribute('aria-label')).toBe('Actions: night-run');
    await remove(page, 'night-run');
    await page.getByText('None now or later.').waitFor();

    await page.getByRole('link', { name: 'Skip the map' }).focus();
    for (const key of ['Enter', 'Tab']) await page.keyboard.press(key);
    expect(await page.locator('.network-map :focus').count()).toBe(0);

    await page.getByRole('button', { name: 'Log out' }).click();
    await result(page).getByText('You are logged out.').waitFor();
    expect(await page.locator('.map-readout').textContent()).toMatch(/^Choose two sites/);
    expect(await page.locator('.map-link.selected').count()).toBe(0);
    expect(await form(page).isVisible()).toBe(false);
    expect(await page.getByRole('table').isVisible()).toBe(true);
    whose = '';
  });

  test('a viewer sees what a lead books, as a reservation and as use, and finds nothing to book or change with', async () => {
    const [lead, viewer] = [await tabOf('lead'), await openTab()];
    await logInByHand(viewer, 'viewer');
    await viewer.getByText('viewer: may look, not book').waitFor();
    await viewer.getByText('None now or later.').waitFor();
    await book(lead, '60G', 'shared');
    await row(viewer, 'shared').waitFor();
    await viewer.getByRole('button', { name: 'Actions: shared' }).click();
    expect(await viewer.getByRole('menuitem').allTextContents()).toEqual([
      ...['Download the proof', 'Copy the command', 'Show in the timeline'],
    ]);
    await viewer.getByRole('menuitem', { name: 'Show in the timeline' }).click();
    await viewer.getByText('be-gent1 – pl-poznan1, 60 of 100 Gbps in use').waitFor();
    expect(await form(viewer).isVisible()).toBe(false);
    // What is left of the link is what another one can have.
    await fill(lead, '70G');
    await answer(lead).getByText('40 of the 70 Gbps asked for are free').waitFor();
    await remove(lead, 'shared');
    await viewer.getByText('None now or later.').waitFor();
    await viewer.getByText('be-gent1 – pl-poznan1, 0 of 100 Gbps in use').waitFor();
    await viewer.context().close();
  });

  test('of 3,000 reservations 50 are shown, and news leaves a selection; what loads moves nothing that is seen', async () => {
    const page = await tabOf('lead');
    const time = (hours: number, at: number): string =>
      new Date(Date.now() + hours * 3_600_000 + at * 60_000).toISOString();
    const own = Array.from({ length: 3000 }, (_, at) => ({
      ...{
        id: `con_host_${at}`,
        name: `run-${at}`,
        site1: 'be-gent1',
        site2: 'be-antwerp',
        bandwidth: 100 + at,
      },
      ...{
        start_date: time(1, at),
        end_date: time(2, at),
        site1_s_tag: 1,
        site1_c_tag: 2,
        site2_s_tag: 3,
        site2_c_tag: 4,
      },
    }));
    await page.route('**/ui/api/connectivity?*', (route) => {
      const items = route.request().url().includes('state=scheduled') ? own : [];
      return route.fulfill({ json: { items, nextCursor: null } });
    });
    await page.goto(served.addresses.base_url);
    const more = page.getByRole('button', { name: 'Show 50 more of 3000' });
    await more.waitFor();
    const rows = page.locator('.reservations > [data-id]');
    expect(await rows.count()).toBe(50);
    await page.evaluate(
      `window.shift = 0; new PerformanceObserver((list) => { for (const { value } of list.getEntries()) shift += value; }).observe({ type: 'layout-shift', buffered: true })`,
    );
    // Not by a frame of the page: one that is behind another has none.
    await page.waitForTimeout(200);
    expect(await page.evaluate<number>('shift')).toBeLessThan(0.05);
    await page.evaluate(
      'getSelection().selectAllChildren(document.querySelectorAll(".reservations .tags")[1])',
    );
    const selected = () => page.evaluate<string>('String(getSelection())');
    const before = await selected();
    // The first one is gone, and the one below it stays where it is.
    own.shift();
    await page.evaluate("dispatchEvent(new Event('online'))");
    const fewer = page.getByRole('button', { name: 'Show 50 more of 2999' });
    await fewer.waitFor();
    expect(await selected()).toBe(before);
    await fewer.click();
    expect(await rows.count()).toBe(100);
    await page.getByLabel('Find reservations').fill('gent1 run-2999');
    await page.getByText('1 of 2,999').waitFor();
    expect(await rows.count()).toBe(1);
    await page.getByLabel('Find reservations').fill('');
    expect(before).toMatch(/S 1 C 2 – S 3 C 4/);
    await page.getByRole('link', { name: 'Skip the list' }).focus();
    for (const key of ['Enter', 'Tab']) await page.keyboard.press(key);
    expect(await page.locator('footer :focus').count()).toBe(1);
    await page.unroute('**/ui/api/connectivity?*');
  });

  test('names with markup are shown as text, and what is invisible as its code', async () => {
    const page = await tabOf('lead');
    const planted = '<img src=x onerror=alert(1)>\u202e';
    await page.route('**/ui/api/session', async (route) => {
      const reply = await route.fetch();
      await route.fulfill({
        response: reply,
        body: (await reply.text()).replaceAll('"demo"', JSON.stringify(planted)),
      });
    });
    await page.reload();
    await page
      .getByRole('heading', { name: 'Reservations of <img src=x onerror=alert(1)>\\u202e' })
      .waitFor();
    expect(await page.locator('img').count()).toBe(0);
    await page.unroute('**/ui/api/session');
  });

  test('a browser that keeps no cookies or no data of the page is told so, before the login and after it', async () => {
    const told = /^You are not logged in: your browser keeps no cookies or no data of this page\./;
    const other = await tabOf('');
    const page = await openTab(other.context());
    // As Chromium does where its user lets no site keep anything.
    await page.addInitScript(`for (const name of ['localStorage', 'sessionStorage'])
      Object.defineProperty(window, name, { get() { throw new DOMException('denied', 'SecurityError'); } });`);
    await page.reload();
    await page.getByRole('button', { name: 'Log in' }).click();
    await result(page).getByText(told).waitFor();
    expect(page.url()).toBe(`${served.addresses.base_url}/`);
    await page.close();

    await other.route('**/ui/api/session', async (route) => {
      const { cookie: _lost, ...headers } = await route.request().allHeaders();
      await other.context().clearCookies();
      await route.fulfill({ response: await route.fetch({ headers }) });
    });
    await other.getByRole('button', { name: 'Log in' }).click();
    await other.getByRole('radio', { name: /^lead / }).check();
    await other.getByRole('button', { name: 'Log in' }).click();
    await result(other).getByText(told).waitFor();
    await other.unroute('**/ui/api/session');
  });

  test('two sites without a link are chosen on the map by mouse and by keyboard, and booked over the route that is shown', async () => {
    const page = await tabOf('lead');
    await page.getByRole('button', { name: 'Clear the form' }).click();
    const site = (name: string) => page.getByRole('button', { name, exact: true });
    // Enlarged, a mouse drags the map and chooses nothing by that, and the wheel is the page's.
    await page.getByRole('button', { name: 'Enlarge the map', exact: true }).click();
    const corner = () =>
      page.evaluate<number[]>(
        "[document.querySelector('.map-place')].flatMap(({ scrollLeft, scrollTop }) => [scrollLeft, scrollTop])",
      );
    const [left = 0, top = 0] = await corner();
    await page.locator('.map-place').hover();
    await page.mouse.wheel(0, 40);
    expect(await corner()).toEqual([left, top]);
    await page.locator('.map-place').hover({ position: { x: 200, y: 150 } });
    const { x = 0, y = 0 } = (await page.locator('.map-place').boundingBox()) ?? {};
    await page.mouse.down();
    await page.mouse.move(x + 140, y + 120, { steps: 3 });
    await page.mouse.up();
    expect(await corner()).toEqual([left + 60, top + 30]);
    expect(await page.locator('.map-place .selected').count()).toBe(0);
    await page.getByRole('button', { name: 'Whole map' }).click();
    expect(await corner()).toEqual([0, 0]);
    // Sites that lie together are one dot, which opens.
    await page.getByRole('button', { name: /^2 sites: / }).click();
    expect(await page.locator(':focus').getAttribute('aria-label')).toMatch(/^be-/);
    await site('be-gent1').click();
    const scrolled = await page.evaluate<number>('scrollY');
    await site('hu-sztaki').click();
    await fits(page);
    // What is picked moves nothing.
    expect(await page.evaluate<number>('scrollY')).toBe(scrolled);
    await site('be-gent1').click();
    await site('gr-uth').focus();
    const readout = page.locator('.map-readout');
    expect(await readout.textContent()).toBe(
      'be-gent1 – gr-uth over pl-poznan1 and hu-sztaki, 1 Gbps at most',
    );
    await page.keyboard.press('Enter');
    await answer(page)
      .getByText(/over pl-poznan1 and hu-sztaki: 1 of 1 Gbps and 1000 VLANs are free/)
      .waitFor();
    expect(await page.locator(':focus').textContent()).toBe('Book a link');
    const marked = page.locator('.map-place [role=button].selected');
    const names = await marked.evaluateAll((marks) => marks.map((mark) => mark.getAttribute('aria-label')));
    expect(names.map((name) => name?.replace(/,.*/, '')).toSorted()).toEqual([
      ...['be-gent1', 'be-gent1 – pl-poznan1', 'gr-uth', 'gr-uth – hu-sztaki', 'hu-sztaki'],
      ...['hu-sztaki – pl-poznan1', 'pl-poznan1'],
    ]);
    await page.getByLabel('Name (optional)').fill('far');
    await page.getByRole('button', { name: 'Book', exact: true }).click();
    await result(page).getByText('Booked: far, be-gent1 – gr-uth over pl-poznan1 and hu-sztaki').waitFor();
    // It has the whole of its narrowest link: the first time for the next one is when it has ended.
    await site('gr-uth').click();
    await site('be-antwerp').click();
    await page.locator('.answer[data-kind=refused]').waitFor();
    await page.getByRole('button', { name: 'Earliest' }).click();
    await answer(page)
      .getByText(/^It fits, .* over hu-sztaki, pl-poznan1 and be-gent1: 1 of 1 Gbps/)
      .waitFor();
    await row(page, 'far').getByText('be-gent1 – gr-uth over pl-poznan1 and hu-sztaki').waitFor();
    await remove(page, 'far');
    await page.getByRole('button', { name: 'Clear the form' }).click();
  });

  test('where the browser’s clock is wrong it is said, and what is booked for two hours lasts them', async () => {
    const page = await tabOf('lead');
    await page.clock.setSystemTime(Date.now() + 86_400_000);
    await page.reload();
    await page.getByText(/^This computer’s clock is .* ahead of the server’s\./).waitFor();
    await book(page, '1G', 'two-hours');
    await row(page, 'two-hours').getByText(', 2 h').waitFor();
    await row(page, 'two-hours').getByText('active').waitFor();
    await choose(page, 'two-hours', 'End now…');
    await page.getByRole('dialog').getByRole('button', { name: 'End it now' }).click();
    await result(page).getByText('Ended: two-hours').waitFor();
    await page.clock.setSystemTime(Date.now());
  });

  test('the first login chooses an experiment, the address keeps what is looked at, and the next user finds nothing of it', async () => {
    const [from, until] = [20, 22].map((days) => new Date(Date.now() + days * 86_400_000).toISOString());
    const seen = `${served.addresses.base_url}/?link=be-gent1,pl-poznan1&from=${from}&until=${until}`;
    const page = await tabOf('', seen);
    await logInByHand(page, 'alice');
    await page
      .getByRole('region', { name: 'Choose an experiment' })
      .getByRole('button', { name: 'run2' })
      .click();
    await page.getByText('None now or later.').waitFor();
    await page.clock.runFor(1000);
    expect(page.url().startsWith(`${seen}&experiment=exp_`)).toBe(true);
    await page.reload();
    await page.getByText('Chosen: be-gent1 – pl-poznan1').waitFor();
    await page.getByRole('heading', { name: 'Reservations of run2' }).waitFor();
    await page.clock.runFor(1000);
    expect(page.url().startsWith(seen)).toBe(true);

    await page.getByLabel('Name (optional)').fill('secret');
    const other = await openTab(page.context());
    await other.getByRole('button', { name: 'Log out' }).click();
    await logInByHand(other, 'bob');
    await other.getByRole('heading', { name: 'You have no experiment yet' }).waitFor();
    await result(page).getByText('You are now logged in as bob.').waitFor();
    expect(await page.evaluate<string>('JSON.stringify({ ...sessionStorage })')).not.toContain('secret');
    await other.close();
    whose = 'bob';
  });

  test('a login that has ended keeps what was typed, and so does a server that is away for a while', async () => {
    const page = await tabOf('lead');
    await fill(page, '6G', 'kept');
    await fits(page);
    // The session is over; the page learns of it by what it asks for next.
    await page.context().clearCookies();
    await page.getByLabel('Bandwidth').fill('7G');
    await page.clock.runFor(400);
    // It is said once, and the form has the place of what a stranger gets.
    await result(page).getByText('Your login has ended. Log in again; what you typed is kept.').waitFor();
    expect(await page.getByText('Log in to see what is free').isVisible()).toBe(false);
    await vi.waitFor(async () => expect(await answer(page).textContent()).toBe(''), PATIENCE);
    await logInByHand(page, 'lead');
    await fits(page);
    expect(await page.getByLabel('Bandwidth').inputValue()).toBe('7G');

    // Another tab is logged in too, and what becomes of the login in one tab is seen in the other at once.
    const other = await openTab(page.context());
    await other.getByText('Logged in as lead').waitFor();
    await other.getByRole('button', { name: 'Log out' }).click();
    await result(other).getByText('You are logged out.').waitFor();
    await page.getByText('Your login has ended.').first().waitFor();
    await logInByHand(other, 'lead');
    await result(page).waitFor({ state: 'hidden' });
    await fits(page);
    expect(await page.evaluate<string>('JSON.stringify({ ...sessionStorage, ...localStorage })')).not.toMatch(
      /eyJ/,
    );

    await page.context().setOffline(true);
    // The failed request itself raises the alarm.
    await page.getByRole('button', { name: 'Book', exact: true }).click();
    await page.getByText('No answer came to this request to book: kept').waitFor();
    // Nothing but an answer settles it: no keystroke, no click on the map, no reload.
    await page.getByLabel('Bandwidth').fill('9G');
    await page.locator('.map-link').last().dispatchEvent('click');
    await page.getByRole('button', { name: 'Clear the form' }).click();
    expect(await page.getByRole('button', { name: 'Book', exact: true }).isVisible()).toBe(false);
    await page
      .getByRole('alert')
      .getByText(/^The server has not answered since \d\d:\d\d; trying again every 5 s\.$/)
      .waitFor();
    await page.context().setOffline(false);
    await page.reload();
    await page.getByText('Logged in as lead').waitFor();
    await page.getByRole('button', { name: 'Forget it' }).click();
    const question = page.getByRole('dialog', { name: 'Forget this request?' });
    await question.getByText('The list has nothing like it now: kept, be-gent1').waitFor();
    await question.getByRole('button', { name: 'Keep it' }).click();
    await page.getByRole('button', { name: 'Send it again' }).click();
    await result(page).getByText('Booked: kept').waitFor();
    await page.getByRole('button', { name: 'Book', exact: true }).waitFor();
  });
});
