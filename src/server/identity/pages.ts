import { createHash } from 'node:crypto';
import { html, raw } from 'hono/html';
import type { Person } from './user-token.ts';

const STYLE = `
:root{color-scheme:light dark;--line:#c9ced6;--soft:#5b6470;--back:#f4f6f8;--card:#fff;--text:#14181f;--accent:#0b5cad;--on:#fff;--bad:#a3150f}
@media (prefers-color-scheme:dark){:root{--line:#3a424d;--soft:#a3adba;--back:#11151a;--card:#1a2027;--text:#e8ecf1;--accent:#7ab8ff;--on:#0d1218;--bad:#ff9a90}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1rem;background:var(--back);color:var(--text);font:1rem/1.5 system-ui,sans-serif}
main{width:100%;max-width:30rem;background:var(--card);border:1px solid var(--line);border-radius:.75rem;padding:1.75rem 2rem 2rem}
.brand{margin:0 0 1.25rem;color:var(--soft);font-size:.875rem}
h1{margin:0 0 .75rem;font-size:1.375rem;line-height:1.25}
p,ul{margin:0 0 1rem}ul{padding-left:1.25rem}
label{display:block}
.field{margin:0 0 1.25rem}
.field span{display:block;margin-bottom:.375rem;font-weight:600}
input[type=text]{width:100%;padding:.625rem .75rem;border:1px solid var(--line);border-radius:.5rem;background:transparent;color:inherit;font:600 1.5rem/1.2 ui-monospace,monospace;letter-spacing:.12em;text-transform:uppercase}
.code{margin:0 0 1rem;padding:.75rem;border:1px dashed var(--line);border-radius:.5rem;font:600 1.75rem/1.2 ui-monospace,monospace;letter-spacing:.12em;text-align:center}
fieldset{margin:0 0 1.25rem;padding:0;border:0}legend{margin-bottom:.375rem;padding:0;font-weight:600}
.choice{display:flex;gap:.625rem;align-items:center;padding:.5rem .75rem;border:1px solid var(--line);border-radius:.5rem;cursor:pointer}
.choice+.choice{margin-top:.375rem}.choice:has(:checked){border-color:var(--accent);box-shadow:inset 0 0 0 1px var(--accent)}
.choice input{margin:0;accent-color:var(--accent)}
.actions{display:flex;gap:.75rem;flex-wrap:wrap}
button{flex:1;min-width:8rem;padding:.625rem 1rem;border:1px solid var(--accent);border-radius:.5rem;background:var(--accent);color:var(--on);font:inherit;font-weight:600;cursor:pointer}
button.quiet{background:transparent;color:var(--accent)}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
.error{margin:0 0 1rem;padding:.625rem .75rem;border-left:4px solid var(--bad);color:var(--bad);font-weight:600}
.soft{color:var(--soft)}code{font-family:ui-monospace,monospace}
`;

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/** Headers of every page: it may use its own style and form only, and can't be framed (HOSTILE.md 30). */
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

/** What every form needs, so that its submission is accepted. */
export interface FormContext {
  /** Where the form is sent. */
  action: string;
  /** Proof that the form came from here. */
  csrf: string;
}

/** The form that asks for the code, with the problem of the last code, or filled in with a code from a link. */
export function codePage(
  form: FormContext,
  { problem, code = '' }: { problem?: string; code?: string } = {},
): Html {
  return page(
    'Log in to slices-conn',
    html`<p>Enter the code that your terminal shows.</p>${problem !== undefined && html`<p class="error" role="alert">${problem}</p>`}${formOf(
      form,
      html`<label class="field"><span>Code</span><input type="text" name="user_code" value="${code}" autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="20" required autofocus></label>
<div class="actions"><button>Continue</button></div>`,
    )}`,
  );
}

/** What a person is asked to confirm (RFC 8628 §5.4). */
export interface Confirmation {
  client: string;
  /** For how many days a machine will act without the person; absent for a login of a person. */
  machineDays?: number;
  /** As the terminal shows it. */
  userCode: string;
  /** Where the request came from. */
  address: string;
  scopes: readonly { name: string; meaning: string }[];
  people: readonly Person[];
  /** The id of the person who is chosen at first. */
  chosen: string | undefined;
}

/** Asks the person to confirm the login and to choose the user. */
export function confirmationPage(form: FormContext, confirmation: Confirmation): Html {
  const { client, machineDays, userCode, address, scopes, people, chosen = people[0]?.id } = confirmation;
  return page(
    'Is this your login?',
    html`<p><strong>${client}</strong> at ${address} asks to be logged in. Go on only if your terminal shows this code:</p>
<p class="code">${userCode}</p>
${machineDays !== undefined && html`<p><strong>A machine will act as you, without you, for ${machineDays} days.</strong> You can end this at any time: <code>slices-conn user sessions</code></p>`}
<p>It will be able to:</p><ul>${scopes.map(({ name, meaning }) => html`<li>${meaning} <span class="soft">(<code>${name}</code>)</span></li>`)}</ul>
${formOf(
  form,
  html`<input type="hidden" name="user_code" value="${userCode}">
<fieldset><legend>Log in as</legend>${people.map(
    ({ id, name }) =>
      html`<label class="choice"><input type="radio" name="user" value="${id}"${raw(id === chosen ? ' checked' : '')} required> ${name}</label>`,
  )}</fieldset>
<div class="actions"><button name="action" value="approve">Log in</button><button class="quiet" name="action" value="deny">Deny</button></div>`,
)}`,
  );
}

/** The last page of a login. */
export function closingPage(title: string, text: string): Html {
  return page(title, html`<p>${text}</p><p class="soft">You can close this page.</p>`);
}

function formOf({ action, csrf }: FormContext, body: Html): Html {
  return html`<form method="post" action="${action}"><input type="hidden" name="csrf" value="${csrf}">${body}</form>`;
}

function page(title: string, body: Html): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} – slices-conn</title>
<link rel="icon" href="data:,">
<style>${raw(STYLE)}</style>
</head>
<body><main><p class="brand">slices-conn</p><h1>${title}</h1>${body}</main></body>
</html>
`;
}
