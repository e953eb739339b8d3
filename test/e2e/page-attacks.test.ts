import type { Browser, Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { launchChromium, logInByHand, titleInChromium, withoutChromium } from '../fixtures/chromium.ts';
import { Browser as Person } from '../fixtures/identity.ts';
import { approveAt, approvePageLogin, logInToPage } from '../fixtures/page.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { record, type Served, serveInProcess } from './served.ts';

const HTML = { 'content-type': 'text/html' };

/** For both kinds of attackers; their cookies are kept apart by contexts. */
let browser: Browser;
let served: Served;
let base: string;
beforeAll(async () => {
  if (withoutChromium) return;
  [browser, served] = await Promise.all([launchChromium(), serveInProcess()]);
  base = served.addresses.base_url;
});

describe.skipIf(withoutChromium)(
  titleInChromium('a foreign page in the browser of somebody who is logged in'),
  () => {
    let page: Page;
    let foreign: string;

    beforeAll(async () => {
      // Of another site (localhost, not 127.0.0.1), over http as the server: no rule on mixed content is in its way.
      const { url } = await record(({ path }) => {
        const to = new URL(path, 'http://localhost').searchParams.get('to');
        const text = '<!doctype html><title>evil</title><body>';
        return { text, headers: HTML, ...(to && { status: 302, headers: { location: to } }) };
      });
      foreign = `${url.replace('127.0.0.1', 'localhost')}/`;
      page = await browser.newPage();
      await page.goto(base);
      await logInByHand(page, 'lead');
    });

    /** Runs code in the page that is shown. */
    const inPage = <Answer>(code: string): Promise<Answer> => page.evaluate<Answer>(code);
    /** Asks as our own page does: with the half of the secret that is in its storage. */
    const asked = (path: string, headers = '{}') =>
      `fetch('${path}', { headers: { 'slices-session': localStorage.getItem('slices-conn /ui/ session'), ...${headers} } }).then((reply) => reply.json())`;
    const userIn = `${asked('/ui/api/session')}.then(({ user }) => user && user.name)`;
    /** Who is logged in, as our own page sees it; and how many reservations there are. */
    async function state(): Promise<{ user: string | null; reservations: number }> {
      await page.goto(`${base}/`);
      const reservations = `${asked('/ui/api/session')}.then(({ experiments: [{ id }] }) =>
        ${asked('/ui/api/connectivity', "{ 'slices-experiment': id }")}).then(({ items }) => items.length)`;
      return { user: await inPage(userIn), reservations: await inPage(reservations) };
    }

    test('the session is kept over http on this machine, and no script reads its cookie', async () => {
      expect(await state()).toEqual({ user: 'lead', reservations: 0 });
      expect(await inPage('document.cookie')).toBe('');
      expect(await page.context().cookies()).toMatchObject([
        { name: expect.stringMatching(/^__Host-/), httpOnly: true, secure: true, sameSite: 'Strict' },
      ]);
    });

    test('no less is logged in who comes back by the redirect of an identity provider of another site', async () => {
      const tab = await (await browser.newContext()).newPage();
      await tab.goto(base);
      await tab.getByRole('button', { name: 'Log in' }).click();
      await tab.getByRole('radio', { name: 'lead' }).waitFor();
      const back = await approveAt(new Person(served), tab.url(), 'lead');
      await tab.goto(foreign);
      await tab.evaluate(`location.href = '${foreign}?to=${encodeURIComponent(back)}'`);
      await tab.getByText('Logged in as lead').waitFor();
      await tab.reload();
      await tab.getByText('Logged in as lead').waitFor();
      await tab.context().close();
    });

    test('that posts changes nothing: by fetch, by a form, by a form in text', async () => {
      const booking = `JSON.stringify({ site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: '1', start_date: null, end_date: new Date(Date.now() + 3600e3).toISOString(), tokens: [] })`;
      for (const path of ['/ui/logout', '/ui/api/connectivity?start_now=true']) {
        await page.goto(foreign);
        await inPage(
          `Promise.allSettled([
          fetch('${base}${path}', { method: 'POST', mode: 'no-cors', credentials: 'include', body: ${booking} }),
          fetch('${base}${path}', { method: 'POST', credentials: 'include', headers: { 'x-slices-conn': 'ui', 'content-type': 'application/json' }, body: ${booking} }),
        ])`,
        );
        for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
          await page.goto(foreign);
          const answered = page.waitForResponse((reply) => reply.url().startsWith(base + path));
          await inPage(`(() => {
          const form = Object.assign(document.createElement('form'), { method: 'post', action: '${base}${path}', enctype: '${type}' });
          form.append(Object.assign(document.createElement('input'), { name: '{"x":"', value: '"}' }));
          document.body.append(form);
          form.submit();
        })()`);
          expect((await answered).status()).toBe(403);
          await page.waitForURL(({ href }) => href.startsWith(base));
        }
      }
      expect(await state()).toEqual({ user: 'lead', reservations: 0 });
    });
  },
);

describe.skipIf(withoutChromium)(
  titleInChromium('another server on the same host, to which browsers send our cookies'),
  () => {
    let its: string;
    /** The cookies that the browser has sent to it. */
    let stolen = '';
    /** The cookies that it gives to the browser. */
    let planted: string[] = [];

    beforeAll(async () => {
      const { url } = await record(({ headers }) => {
        stolen = headers.cookie ?? '';
        const text = '<!doctype html><title>thief</title><body>';
        return { text, headers: { ...HTML, 'set-cookie': planted } };
      });
      its = `${url}/`;
    });

    async function victim(user?: string): Promise<Page> {
      const page = await (await browser.newContext()).newPage();
      page.setDefaultTimeout(PATIENCE);
      await page.goto(base);
      if (user !== undefined) await logInByHand(page, user);
      return page;
    }
    /** Its own browser, which plants its cookies in the browsers that come to it. */
    const attacker = (): Person => new Person(served);
    function plantCookiesOf({ cookies }: Person): void {
      planted = [...cookies].map(
        ([name, value]) => `${name}=${value}; Path=/; HttpOnly; Secure; SameSite=Strict`,
      );
    }

    test('reads nothing, books nothing and logs nobody out with the cookie that it was sent, whatever it forges (THREATS.md 95)', async () => {
      const page = await victim('lead');
      const experiment = new URL(page.url()).searchParams.get('experiment') ?? '';
      await page.goto(its);
      expect(stolen).toContain('__Host-slices-conn-');
      const forged = {
        ...{ cookie: stolen, origin: base, 'sec-fetch-site': 'same-origin', 'x-slices-conn': 'ui' },
        ...{ 'content-type': 'application/json', 'slices-experiment': experiment },
      };
      // What else it may forge, and each half of the secret alone, is in test/server/ui/login.test.ts.
      for (const headers of [forged, { ...forged, 'slices-session': 'A'.repeat(43) }]) {
        const ask = (path: string, init: RequestInit = {}) => fetch(base + path, { ...init, headers });
        expect(await (await ask('/ui/api/session')).json()).toEqual({ user: null, experiments: [] });
        expect((await ask('/ui/api/connectivity')).status).toBe(403);
        expect((await ask('/ui/api/connectivity', { method: 'POST', body: '{}' })).status).toBe(403);
        await ask('/ui/logout', { method: 'POST' });
      }
      // In the browser its page is of the same site, so even a Strict cookie goes with its requests.
      const answers = await page.evaluate<string[]>(`Promise.all(['cors', 'no-cors'].map((mode) =>
        fetch('${base}/ui/api/session', { mode, credentials: 'include' }).then((reply) => reply.text()).catch(() => '')))`);
      expect(answers).toEqual(['', '']);
      await page.goto(base);
      await page.getByText('Logged in as lead').waitFor();
      await page.getByText('None now or later.').waitFor();
      await page.context().close();
    });

    test('logs nobody in as somebody else by planting the cookie of its own session (THREATS.md 96)', async () => {
      const own = attacker();
      await logInToPage(own, 'admin');
      plantCookiesOf(own);
      for (const user of ['lead', undefined]) {
        const page = await victim(user);
        await page.goto(its);
        expect(await page.context().cookies()).toMatchObject([{ value: [...own.cookies.values()][0] }]);
        await page.goto(base);
        await page.getByText('Log in to see what is free').waitFor();
        await page.context().close();
      }
    });

    test('logs nobody in as somebody else by the end of its own login, also while theirs is under way (THREATS.md 97)', async () => {
      for (const isUnderWay of [false, true]) {
        const own = attacker();
        const end = await approvePageLogin(own, 'admin');
        plantCookiesOf(own);
        const page = await victim();
        if (isUnderWay) {
          await page.getByRole('button', { name: 'Log in' }).click();
          await page.getByRole('radio', { name: 'lead' }).waitFor();
        }
        await page.goto(its);
        expect(stolen).toBe('');
        await page.goto(end);
        await page.getByText('The login failed. This tab has not started it').first().waitFor();
        await page.getByText('Log in to see what is free').waitFor();
        expect(page.url()).toBe(`${base}/`);
        await page.context().close();
      }
    });
  },
);
