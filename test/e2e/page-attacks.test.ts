import { createServer, type Server } from 'node:http';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { launchChromium, titleInChromium, withoutChromium } from '../fixtures/chromium.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { type Served, serveInProcess } from './served.ts';

describe.skipIf(withoutChromium)(
  titleInChromium('a foreign page in the browser of somebody who is logged in'),
  () => {
    let browser: Browser;
    let served: Served;
    let evil: Server;
    let page: Page;
    let base: string;
    let foreign: string;

    beforeAll(async () => {
      // Of another site (localhost, not 127.0.0.1), over http as the server: no rule on mixed content is in its way.
      evil = createServer((_request, response) =>
        response
          .writeHead(200, { 'content-type': 'text/html' })
          .end('<!doctype html><title>evil</title><body>'),
      );
      await new Promise<void>((resolve) => evil.listen(0, 'localhost', resolve));
      [browser, served] = await Promise.all([launchChromium(), serveInProcess()]);
      const bound = evil.address();
      foreign = `http://localhost:${typeof bound === 'object' ? bound?.port : ''}/`;
      base = served.addresses.base_url;
      page = await browser.newPage();
      await page.goto(`${base}/ui/login`);
      await page.getByRole('radio', { name: 'lead' }).check();
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.waitForURL(`${base}/`);
    });
    afterAll(async () => {
      await browser?.close();
      evil?.close().closeAllConnections();
    });

    /** Runs code in the page that is shown. */
    const inPage = <Answer>(code: string): Promise<Answer> => page.evaluate<Answer>(code);
    const userIn =
      "fetch('/ui/api/session').then((reply) => reply.json()).then(({ user }) => user && user.name)";
    /** Who is logged in, as our own page sees it; and how many reservations there are. */
    async function state(): Promise<{ user: string | null; reservations: number }> {
      await page.goto(`${base}/`);
      const reservations = `fetch('/ui/api/session').then((reply) => reply.json()).then(({ experiments: [{ id }] }) =>
      fetch('/ui/api/connectivity', { headers: { 'slices-experiment': id } })).then((reply) => reply.json()).then(({ items }) => items.length)`;
      return { user: await inPage(userIn), reservations: await inPage(reservations) };
    }

    test('the session is kept over http on this machine, and no script reads its cookie', async () => {
      expect(await state()).toEqual({ user: 'lead', reservations: 0 });
      expect(await inPage('document.cookie')).toBe('');
      expect(await page.context().cookies()).toMatchObject([
        { name: expect.stringMatching(/^__Host-/), httpOnly: true, secure: true, sameSite: 'Strict' },
      ]);
    });

    test('that reads gets nothing: neither with cookies nor without', async () => {
      await page.goto(foreign);
      for (const options of [
        `{ credentials: 'include' }`,
        `{ credentials: 'include', mode: 'no-cors' }`,
        '{}',
      ]) {
        const read = `fetch('${base}/ui/api/session', ${options}).then((reply) => reply.text()).catch(() => 'blocked')`;
        expect(['', 'blocked']).toContain(await inPage(read));
      }
      const script = `new Promise((resolve) => {
      const element = document.createElement('script');
      element.onload = () => resolve('loaded');
      element.onerror = () => resolve('blocked');
      element.src = '${base}/ui/page.js';
      document.body.append(element);
    })`;
      expect(await inPage(script)).toBe('blocked');
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

    test('that frames shows nothing', async () => {
      await page.goto(foreign);
      for (const path of ['/', '/ui/login', '/ui/api/session']) {
        const shown = await inPage<string>(`new Promise((resolve) => {
        const frame = document.createElement('iframe');
        frame.onload = () => { try { resolve(String(frame.contentDocument)); } catch (error) { resolve('blocked'); } };
        frame.src = '${base}${path}';
        document.body.append(frame);
      })`);
        // Of a page that can't be framed, Chromium shows an error of its own, which is of no origin.
        expect(['blocked', 'null']).toContain(shown);
        await expect.poll(() => page.frames()[1]?.url(), { timeout: PATIENCE }).toMatch(/^chrome-error:/);
        await page.goto(foreign);
      }
    });

    test('that opens the login or the page gets no hold of it', async () => {
      await page.goto(foreign);
      const opened = page.context().waitForEvent('page');
      await inPage(`(window.other = window.open('${base}/'), undefined)`);
      const other = await opened;
      await other.waitForLoadState();
      expect(await inPage('window.other.closed')).toBe(true);
      await other.goto(foreign);
      await other.evaluate(`location.href = '${base}/ui/login'`);
      await other.waitForURL(`${base}/`);
      expect(await state()).toEqual({ user: 'lead', reservations: 0 });
    });
  },
);
