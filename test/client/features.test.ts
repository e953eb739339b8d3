import { http } from 'msw';
import { expect, test } from 'vitest';
import { readFeatures, rememberedFeatures } from '../../src/client/features.ts';
import openapi from '../../src/contract/openapi.json' with { type: 'json' };
import { EXTENSIONS } from '../../src/contract/routes.ts';
import { answeredBy } from './answers.ts';
import { html, json, text } from './replies.ts';

const BASE = 'https://conn.example.org';
const PATH = '/apis/v1alpha1/connectivity';
const LINK = '/apis/v1alpha1/links/{site1}/{site2}';

type Extension = (typeof EXTENSIONS)[number];
const only = (...names: readonly Extension[]) =>
  Object.fromEntries(EXTENSIONS.map((name) => [name, names.includes(name)]));
const described = (announced: unknown, paths: object = {}) =>
  json({ info: { 'x-slices-extensions': announced }, paths });

test.each<[string, Response, readonly Extension[]]>([
  ['our own has all', json(openapi), EXTENSIONS],
  [
    'some are announced, and one that is not known here',
    described(['batch', 'x', 'dryRun']),
    ['batch', 'dryRun'],
  ],
  [
    'paths that read are enough',
    json({
      paths: { [PATH]: { get: {} }, [`${LINK}/availability`]: { get: {} }, [`${LINK}/slots/`]: { get: {} } },
    }),
    ['list', 'availability', 'slots'],
  ],
  [
    'a path that writes is not: it could lack dry runs',
    json({ paths: { [`${PATH}:batch`]: { post: {} } } }),
    [],
  ],
  ['a path of another method', json({ paths: { [PATH]: { post: {} }, [`${LINK}/slots`]: { put: {} } } }), []],
  ['a text in place of a list', described('batch'), []],
  ['neither', json({ openapi: '3.1.0' }), []],
  ['a list', json([]), []],
  ['a page', html(), []],
  ['nothing', new Response(), []],
  ['YAML', text('paths: {}', 'application/yaml'), []],
])('extensions in a description: %s', async (_, reply, names) => {
  const { send, sent } = answeredBy(http.get(`${BASE}/api-spec`, () => reply));
  expect(await readFeatures(send, BASE)).toEqual(only(...names));
  expect(sent).toHaveLength(1);
});

test('a description in YAML is read by the reader that is given', async () => {
  const { send } = answeredBy(http.get(`${BASE}/api-spec`, () => text('batch', 'application/yaml')));
  const read = async (typed: string) => ({ info: { 'x-slices-extensions': [typed] } });
  expect(await readFeatures(send, BASE, read)).toEqual(only('batch'));
  const unreadable = async () => Promise.reject(new Error('no YAML'));
  expect(await readFeatures(send, BASE, unreadable)).toEqual(only());
});

test('a description is remembered for a minute, then read again; a failure is not remembered', async () => {
  let now = 0;
  const replies = [json({}, 503), json(openapi), json({ openapi: '3.1.0', paths: {} })];
  const { send, sent } = answeredBy(
    http.get(`${BASE}/api-spec`, () => replies[sent.length - 1] ?? json({}, 500)),
  );
  const features = rememberedFeatures(send, BASE, () => now);
  await expect(features()).rejects.toMatchObject({ facts: { httpStatus: 503 } });
  const all = only(...EXTENSIONS);
  expect(await Promise.all([features(), features()])).toEqual([all, all]);
  now = 59_999;
  expect(await features()).toEqual(all);
  expect(sent).toHaveLength(2);
  now = 60_000;
  expect(await features()).toEqual(only());
});
