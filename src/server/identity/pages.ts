import { html, raw } from 'hono/html';
import { type Html, page, type Site } from '../ui/page.ts';
import type { Person } from './user-token.ts';

/** The context that every form needs for its submission to be accepted. */
export interface FormContext {
  site: Site;
  /** Where the form is sent. */
  action: string;
  /** Proof that the form came from here. */
  csrf: string;
}

/** A code in the form in which a terminal shows it. */
const EXAMPLE = html`<code>WDJB-MJHT-QXZP</code>`;
const LOG_IN = html`<code>slices-conn login</code>`;

/** The problem of the last code, as the form that asks for another says it. */
export const CODE_PROBLEMS = {
  malformed: html`This is not a code. A code is twelve letters, such as ${EXAMPLE}.`,
  unknown: html`There is no such code. Compare it with the one in your terminal.`,
  expired: html`This code has expired. Run ${LOG_IN} again: it shows a new code.`,
  used: html`This code was used already. If your terminal says that you are logged in, close this page. Else run ${LOG_IN} again: it shows a new code.`,
  stale: html`The page was too old. Check the code and continue.`,
} as const;

/** The form that asks for the code, with the problem of the last code and what was typed, or with a code from a link. */
export function codePage(
  form: FormContext,
  { problem, code = '' }: { problem?: Html; code?: string } = {},
): Html {
  return page(
    form.site,
    'Log in to slices-conn',
    html`${problem === undefined ? html`<p>Enter the code that your terminal shows.</p>` : html`<p class="error" role="alert">${problem}</p>`}${formOf(
      form,
      html`<label class="field"><span>Code</span><input type="text" name="user_code" value="${code}" aria-describedby="form-of-code" autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="20" required autofocus></label>
<p class="hint" id="form-of-code">Twelve letters, such as ${EXAMPLE}. Small letters, and no dashes, are fine too.</p>
<div class="actions"><button type="submit">Continue</button></div>`,
    )}<p class="below">No code yet? Run ${LOG_IN} in a terminal.</p>`,
  );
}

/** A user who can be chosen, with what they may do, in words. */
export interface Choice extends Person {
  may: string;
}

/** The login that a person is asked to confirm (RFC 8628 §5.4). */
export interface Confirmation {
  client: string;
  /** For how many days a machine will act without the person; absent for a login of a person. */
  machineDays?: number;
  /** As the terminal shows it. */
  userCode: string;
  /** Where the request came from. */
  address: string;
  scopes: readonly { name: string; meaning: string }[];
  people: readonly Choice[];
}

/** A login to this server's own page, as a person is asked for it. */
export interface PageLogin extends Pick<Confirmation, 'client' | 'scopes' | 'people'> {
  /** The parameters that the form sends again, besides the choice. */
  parameters: URLSearchParams;
}

/** Asks the person who logs in to the page to choose the user. */
export function pageLoginPage(
  { site, action }: Pick<FormContext, 'site' | 'action'>,
  { client, scopes, people, parameters }: PageLogin,
): Html {
  return page(
    site,
    'Log in',
    html`<p>You log in to the web page of this server (<strong>${client}</strong>).</p>
<form method="post" action="${action}">${[...parameters].map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
${choiceOf(people)}
${abilities(scopes)}
<div class="actions"><button type="submit" name="action" value="approve">Log in</button><button type="submit" class="quiet" name="action" value="deny" formnovalidate>Cancel</button></div></form>`,
  );
}

/** The users to choose from. The first one is selected. */
function choiceOf(people: readonly Choice[]): Html {
  return html`<fieldset class="choices"><legend>Log in as</legend>${people.map(
    ({ id, name, may }, index) =>
      html`<label class="choice"><input type="radio" name="user" value="${id}"${raw(index === 0 ? ' checked' : '')} required> ${name}<small>${may}</small></label>`,
  )}</fieldset>`;
}

/** The abilities that a client will have. */
function abilities(scopes: Confirmation['scopes']): Html {
  return html`<div class="scopes">It will be able to:<ul>${scopes.map(({ name, meaning }) => html`<li>${meaning} <span class="soft">(<code>${name}</code>)</span></li>`)}</ul></div>`;
}

/** Asks the person to confirm the login and to choose the user. */
export function confirmationPage(form: FormContext, confirmation: Confirmation): Html {
  const { client, machineDays, userCode, address, scopes, people } = confirmation;
  return page(
    form.site,
    'Is this your login?',
    html`<p><strong>${client}</strong> at ${address} asks to log in. Go on only if your terminal shows this code:</p>
<p class="code">${userCode}</p>
${machineDays !== undefined && html`<p><strong>A machine will act as you, without you, for ${machineDays} days.</strong> You can end this at any time: <code>slices-conn user sessions</code></p>`}
${formOf(
  form,
  html`<input type="hidden" name="user_code" value="${userCode}">
${choiceOf(people)}
${abilities(scopes)}
<div class="actions"><button type="submit" name="action" value="approve">Log in</button><button type="submit" class="quiet" name="action" value="deny">Deny</button></div>`,
)}`,
  );
}

/** The last page of a login that was approved. @param code as the terminal shows it */
export function loggedInPage(site: Site, code: string, name: string): Html {
  return page(
    site,
    'You are logged in',
    html`<p>The terminal with the code <strong class="whole">${code}</strong> is logged in as <strong>${name}</strong>.</p><p class="soft">You can close this page and go on in the terminal.</p>`,
  );
}

/** The last page of a login that was denied. */
export function deniedPage(site: Site): Html {
  return page(
    site,
    'Login denied',
    html`<p>No user was logged in, and the code can’t be used any more.</p><p class="soft">You can close this page.</p>`,
  );
}

function formOf({ action, csrf }: FormContext, body: Html): Html {
  return html`<form method="post" action="${action}"><input type="hidden" name="csrf" value="${csrf}">${body}</form>`;
}
