import { http } from 'msw';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { readFeatures, rememberedFeatures } from '../../src/client/features.ts';
import openapi from '../../src/contract/openapi.json' with { type: 'json' };
import { answeredBy } from './answers.ts';
import { html, json, text } from './replies.ts';

const BASE = 'https://conn.example.org';
const PATH = '/apis/v1alpha1/connectivity';
const OTHERS = {
  ...{ earliest: false, volume: false, availability: false, slots: false },
  ...{ names: false, batch: false },
};
const ALL = { list: true, idempotencyKey: true, dryRun: true, ...OTHERS };
const OWN = {
  ...{ ...ALL, earliest: true, volume: true, availability: true, slots: true },
  ...{ names: true, batch: true },
};
const NONE = { list: false, idempotencyKey: false, dryRun: false, ...OTHERS };

async function featuresIn(reply: Response) {
  const { send, sent } = answeredBy(http.get(`${BASE}/api-spec`, () => reply));
  const features = await readFeatures(send, BASE);
  expect(sent).toHaveLength(1);
  return features;
}

const parameters = [
  { name: 'dry_run', in: 'query' },
  { name: 'idempotency-key', in: 'header' },
];
const described = (path: object, more: object = {}) => ({
  openapi: '3.1.0',
  ...more,
  paths: { [PATH]: path },
});

describe('the extensions that an API description names', () => {
  test('in JSON, and the same in YAML under any media type', async () => {
    expect(await featuresIn(json(openapi))).toEqual(OWN);
    for (const type of ['application/yaml', 'text/yaml', 'text/plain', 'application/octet-stream']) {
      expect(await featuresIn(text(stringify(openapi), type))).toEqual(OWN);
    }
  });

  test('in YAML as people write it: comments, anchors, flow style', async () => {
    const yaml = `
      # the real service's
      openapi: 3.0.3
      paths:
        "${PATH}":
          get: &any { responses: { "200": { description: all of them } } }
          post:
            <<: *any
            parameters:
              - { in: query, name: dry_run, schema: { type: boolean } }
              - name: Idempotency-Key
                in: header
    `;
    expect(await featuresIn(text(yaml, 'application/yaml'))).toEqual(ALL);
  });

  test.each<[string, object, object]>([
    ['a path without any', described({ post: {} }), NONE],
    ['parameters of the whole path', described({ get: {}, post: {}, parameters }), ALL],
    [
      'parameters elsewhere in the description',
      described(
        { post: { parameters: [{ $ref: '#/components/parameters/Rehearsal' }, { $ref: 'other.yaml' }] } },
        { components: { parameters: { Rehearsal: parameters[0] } } },
      ),
      { ...NONE, dryRun: true },
    ],
    [
      'a path below that of the server',
      {
        servers: [{ url: `${BASE}/apis/v1alpha1/` }],
        paths: { '/connectivity/': { get: {}, post: { parameters } } },
      },
      ALL,
    ],
    [
      'a description whose portal has servers of its own',
      {
        servers: [{ url: '/' }],
        paths: {
          '/apis/projects/v1alpha1/projects': { servers: [{ url: '/portal' }], get: {} },
          [PATH]: { get: {}, post: { parameters } },
        },
      },
      ALL,
    ],
    ['no paths', { openapi: '3.1.0' }, NONE],
    ['a reference to itself', described({ post: { parameters: [{ $ref: '#/__proto__/x' }] } }), NONE],
  ])('%s', async (_, description, features) => {
    expect(await featuresIn(json(description))).toEqual(features);
    expect(await featuresIn(text(stringify(description), 'application/yaml'))).toEqual(features);
  });

  const earliest = { name: 'earliest', in: 'query' };
  const bodyOf = (schema: object, type = 'application/json') => ({
    requestBody: { content: { [type]: { schema } } },
  });
  const LINK = '/apis/v1alpha1/links/{a}/{b}';
  const loop = { allOf: [{ $ref: '#/components/schemas/Loop' }, { $ref: '#/components/schemas/Body' }] };
  const parts = Array.from({ length: 2000 }, () => ({ $ref: '#/components/schemas/Loop' }));
  const Body = { properties: { duration: {}, volume: {} } };

  test.each<[string, object, object]>([
    [
      'of a search, in the body itself',
      described({ post: { parameters: [earliest], ...bodyOf({ properties: { duration: {} } }) } }),
      { ...NONE, earliest: true },
    ],
    [
      'a parameter earliest without the member duration is another one',
      described({ post: { parameters: [earliest], ...bodyOf({ properties: {} }) } }),
      NONE,
    ],
    [
      'a member volume',
      described({ post: bodyOf(Body, 'application/json; charset=utf-8') }),
      { ...NONE, volume: true },
    ],
    [
      'in parts of a schema that refers to itself',
      described({ post: bodyOf(loop) }, { components: { schemas: { Loop: loop, Body } } }),
      { ...NONE, volume: true },
    ],
    [
      'in parts of which there are too many to follow again and again',
      described(
        { post: bodyOf({ anyOf: parts }) },
        { components: { schemas: { Loop: { anyOf: parts }, Body } } },
      ),
      NONE,
    ],
    [
      'of a link, whose sites have other names in the address',
      { paths: { [`${LINK}/availability`]: { get: {} }, [`${LINK}/slots/`]: { get: {} } } },
      { ...NONE, availability: true, slots: true },
    ],
    ['a member name', described({ post: bodyOf({ properties: { name: {} } }) }), { ...NONE, names: true }],
    [
      'batches, with all that they need',
      {
        paths: {
          [`${PATH}:batch`]: { post: { parameters: [...parameters, { name: 'earliest', in: 'query' }] } },
        },
      },
      { ...NONE, batch: true },
    ],
    ['batches without a common offset', { paths: { [`${PATH}:batch`]: { post: { parameters } } } }, NONE],
    [
      'of a link, to be written',
      { paths: { [`${LINK}/availability`]: { put: {} }, [`${LINK}/x`]: {} } },
      NONE,
    ],
  ])('%s', async (_, description, features) => {
    expect(await featuresIn(json(description))).toEqual(features);
  });

  test.each<[string, Response]>([
    ['a page', html()],
    ['nothing', new Response()],
    ['broken YAML', text('paths: [}', 'application/yaml')],
    ['20,000 lists in each other', text('['.repeat(20_000), 'application/yaml')],
    [
      'an alias to itself a billion times',
      text(
        `a: &a [x,x,x,x,x,x,x,x,x]\n${Array.from(
          { length: 9 },
          (_, at) =>
            `b${at}: &b${at} [${Array(9)
              .fill(`*${at === 0 ? 'a' : `b${at - 1}`}`)
              .join()}]`,
        ).join('\n')}`,
        'text/yaml',
      ),
    ],
  ])('%s names none', async (_, reply) => {
    expect(await featuresIn(reply)).toEqual(NONE);
  });
});

describe('remembered', () => {
  test('for a minute, then read again; a failure is not remembered', async () => {
    let now = 0;
    const replies = [json({}, 503), json(openapi), json({ openapi: '3.1.0', paths: {} })];
    const { send, sent } = answeredBy(
      http.get(`${BASE}/api-spec`, () => replies[sent.length - 1] ?? json({}, 500)),
    );
    const features = rememberedFeatures(send, BASE, () => now);
    await expect(features()).rejects.toMatchObject({ facts: { httpStatus: 503 } });
    expect(await Promise.all([features(), features()])).toEqual([OWN, OWN]);
    now = 59_999;
    expect(await features()).toEqual(OWN);
    expect(sent).toHaveLength(2);
    now = 60_000;
    expect(await features()).toEqual(NONE);
  });
});
