import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { describeApi } from '../../src/contract/openapi.ts';
import { ROUTES } from '../../src/contract/routes.ts';

const committed = readFileSync(new URL('../../src/contract/openapi.json', import.meta.url), 'utf8');

it('the committed description equals the route table and the schemas (npm run generate)', () => {
  expect(committed).toBe(`${JSON.stringify(describeApi(manifest.version), null, 2)}\n`);
});

it('describes every route, and marks extensions of SPEC.md', () => {
  const operations = Object.values(describeApi('0').paths).flatMap((item) =>
    Object.values(item).filter(
      (value) => typeof value === 'object' && value !== null && 'operationId' in value,
    ),
  );
  expect(operations).toHaveLength(Object.keys(ROUTES).length);
  const extensions = Object.values(ROUTES).filter((route) => 'extension' in route);
  expect(operations.filter((operation) => 'x-extension' in operation)).toHaveLength(extensions.length);
});

it('describes the parameters that extend SPEC.md', () => {
  const document: unknown = JSON.parse(committed);
  const extension = { 'x-extension': true };
  expect(document).toHaveProperty(
    ['paths', '/apis/v1alpha1/connectivity', 'post', 'parameters'],
    [
      expect.not.objectContaining(extension),
      expect.objectContaining({ in: 'query', name: 'dry_run', ...extension }),
      expect.objectContaining({
        in: 'header',
        name: 'Idempotency-Key',
        schema: { type: 'string' },
        ...extension,
      }),
    ],
  );
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
