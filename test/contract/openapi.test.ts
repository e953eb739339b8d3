import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import openapi from '../../src/contract/openapi.json' with { type: 'json' };
import { describeApi } from '../../src/contract/openapi.ts';
import { ProblemBody } from '../../src/contract/problems.ts';
import { ROUTES } from '../../src/contract/routes.ts';
import { descriptionText } from '../../src/server/docs/description.ts';

const root = join(import.meta.dirname, '../..');
const file = join(root, 'src/contract/openapi.json');
const committed = readFileSync(file, 'utf8');
const { paths, servers, components } = openapi;

test('the committed description equals the route table and the schemas (npm run generate)', () => {
  expect(committed).toBe(`${descriptionText(describeApi(manifest.version), 2)}\n`);
});

test('describes every route, and marks extensions of the API', () => {
  const operations = Object.values(paths).flatMap((item) =>
    Object.values(item).filter((value) => 'operationId' in value),
  );
  expect(operations).toHaveLength(Object.keys(ROUTES).length);
  const extensions = Object.values(ROUTES).filter((route) => 'extension' in route);
  expect(operations.filter((operation) => 'x-extension' in operation)).toHaveLength(extensions.length);
});

test('marks the parameters and members that extend the API, and no other', () => {
  const extending = (members: object): string[] =>
    Object.entries(members).flatMap(([key, member]) => (member['x-extension'] ? [member.name ?? key] : []));
  const { ReservationRequest, ReservationUpdate, Reservation, ProblemBody } = components.schemas;
  const texts = ['name', 'description'];
  expect(extending(paths['/apis/v1alpha1/connectivity'].post.parameters)).toEqual([
    ...['dry_run', 'earliest', 'Idempotency-Key'],
  ]);
  expect(extending(ReservationRequest.properties)).toEqual([
    ...[...texts, 'via', 'avoid', 'direct', 'duration', 'volume'],
  ]);
  expect(extending(ReservationUpdate.properties)).toEqual(texts);
  expect(extending(Reservation.properties)).toEqual(['via', 'hops', ...texts]);
  expect(extending(ProblemBody.properties)).toEqual(['code', 'limits', 'free', 'alternatives']);
  expect(extending(ProblemBody.properties.detail.items.properties)).toEqual(['item', 'code', 'facts']);
});

test('generators of clients read it: one address, arrays with items, and a created reservation before a dry run', () => {
  expect(servers.map(({ url }) => url)).toEqual(['/']);
  expect(Object.values(paths).filter((item) => 'servers' in item)).toEqual([]);
  const portal = Object.values(ROUTES).filter(({ service }) => service === 'portal');
  const described = Object.keys(paths).filter((path) => path.startsWith('/portal/'));
  expect(described).toHaveLength(new Set(portal.map(({ path }) => path)).size);
  expect(committed).not.toContain('prefixItems');
  const tags = components.schemas.LinkList.properties.items.items.properties.site1_s_tags;
  expect(tags).toMatchObject({ type: 'array', minItems: 2, maxItems: 2, items: { type: 'integer' } });
  const post = committed.slice(committed.indexOf('"operationId": "createReservation"'));
  const statuses = Array.from(post.matchAll(/^ {10}"(\d{3})": /gm), ([, status]) => status);
  expect(statuses.slice(0, 3)).toEqual(['201', '200', '400']);
});

test('every error names its codes, and what a link refuses has an example of the right form', () => {
  const { 422: refused, ...others } = paths['/apis/v1alpha1/connectivity'].post.responses;
  expect(others[403].description).toMatch(/^token_missing, .*wrong_project$/);
  const { examples } = refused.content['application/json'];
  expect(Object.keys(examples)).toEqual(['bandwidth_unavailable', 'vlans_unavailable', 'share_exceeded']);
  for (const [code, { value }] of Object.entries(examples))
    expect(v.parse(ProblemBody, value)).toMatchObject({ code, detail: [{ code, loc: ['Bandwidth'] }] });
});

test('a public linter with its recommended settings finds no fault', () => {
  const linter = join(root, 'node_modules/@redocly/cli/bin/cli.js');
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  const args = [linter, 'lint', '--extends=recommended', file];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env });
  expect(`${stdout}${stderr}`).toContain('Your API description is valid');
  expect(status).toBe(0);
});
