import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { ROUTES, type RouteName } from '../../src/contract/routes.ts';
import { createDocs } from '../../src/server/docs/docs.ts';
import { addressOf, type Caller, DAY, openService, outcome, type TestService } from '../fixtures/service.ts';

const CONTENT = Uint8Array.from({ length: 200_000 }, (_, index) => index % 251);

/** Documentation whose files a test provides. */
function docsOf(readFile: () => Promise<Uint8Array>) {
  const site = { name: undefined, baseUrl: 'http://127.0.0.1' };
  const groups = { projects: 'projects', experiments: 'experiments' };
  return createDocs({
    groups,
    sites: [],
    usesForeignIssuers: false,
    site,
    readFile,
    now: Date.now,
  });
}
const FILE = '/api-docs/swagger-ui-bundle.js';

describe('row 41: a file of the page', () => {
  test.each([0, 1, 65_535, 65_536, 65_537, 131_072, 200_000])('of %i bytes comes whole', async (size) => {
    const response = await docsOf(async () => CONTENT.subarray(0, size)).request(FILE);
    expect(response.headers.get('content-length')).toBe(String(size));
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(CONTENT.slice(0, size));
  });

  test('is read once, and sent in pieces when the reader asks for them', async () => {
    let reads = 0;
    const docs = docsOf(async () => {
      reads += 1;
      return CONTENT;
    });
    for (let request = 0; request < 3; request += 1) {
      const reader = (await docs.request(FILE)).body?.getReader();
      const { value } = (await reader?.read()) ?? {};
      expect(value?.byteLength).toBe(65_536);
      // A slow reader holds only its own piece.
      expect(value?.buffer.byteLength).toBe(65_536);
      await reader?.cancel();
    }
    expect(reads).toBe(1);
  });
});

test('the examples of a reservation are accepted as they stand, on any day, and those of questions too', async () => {
  const service = await openService();
  const [path, json] = ['/apis/v1alpha1/connectivity', 'application/json'];
  const Content = v.object({
    content: v.object({
      [json]: v.object({ examples: v.record(v.string(), v.object({ value: v.unknown() })) }),
    }),
  });
  const Description = v.object({
    paths: v.looseObject({
      [path]: v.object({ post: v.object({ requestBody: Content }) }),
      [`${path}:batch`]: v.object({ post: v.object({ requestBody: Content }) }),
    }),
  });
  for (const day of [0, 40]) {
    service.moveTo(day * DAY);
    const lead = await service.as('lead');
    const { paths } = v.parse(Description, (await service.send('GET', '/api-spec')).body);
    const examples = paths[path]?.post.requestBody.content[json]?.examples ?? {};
    expect(Object.keys(examples)).toEqual(['period', 'earliest', 'volume']);
    for (const [name, { value }] of Object.entries(examples)) {
      expect(outcome(await lead.book(value, name === 'earliest' ? 'earliest=true' : ''))).toBe('201');
    }
    const together = paths[`${path}:batch`]?.post.requestBody.content[json]?.examples['together']?.value;
    expect(outcome(await lead.send('POST', `${path}:batch`, { body: together }))).toBe('200');
    expect(await asShown(service, lead, 'linkAvailability')).toBe('200');
    expect(await asShown(service, lead, 'linkSlots')).toBe('200');
  }
});

/** The outcome of a question about a link, asked with the examples of its parameters. */
async function asShown(service: TestService, caller: Caller, name: RouteName): Promise<string> {
  const Shown = v.looseObject({ name: v.string(), example: v.optional(v.union([v.string(), v.number()])) });
  const Item = v.looseObject({ get: v.looseObject({ parameters: v.array(Shown) }) });
  const Description = v.object({ paths: v.record(v.string(), v.unknown()) });
  const { paths } = v.parse(Description, (await service.send('GET', '/api-spec')).body);
  const { parameters } = v.parse(Item, paths[ROUTES[name].path]).get;
  const shown = new URLSearchParams();
  for (const { name: parameter, example } of parameters) {
    if (example !== undefined) shown.set(parameter, String(example));
  }
  return outcome(await caller.send('GET', `${addressOf(name)}?${shown}`));
}
