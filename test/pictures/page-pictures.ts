import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Browser, Page, Route } from 'playwright-core';
import * as v from 'valibot';
import { type Experiment, ExperimentList, ProjectList } from '../../src/contract/directory.ts';
import { API_VERSION, EXPERIMENT_TOKEN_HEADER, JWT_TYPE } from '../../src/contract/routes.ts';
import { createReferenceServer } from '../../src/reference-server.ts';
import type { DirectoryFile } from '../../src/server/portal/directory.ts';
import { launchChromium } from '../fixtures/chromium.ts';

/** The pictures of the page that the README shows: the network in the light, and a booking on a phone in the dark. */
export const PAGE_PICTURES = {
  network: fileURLToPath(new URL('../../src/page/network.png', import.meta.url)),
  booking: fileURLToPath(new URL('../../src/page/booking.png', import.meta.url)),
};

/** What a picture weighs at most, in bytes. */
export const MOST_BYTES = 250_000;

/** A Monday morning in Brussels. */
const NOW = Date.UTC(2026, 10, 2, 9, 20);
const HOUR = 3_600_000;
/** Where `serve` is usually; nothing listens there, the browser's requests are answered in this process. */
const ADDRESS = 'http://127.0.0.1:4280';

const directory: DirectoryFile = {
  users: [{ name: 'maria' }, { name: 'otto' }],
  projects: [
    { name: 'testbeds', expires_at: '2028-01-01T00:00:00Z', members: { maria: 'lead', otto: 'lead' } },
  ],
  experiments: [
    { name: 'transfer', project: 'testbeds', expires_at: '2027-06-01T00:00:00Z', members: { maria: 'lead' } },
    { name: 'others', project: 'testbeds', expires_at: '2027-06-01T00:00:00Z', members: { otto: 'lead' } },
  ],
};

type Person = 'maria' | 'otto';

/** What is booked, from {@link NOW}: by whom, between which sites, Gbps, after how many hours, for how many; and its name. */
const BOOKED = `
  maria be-gent1 pl-poznan1 10 -1 6 gent-poznan
  maria be-gent1 se-kth 2.5 20 30 kth
  otto be-gent1 pl-poznan1 40 -3 26
  otto be-gent1 pl-poznan1 55 30 20
  otto be-gent1 pl-poznan1 70 51 28
  otto be-gent1 pl-poznan1 30 51 28
  otto be-gent1 pl-poznan1 60 100 36
  otto be-antwerp be-gent1 20 -5 9
  otto be-antwerp be-gent1 45 14 50
  otto be-antwerp be-gent1 70 80 12
  otto be-gent1 fr-lille 65 -6 40
  otto be-gent1 fr-lille 25 20 60
  otto be-gent1 fr-lille 80 110 30
  otto be-gent1 se-kth 4 -2 8
  otto be-gent1 se-kth 6 24 11
  otto be-gent1 se-kth 10 60 22
  otto be-gent1 se-kth 3 96 48
  otto fr-lille fr-slices 12 5 60
  otto fr-lille fr-slices 20 40 24
  otto fr-lille fr-slices 36 90 10
  otto fr-nantes fr-slices 36 -8 18
  otto fr-nantes fr-slices 10 24 60
  otto fr-nantes fr-slices 30 100 20
  otto fr-slices fr-sophia 8 -4 100
  otto fr-slices fr-sophia 20 30 26
  otto fr-slices fr-sophia 30 70 16
  otto fr-slices pl-poznan1 62 -2 33
  otto fr-slices pl-poznan1 30 10 90
  otto fr-slices pl-poznan1 90 118 20
  otto es-uc3m fr-sophia 3 2 40
  otto es-uc3m fr-sophia 6 50 30
  otto es-uc3m fr-sophia 2 60 70
  otto es-uc3m es-upvehu 1 -3 12
  otto es-uc3m es-upvehu 8 26 18
  otto es-uc3m es-upvehu 5 70 60
  otto hu-sztaki pl-poznan1 2 -6 30
  otto hu-sztaki pl-poznan1 7.5 34 22
  otto hu-sztaki pl-poznan1 4 80 55
  otto gr-uth hu-sztaki 0.4 -4 48
  otto gr-uth hu-sztaki 0.5 12 30
  otto gr-uth hu-sztaki 0.9 64 24
`;

/** A server with what is booked, whose clock stands still, as a browser sees it that is logged in as a person. */
async function openNetwork() {
  // What runs already was booked before it began.
  let now = NOW - 12 * HOUR;
  const server = await createReferenceServer({ baseUrl: ADDRESS, now: () => now, directory });
  const ask = async (who: Person, path: string, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers);
    headers.set('authorization', `Bearer ${await server.signIn(who)}`);
    return server.fetch(new Request(`${ADDRESS}${path}`, { ...init, headers }));
  };
  const experiments = `/portal/apis/experiments/${API_VERSION}/experiments/`;
  const experimentsOf = async (who: Person): Promise<v.InferOutput<typeof Experiment>[]> =>
    v.parse(ExperimentList, await (await ask(who, experiments)).json()).experiments;
  const tokenOf = async (who: Person, id: string): Promise<string> =>
    (await ask(who, `${experiments}${id}`, { headers: { accept: JWT_TYPE } })).text();

  for (const line of BOOKED.trim().split('\n')) {
    const [maker, site1, site2, gbps, after, hours, name] = line.trim().split(' ');
    const who = maker === 'maria' ? 'maria' : 'otto';
    const [experiment] = await experimentsOf(who);
    const [start_date, end_date] = [Number(after), Number(after) + Number(hours)].map((at) =>
      new Date(NOW + at * HOUR).toISOString(),
    );
    const reply = await ask(who, `/apis/${API_VERSION}/connectivity`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        [EXPERIMENT_TOKEN_HEADER]: await tokenOf(who, experiment?.id ?? ''),
      },
      body: JSON.stringify({
        ...{ site1, site2, bandwidth: `${Number(gbps) * 1000}`, start_date, end_date, tokens: [], name },
      }),
    });
    if (!reply.ok) throw new Error(`${line}: ${await reply.text()}`);
  }
  now = NOW;

  /** Answers a request of the browser; what needs a login has the person's tokens put in, as the server itself does. */
  async function answer(who: Person, route: Route): Promise<void> {
    const request = route.request();
    const { pathname, search } = new URL(request.url());
    const sent = await request.allHeaders();
    const body = request.postData();
    const kept = ['accept', 'content-type', 'if-none-match', 'idempotency-key'];
    const headers = new Headers(Object.entries(sent).filter(([name]) => kept.includes(name)));
    const init = { method: request.method(), headers, ...(body === null ? {} : { body }) };
    let reply: Response;
    if (pathname === '/ui/api/session') {
      const projects = v.parse(
        ProjectList,
        await (await ask(who, `/portal/apis/projects/${API_VERSION}/projects/`)).json(),
      ).projects;
      const list = (await experimentsOf(who)).map((one) => ({
        ...one,
        project: projects.find(({ id }) => id === one.project_id),
      }));
      reply = Response.json({ user: { id: who, name: who }, experiments: list });
    } else if (pathname.startsWith('/ui/api/') && pathname !== '/ui/api/network') {
      const experiment = sent['slices-experiment'];
      if (experiment !== undefined) headers.set(EXPERIMENT_TOKEN_HEADER, await tokenOf(who, experiment));
      reply = await ask(who, `${pathname.replace('/ui/api', `/apis/${API_VERSION}`)}${search}`, init);
    } else if (/^\/ui\/\w+\.\w+$/.test(pathname)) {
      // The files as built, from which the package serves them.
      const path = fileURLToPath(new URL(`../../dist/cli${pathname}`, import.meta.url));
      const type = { js: 'text/javascript', css: 'text/css', json: 'application/json' }[
        pathname.split('.')[1] ?? ''
      ];
      reply = new Response(readFileSync(path), { headers: { 'content-type': type ?? '' } });
    } else {
      reply = await server.fetch(new Request(request.url(), init));
    }
    await route.fulfill({
      status: reply.status,
      headers: Object.fromEntries(reply.headers),
      body: Buffer.from(await reply.arrayBuffer()),
    });
  }
  return { answer, close: () => server.close() };
}

/** Makes the pictures with a browser. The package must be built. */
export async function makePagePictures(): Promise<{ network: Buffer; booking: Buffer }> {
  const network = await openNetwork();
  const browser = await launchChromium();
  try {
    const wide = await openPage(browser, network.answer, { width: 1280, height: 1180, colorScheme: 'light' });
    const pictureOfNetwork = await wide.screenshot();
    const narrow = await openPage(browser, network.answer, { width: 390, height: 3600, colorScheme: 'dark' });
    await narrow.getByLabel('Site 1').selectOption('be-gent1');
    await narrow.getByLabel('Site 2').selectOption('se-kth');
    await narrow.getByLabel('Bandwidth').fill('9G');
    await narrow.getByLabel('End, or how long').fill('2d');
    await narrow.getByText('Would be accepted').waitFor();
    return { network: pictureOfNetwork, booking: await narrow.locator('form.booking').screenshot() };
  } finally {
    await browser.close();
    await network.close();
  }
}

async function openPage(
  browser: Browser,
  answer: (who: Person, route: Route) => Promise<void>,
  { width, height, colorScheme }: { width: number; height: number; colorScheme: 'light' | 'dark' },
): Promise<Page> {
  const context = await browser.newContext({
    ...{ viewport: { width, height }, colorScheme, reducedMotion: 'reduce' as const },
    ...{ timezoneId: 'Europe/Brussels', locale: 'en-GB' },
  });
  let asked = 0;
  await context.route('**/*', (route) => {
    asked += 1;
    return answer('maria', route);
  });
  const page = await context.newPage();
  await page.clock.setFixedTime(NOW);
  await page.goto(ADDRESS);
  await page.locator('.map-legend').waitFor({ state: 'attached' });
  // The drawing is whole when nothing has been asked for a while.
  for (let before = -1; before !== asked; await page.waitForTimeout(1000)) before = asked;
  return page;
}
