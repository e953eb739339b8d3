import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { describeApi } from '../../src/contract/openapi.ts';
import { ProblemBody } from '../../src/contract/problems.ts';
import { ROUTES } from '../../src/contract/routes.ts';
import { descriptionText } from '../../src/server/docs/description.ts';

const committed = readFileSync(new URL('../../src/contract/openapi.json', import.meta.url), 'utf8');

it('the committed description equals the route table and the schemas (npm run generate)', () => {
  expect(committed).toBe(`${descriptionText(describeApi(manifest.version), 2)}\n`);
});

it('describes every route, and marks extensions of the API', () => {
  const operations = Object.values(describeApi('0').paths).flatMap((item) =>
    Object.values(item).filter(
      (value) => typeof value === 'object' && value !== null && 'operationId' in value,
    ),
  );
  expect(operations).toHaveLength(Object.keys(ROUTES).length);
  const extensions = Object.values(ROUTES).filter((route) => 'extension' in route);
  expect(operations.filter((operation) => 'x-extension' in operation)).toHaveLength(extensions.length);
});

it('describes the parameters that extend the API', () => {
  const document: unknown = JSON.parse(committed);
  const extension = { 'x-extension': true };
  expect(document).toHaveProperty(
    ['paths', '/apis/v1alpha1/connectivity', 'post', 'parameters'],
    [
      expect.not.objectContaining(extension),
      expect.objectContaining({ in: 'query', name: 'dry_run', ...extension }),
      expect.objectContaining({ in: 'query', name: 'earliest', ...extension }),
      expect.objectContaining({
        in: 'header',
        name: 'Idempotency-Key',
        schema: { type: 'string' },
        ...extension,
      }),
    ],
  );
});

it('marks the members that extend the API, and no other', () => {
  const { schemas = {} } = describeApi('0').components;
  const Members = v.object({ properties: v.record(v.string(), v.looseObject({})) });
  const extending = (schema: unknown): string[] =>
    Object.entries(v.parse(Members, schema).properties).flatMap(([name, member]) =>
      member['x-extension'] === true ? [name] : [],
    );
  expect(extending(schemas['ReservationRequest'])).toEqual([
    'name',
    'description',
    'via',
    'avoid',
    'direct',
    'duration',
    'volume',
  ]);
  expect(extending(schemas['ReservationUpdate'])).toEqual(['name', 'description']);
  expect(extending(schemas['Reservation'])).toEqual(['via', 'hops', 'name', 'description']);
  expect(extending(schemas['ProblemBody'])).toEqual(['code', 'limits', 'free', 'alternatives']);
  const Detail = v.object({ properties: v.object({ detail: v.object({ items: v.unknown() }) }) });
  const { detail } = v.parse(Detail, schemas['ProblemBody']).properties;
  expect(extending(detail.items)).toEqual(['item', 'code', 'facts']);
});

describe('generators of clients read it', () => {
  it('every path is below the one address, with the portal’s prefix', () => {
    const { paths, servers } = describeApi('0');
    expect(servers.map(({ url }) => url)).toEqual(['/']);
    expect(Object.values(paths).filter((item) => 'servers' in item)).toEqual([]);
    const portal = Object.keys(paths).filter((path) => path.startsWith('/portal/'));
    const routes = Object.values(ROUTES).filter(({ service }) => service === 'portal');
    expect(portal).toHaveLength(new Set(routes.map(({ path }) => path)).size);
  });

  it('an array has items, which a tuple would not', () => {
    expect(committed).not.toContain('prefixItems');
    const range = ['LinkList', 'properties', 'items', 'items', 'properties', 'site1_s_tags'];
    expect(describeApi('0').components['schemas']).toHaveProperty(
      range,
      expect.objectContaining({ type: 'array', minItems: 2, maxItems: 2 }),
    );
    expect(describeApi('0').components['schemas']).toHaveProperty([...range, 'items', 'type'], 'integer');
  });

  it('a created reservation stands before a dry run among the replies of POST', () => {
    const post = committed.slice(committed.indexOf('"operationId": "createReservation"'));
    const statuses = [
      ...post.slice(0, post.indexOf('"operationId": "listReservations"')).matchAll(/^ {10}"(\d{3})": /gm),
    ];
    expect(statuses.slice(0, 3).map(([, status]) => status)).toEqual(['201', '200', '400']);
  });

  it('every error names its codes, with a reply for each that has the right form', () => {
    const { examples = {} } = describeApi('0').components;
    for (const [code, example] of Object.entries(examples)) {
      const { value } = v.parse(v.object({ value: ProblemBody }), example);
      expect(value.code).toBe(code);
      const named = /\b(site|date|bandwidth)/i.exec(code)?.[1]?.toLowerCase();
      const [place] = value.detail[0]?.loc ?? [];
      if (named !== undefined) expect(place?.toLowerCase()).toBe(named);
    }
    const referred = [...committed.matchAll(/#\/components\/examples\/(\w+)/g)].map(([, code]) => code);
    expect(new Set(referred)).toEqual(new Set(Object.keys(examples)));
  });
});

it('a public linter with its recommended settings finds no fault', () => {
  const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [
      path('../../node_modules/@redocly/cli/bin/cli.js'),
      'lint',
      '--extends=recommended',
      path('../../src/contract/openapi.json'),
    ],
    {
      encoding: 'utf8',
      env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    },
  );
  expect(`${stdout}${stderr}`).toContain('Your API description is valid');
  expect(status).toBe(0);
});
