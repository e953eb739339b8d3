import { describe, expect, test } from 'vitest';
import { Browser, startIdentity } from '../../fixtures/identity.ts';
import { asPage, logInToPage } from '../../fixtures/page.ts';

const server = await startIdentity();

const sessionOf = async (browser: Browser) => JSON.parse((await asPage(browser, 'GET', '/api/session')).text);

describe('a login to the page', () => {
  test('by the clicks of a person, as lead: they see their experiments, and book', async () => {
    const browser = new Browser(server);
    const page = await logInToPage(browser, 'lead');
    expect([page.status, page.headers.get('refresh')]).toEqual([200, `0; url=${server.base}/`]);
    const session = await sessionOf(browser);
    expect(session).toMatchObject({ user: { name: 'lead' } });
    expect(session.experiments).toMatchObject([{ name: 'demo', project: { name: 'demo' }, role: 'lead' }]);
    const [{ id }] = session.experiments;
    const booked = await asPage(browser, 'POST', '/api/connectivity?start_now=true', {
      headers: { 'slices-experiment': id },
      body: {
        site1: 'be-gent1',
        site2: 'pl-poznan1',
        bandwidth: '100',
        start_date: null,
        end_date: new Date(Date.now() + 3_600_000).toISOString(),
        tokens: [],
      },
    });
    expect([booked.status, booked.text]).toEqual([201, expect.stringContaining('con_')]);
  });
});
