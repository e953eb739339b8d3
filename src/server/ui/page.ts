import { createHash } from 'node:crypto';
import { html, raw } from 'hono/html';

/** The look of every page but the interactive one of the API, which shares its colours (`api-docs.css`). */
const STYLE = `
:root{color-scheme:light dark;--line:#c9ced6;--soft:#5b6470;--back:#f4f6f8;--card:#fff;--text:#14181f;--accent:#0b5cad;--on:#fff;--bad:#a3150f;--code:#eef1f5}
@media (prefers-color-scheme:dark){:root{--line:#3a424d;--soft:#a3adba;--back:#11151a;--card:#1a2027;--text:#e8ecf1;--accent:#7ab8ff;--on:#0d1218;--bad:#ff9a90;--code:#0f1318}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1rem;background:var(--back);color:var(--text);font:1rem/1.5 system-ui,sans-serif}
main{width:100%;max-width:32rem;background:var(--card);border:1px solid var(--line);border-radius:.75rem;padding:1.5rem 2rem 1.75rem}
.brand{margin:0 0 .75rem;color:var(--soft);font-size:.875rem;overflow-wrap:anywhere}.brand strong{color:var(--text)}
h1{margin:0 0 .5rem;font-size:1.375rem;line-height:1.25}
h2{margin:1.25rem 0 .375rem;font-size:1rem}
p,ul,pre{margin:0 0 .75rem}ul{padding-left:1.25rem}
a{color:var(--accent)}
code,pre{font-family:ui-monospace,monospace;font-size:.9375em;overflow-wrap:anywhere}
code,pre{background:var(--code);border-radius:.25rem}code{padding:.0625rem .3125rem}
pre{padding:.5rem .75rem;white-space:pre-wrap}pre code{display:block;padding:.125rem 0 .125rem 2ch;text-indent:-2ch;font-size:1em}
form{margin:0}label{display:block}
.field{margin:0 0 .375rem}
.field span{display:block;margin-bottom:.375rem;font-weight:600}
input[type=text]{width:100%;padding:.625rem .75rem;border:1px solid var(--line);border-radius:.5rem;background:transparent;color:inherit;font:600 1.5rem/1.2 ui-monospace,monospace;letter-spacing:.12em;text-transform:uppercase}
.code{margin:0 0 .75rem;padding:.5rem;border:1px dashed var(--line);border-radius:.5rem;font:600 1.5rem/1.2 ui-monospace,monospace;letter-spacing:.12em;text-align:center}
fieldset{margin:0 0 .75rem;padding:0;border:0}legend{margin-bottom:.25rem;padding:0;font-weight:600}
.choice{display:grid;grid-template-columns:auto 1fr;column-gap:.625rem;align-items:center;padding:.25rem .75rem;border:1px solid var(--line);border-radius:.5rem;line-height:1.3;cursor:pointer}
.choice+.choice{margin-top:.3125rem}.choice:has(:checked){border-color:var(--accent);box-shadow:inset 0 0 0 1px var(--accent)}
.choice input{margin:0;grid-row:1/3;accent-color:var(--accent)}.choice small{grid-column:2}
.actions{display:flex;gap:.75rem;flex-wrap:wrap;align-items:center}
html{scroll-padding-bottom:5rem}.choices~.actions{position:sticky;bottom:0;margin:0 -.25rem -.25rem;padding:.25rem;background:var(--card)}
button{flex:1;min-width:8rem;padding:.625rem 1rem;border:1px solid transparent;border-radius:.5rem;background:var(--accent);color:var(--on);font:inherit;font-weight:600;cursor:pointer}
button.quiet{flex:none;min-width:0;background:transparent;color:var(--soft);font-weight:400;text-decoration:underline}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
.error{margin:0 0 .75rem;padding:.5rem .75rem;border-left:4px solid var(--bad);color:var(--bad);font-weight:600}
.soft,small{color:var(--soft)}small{font-size:.8125rem}.hint{margin-bottom:1rem;color:var(--soft);font-size:.875rem}
.whole{white-space:nowrap}.below{margin:1rem 0 0;color:var(--soft)}
.scopes{margin-bottom:.75rem;font-size:.875rem}.scopes ul{margin:0;line-height:1.35}
@media (max-width:30rem){body{padding:.5rem;place-items:start stretch}main{padding:.875rem 1rem 1rem}.brand{margin-bottom:.375rem}}
`;

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/** Headers of every page: it may use its own style and form only, and can't be framed (THREATS.md 30). */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  // With no-referrer a browser would send its own form with Origin: null.
  'referrer-policy': 'same-origin',
  'cache-control': 'no-store',
};

/** HTML in which every inserted text is escaped. */
export type Html = ReturnType<typeof html>;

/** Who serves the pages: each page says it above its title, so that a person sees where they are. */
export interface Site {
  /** The operator's name for the server; undefined where none was given. */
  name: string | undefined;
  /** `{base_url}`. */
  baseUrl: string;
}

/** The path of the base address, without a slash at the end. */
export function pathOf({ baseUrl }: Pick<Site, 'baseUrl'>): string {
  return new URL(baseUrl).pathname.replace(/\/$/, '');
}

/** The document of every page. @param head what it loads, beside what all have */
export function documentOf(title: string, head: Html, body: Html): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="data:,">
${head}
</head>
${body}
</html>
`;
}

/** A whole page with the one look. It needs no JavaScript. */
export function page({ name: served = 'slices-conn', baseUrl }: Site, title: string, body: Html): Html {
  const brand = html`<p class="brand"><strong>${served}</strong> at ${new URL(baseUrl).host}</p>`;
  return documentOf(
    `${title} – ${served}`,
    html`<style>${raw(STYLE)}</style>`,
    html`<body><main>${brand}<h1>${title}</h1>${body}</main></body>`,
  );
}

/** A page as a reply. @param policy its security headers, where they are not those of every page */
export async function pageReply(
  content: Html,
  init: ResponseInit = {},
  policy: Readonly<Record<string, string>> = PAGE_HEADERS,
): Promise<Response> {
  const headers = new Headers(init.headers);
  for (const [name, value] of Object.entries(policy)) headers.set(name, value);
  headers.set('content-type', 'text/html; charset=UTF-8');
  headers.append('vary', 'accept');
  return new Response(String(await content), { ...init, headers });
}
