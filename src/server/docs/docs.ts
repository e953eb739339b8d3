import { Hono } from 'hono';
import openapi from '../../contract/openapi.json' with { type: 'json' };
import { EXPERIMENTS_API_GROUP, PROJECTS_API_GROUP } from '../../contract/routes.ts';
import type { ApiGroups } from '../routing.ts';

/** The files that the interactive page consists of, besides its HTML. */
export const DOCS_FILES = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-initializer.js': 'text/javascript; charset=utf-8',
} as const;
/** One of {@link DOCS_FILES}. */
export type DocsFile = keyof typeof DOCS_FILES;

/** What the documentation pages need. */
export interface DocsOptions {
  groups: ApiGroups;
  /** The path of the base address; empty for the root. */
  prefix: string;
  /** Reads one of the page's files, as installed with this package. */
  readFile: (name: DocsFile) => Promise<Uint8Array>;
}

const page = (prefix: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Connectivity Reservation Service</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${prefix}/api-docs/swagger-ui.css">
<link rel="service-desc" type="application/json" href="${prefix}/api-spec">
</head>
<body>
<div id="swagger-ui"></div>
<noscript>This page needs JavaScript. The description itself is at <a href="${prefix}/api-spec">api-spec</a>.</noscript>
<script src="${prefix}/api-docs/swagger-ui-bundle.js"></script>
<script src="${prefix}/api-docs/swagger-initializer.js"></script>
</body>
</html>
`;

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

/** The OpenAPI description and the interactive page (SPEC.md, "What the service does" 7). Nothing is loaded from elsewhere. */
export function createDocs({ groups, prefix, readFile }: DocsOptions): Hono {
  const app = new Hono({ strict: false });
  const description = JSON.stringify({
    ...openapi,
    servers: openapi.servers.map((server) => ({ ...server, url: prefix === '' ? '/' : prefix })),
    paths: placed(openapi.paths, groups, prefix),
  });

  app.get('/api-spec', () => new Response(description, { headers: { 'content-type': 'application/json' } }));
  app.get(
    '/api-docs',
    () =>
      new Response(page(prefix), {
        headers: {
          'content-type': 'text/html; charset=utf-8',
          'content-security-policy': POLICY,
          'x-content-type-options': 'nosniff',
        },
      }),
  );
  for (const [name, type] of Object.entries(DOCS_FILES) as [DocsFile, string][]) {
    app.get(`/api-docs/${name}`, async () => {
      const content = await readFile(name);
      return new Response(Buffer.from(content), {
        headers: {
          'content-type': type,
          'x-content-type-options': 'nosniff',
          'cache-control': 'public, max-age=3600',
        },
      });
    });
  }
  return app;
}

/** The committed description is for the default API groups at the root; a server elsewhere shows its own paths. */
function placed(
  paths: Readonly<Record<string, object>>,
  groups: ApiGroups,
  prefix: string,
): Record<string, object> {
  return Object.fromEntries(
    Object.entries(paths).map(([path, item]) => [
      path
        .replace(`/apis/${PROJECTS_API_GROUP}/`, `/apis/${groups.projects}/`)
        .replace(`/apis/${EXPERIMENTS_API_GROUP}/`, `/apis/${groups.experiments}/`),
      'servers' in item
        ? { ...item, servers: [{ url: `${prefix}/portal`, description: 'The portal' }] }
        : item,
    ]),
  );
}
