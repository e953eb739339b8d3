import { Hono } from 'hono';
import { html } from 'hono/html';
import { keptPromises } from '../once-in.ts';
import { documentOf, type Html, pathOf, type Site } from '../ui/page.ts';
import { type DescriptionOptions, describeServer } from './description.ts';
import { DOCS_FILES, type DocsFile } from './files.ts';

/** Options of {@link createDocs}. */
export interface DocsOptions extends DescriptionOptions {
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Reads one of the page's files, as installed with this package; undefined where it is missing. */
  readFile: (name: DocsFile) => Promise<Uint8Array | undefined>;
}

function page({ name = 'slices-conn', baseUrl }: Site, prefix: string): Html {
  return documentOf(
    `Connectivity Reservation Service – ${name}`,
    html`<link rel="stylesheet" href="${prefix}/api-docs/swagger-ui.css">
<link rel="stylesheet" href="${prefix}/api-docs/api-docs.css">
<link rel="service-desc" type="application/json" href="${prefix}/api-spec">`,
    html`<body>
<header><p class="brand"><a href="${prefix}/">${name}</a> at ${new URL(baseUrl).host}</p></header>
<div id="swagger-ui"></div>
<noscript><p>This page needs JavaScript. The description itself is at <a href="${prefix}/api-spec">api-spec</a>.</p></noscript>
<script src="${prefix}/api-docs/swagger-ui-bundle.js"></script>
<script src="${prefix}/api-docs/swagger-initializer.js"></script>
</body>`,
  );
}

const DOCS_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

/** The OpenAPI description and the interactive page (contract/README.md, "What the service does" 7). All files come from this server. */
export function createDocs(options: DocsOptions): Hono {
  const { site, readFile, now } = options;
  const app = new Hono({ strict: false });
  // Made when somebody asks: most servers of a command are never asked.
  let description: ReturnType<typeof describeServer> | undefined;
  const files = keptPromises<Uint8Array>(Object.keys(DOCS_FILES).length);
  const read = async (name: DocsFile): Promise<Uint8Array> => {
    const content = await readFile(name);
    if (content) return content;
    throw new Error(`${name} is not installed`);
  };

  app.get('/api-spec', () => {
    description ??= describeServer(options);
    return new Response(description(now()), { headers: { 'content-type': 'application/json' } });
  });
  app.get(
    '/api-docs',
    async () =>
      new Response(String(await page(site, pathOf(site))), {
        headers: {
          'content-type': 'text/html; charset=utf-8',
          'content-security-policy': DOCS_POLICY,
          'x-content-type-options': 'nosniff',
        },
      }),
  );
  for (const [name, type] of Object.entries(DOCS_FILES) as [DocsFile, string][]) {
    app.get(`/api-docs/${name}`, async () => {
      const content = await (files.get(name) ?? files.keep(name, read(name)));
      return new Response(inPieces(content), {
        headers: {
          'content-type': type,
          'content-length': String(content.byteLength),
          'x-content-type-options': 'nosniff',
          'cache-control': 'public, max-age=3600',
        },
      });
    });
  }
  return app;
}

/** The most of a file that is sent at once, in bytes. */
const PIECE_BYTES = 65_536;

/** A file as a body that holds no more of it than one piece, however slowly it is read (THREATS.md 41). */
function inPieces(content: Uint8Array): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream(
    {
      pull(controller) {
        if (at < content.byteLength) controller.enqueue(content.slice(at, at + PIECE_BYTES));
        at += PIECE_BYTES;
        if (at >= content.byteLength) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
}
