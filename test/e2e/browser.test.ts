import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import * as v from 'valibot';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/routes.ts';
import { launchChromium, noteComplaints, titleInChromium, withoutChromium } from '../fixtures/chromium.ts';
import { reportOf, reservationIn } from './command.ts';
import { type Client, newClient, type Served, type Started, serveInProcess, storedLogin } from './served.ts';

describe.skipIf(withoutChromium)(titleInChromium('the server’s pages in a browser'), () => {
  let browser: Browser;
  let served: Served;
  /** The lead's machine. */
  let client: Client;
  beforeAll(async () => {
    [browser, served] = await Promise.all([launchChromium(), serveInProcess()]);
    client = newClient(served.env);
  });

  const complaints: string[] = [];
  afterEach(() => {
    expect(complaints.splice(0)).toEqual([]);
  });

  /** A page in a browser profile of its own; everything it complains about or asks of others is noted. */
  async function newPage(options: BrowserContextOptions = {}): Promise<Page> {
    const page = await browser.newPage(options);
    noteComplaints(page, served.addresses.base_url, complaints);
    return page;
  }

  let only: Page | undefined;
  /** The one page of this file, where nobody is logged in: another one would cost three times as much. */
  async function openPage(viewport = { width: 1280, height: 720 }): Promise<Page> {
    only ??= await newPage();
    await only.goto('about:blank');
    await only.context().clearCookies();
    await only.setViewportSize(viewport);
    return only;
  }

  /** Starts a login; the address and the code are read as a person reads them. */
  async function startLogin(machine = client): Promise<{ login: Started; address: string; code: string }> {
    const login = machine.start('login');
    const [, address = '', code = ''] = await login.saw(/^ {2}(http\S+)\n.*\n {2}(\S+)\n/m);
    expect(address).toBe(`${served.addresses.auth_url}/device`);
    expect(code).toMatch(/^[A-Z]{4}(?:-[A-Z]{4}){2}$/);
    return { login, address, code };
  }

  /** What the provider answers to who asks for a code: as a command gets it, where only the page is looked at. */
  async function askForCode(client_id = served.addresses.client_id) {
    const { auth_url } = served.addresses;
    const body = new URLSearchParams({ client_id, scope: 'openid offline_access userinfo projects' });
    const reply = await fetch(`${auth_url}/device/auth`, { method: 'POST', body });
    return v.parse(
      v.object({
        user_code: v.string(),
        verification_uri: v.string(),
        verification_uri_complete: v.string(),
      }),
      await reply.json(),
    );
  }

  async function enterCode(page: Page, address: string, code: string): Promise<void> {
    await page.goto(address);
    await page.getByLabel('Code').fill(code);
    await page.getByRole('button', { name: 'Continue' }).click();
  }

  /** Logs in as a user, in a page. */
  async function logIn(page: Page, user: string): Promise<Started> {
    const { login, address, code } = await startLogin();
    await enterCode(page, address, code);
    await page.getByRole('radio', { name: user }).check();
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('heading', { name: 'You are logged in' }).waitFor();
    expect(await page.getByRole('main').textContent()).toContain(
      `with the code ${code} is logged in as ${user}`,
    );
    expect((await login.ended).exitCode).toBe(0);
    return login;
  }

  test('a lead logs in and books; in the same browser a viewer logs in, who may look and not delete', async () => {
    const page = await openPage();
    const login = await logIn(page, 'lead');
    expect(login.output.stdout).toContain(`Logged in to ${served.addresses.base_url}`);
    expect(await client.command('project', 'use', 'demo')).toMatchObject({ exitCode: 0 });
    expect(await client.command('experiment', 'use', 'demo')).toMatchObject({ exitCode: 0 });
    const book = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '2h'];
    const booked = await client.result(...book);
    expect(booked).toMatchObject({ verified: true, source: 'service' });
    const { id, created_by } = reservationIn(booked);

    const viewer = newClient(served.env);
    const { login: second, address, code } = await startLogin(viewer);
    await enterCode(page, address, code);
    expect(await page.getByRole('radio', { name: 'lead' }).isChecked()).toBe(true);
    await page.getByRole('radio', { name: 'viewer' }).check();
    await page.getByRole('button', { name: 'Log in' }).click();
    expect((await second.ended).exitCode).toBe(0);
    expect(await viewer.command('experiment', 'use', 'demo')).toMatchObject({ exitCode: 0 });
    const shown = await viewer.result('show', id);
    expect(reservationIn(shown)).toEqual(reservationIn(booked));
    expect(await viewer.result('status')).not.toMatchObject({ tokens: [{ sub: created_by }] });
    const refused = reportOf(await viewer.command('--json', 'delete', '--yes', id));
    expect(refused).toMatchObject({ exitCode: 5, code: 'role_not_allowed', httpStatus: 403 });
    expect(refused.message).toContain('viewer');
    expect(await client.command('show', id)).toMatchObject({ exitCode: 0 });
  });

  test('the keyboard is enough, and shows where it is', async () => {
    const { user_code: code, verification_uri } = await askForCode();
    const page = await openPage();
    await page.goto(verification_uri);
    await page.locator('input:focus').waitFor();
    await page.keyboard.type(code);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Is this your login?' }).waitFor();
    const focused = () =>
      page.evaluate<string>(
        'document.activeElement.value + " " + getComputedStyle(document.activeElement).outlineStyle',
      );
    await page.keyboard.press('Tab');
    const lead = await focused();
    await page.keyboard.press('ArrowDown');
    expect(await focused()).not.toBe(lead);
    expect(await focused()).toMatch(/^user_\S+ solid$/);
    expect(await page.getByRole('radio', { name: 'admin' }).isChecked()).toBe(true);
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('approve solid');
    await page.keyboard.press('Enter');
    await page.getByText('is logged in as admin').waitFor();
  });

  test('at 375 × 667 the choice to log in needs no scrolling, for a machine either, of which most is said', async () => {
    const { verification_uri_complete } = await askForCode(`${served.addresses.client_id}-ci`);
    const page = await openPage({ width: 375, height: 667 });
    await page.goto(verification_uri_complete);
    const [logIn, deny] = [
      page.getByRole('button', { name: 'Log in' }),
      page.getByRole('button', { name: 'Deny' }),
    ];
    for (const button of [logIn, deny]) {
      const { y = 0, height = 0 } = (await button.boundingBox()) ?? {};
      expect(height).toBeGreaterThanOrEqual(24);
      expect(y + height).toBeLessThanOrEqual(667);
    }
    const [main, quiet] = await page.evaluate<string[]>(
      '[...document.querySelectorAll("button")].map((button) => getComputedStyle(button).backgroundColor)',
    );
    expect(quiet).toBe('rgba(0, 0, 0, 0)');
    expect(main).not.toBe(quiet);
  });

  describe('/api-docs', () => {
    /** The one page, with what earlier tests have unfolded: it is loaded once, unless it has shown something else since. */
    async function openDocs(): Promise<Page> {
      const address = `${served.addresses.base_url}/api-docs`;
      if (only?.url() === address) return only;
      const page = await openPage();
      await page.goto(address);
      await page.locator('.opblock').first().waitFor();
      return page;
    }

    /** Opens an operation, sends its example, and reads the status and body that came back. */
    async function tryOut(page: Page, operation: string) {
      const block = page.locator(`.opblock[id$="-${operation}"]`);
      await block.locator('.opblock-summary-control').click();
      await block.getByRole('button', { name: 'Execute' }).click();
      const reply = block.locator('.live-responses-table');
      const status = await reply.locator('.response .response-col_status').textContent();
      const text = await reply.locator('.response .highlight-code code').first().textContent();
      return {
        status: status?.trim(),
        body: v.parse(v.record(v.string(), v.unknown()), JSON.parse(text ?? '')),
      };
    }

    test('shows every operation, narrow and wide', async () => {
      const page = await openDocs();
      expect(await page.locator('.opblock').count()).toBe(Object.keys(ROUTES).length);
      for (const width of [320, 1440]) {
        await page.setViewportSize({ width, height: 800 });
        const overflows = 'document.scrollingElement.scrollWidth > window.innerWidth';
        expect(await page.evaluate<boolean>(overflows), String(width)).toBe(false);
      }
    });

    test('says where the tokens come from; with those of a login a link can be booked', async () => {
      // Of the first test.
      const { accessToken } = storedLogin(client);
      const { token } = v.parse(
        v.object({ token: v.string() }),
        await client.result('experiment', 'token', 'demo'),
      );
      const page = await openDocs();
      await page.getByRole('button', { name: 'Authorize' }).first().click();
      const dialog = page.locator('.dialog-ux');
      const text = await dialog.textContent();
      expect(text).toContain('slices-conn user token');
      expect(text).toContain('slices-conn experiment token demo');
      await dialog.getByLabel('auth-bearer-value').fill(accessToken);
      await dialog.locator('#api_key_value').fill(token);
      for (const _ of ['user', 'experiment']) {
        await dialog.getByRole('button', { name: 'Apply credentials' }).first().click();
      }
      await dialog.getByRole('button', { name: 'Close' }).first().click();
      // The example as it stands there.
      const { status, body } = await tryOut(page, 'createReservation');
      expect(body).toMatchObject({ site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 1000 });
      expect(status).toBe('201');
      const { id } = reservationIn({ reservation: body });
      expect(await client.command('show', id)).toMatchObject({ exitCode: 0 });
    });

    test('without JavaScript it points at the description', async () => {
      const page = await newPage({ javaScriptEnabled: false });
      await page.goto(`${served.addresses.base_url}/api-docs`);
      await page.getByRole('link', { name: 'api-spec' }).click();
      expect(page.url()).toBe(`${served.addresses.base_url}/api-spec`);
      await page.close();
    });
  });
});
