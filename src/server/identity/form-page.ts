import type { Provider } from 'oidc-provider';
import type { Users } from '../portal/users.ts';
import { problemReply, refusal } from '../problem-error.ts';
import { readForm, singleParameters } from '../request-reading.ts';
import { PAGE_HEADERS, type Site } from '../ui/page.ts';
import type { AttemptCounter } from './attempt-limits.ts';

/** Options of each page on which people log in. */
export interface LoginPageOptions {
  provider: Provider;
  attempts: AttemptCounter;
  users: Pick<Users, 'all' | 'experimentsOf'>;
  site: Site;
  /** `{auth_url}`. */
  issuer: string;
}

/** Answers a request for a page on which people log in. `address` is the browser's. @throws ProblemError for an unreadable form */
export type LoginPage = (request: Request, address: string) => Promise<Response>;

/** A request for a page with a form. */
export interface FormRequest {
  request: Request;
  /** The browser's address. */
  address: string;
  /** Whether the form was sent, by POST. */
  sent: boolean;
  /** The form's fields, or the query; each is there once. */
  parameters: URLSearchParams;
}

/** A page with a form that is shown by GET and sent by POST; other methods are refused with 405. */
export function formPage(answer: (asked: FormRequest) => Promise<Response>): LoginPage {
  return async (request, address) => {
    const { method, url } = request;
    if (!['GET', 'HEAD', 'POST'].includes(method)) {
      const refused = refusal('method_not_allowed', 'This address allows GET, HEAD, POST only.');
      return problemReply(refused, { ...PAGE_HEADERS, allow: 'GET, HEAD, POST' });
    }
    const sent = method === 'POST';
    const parameters = sent ? await readForm(request) : singleParameters(new URL(url).searchParams);
    const reply = await answer({ request, address, sent, parameters });
    return method === 'HEAD' ? new Response(null, reply) : reply;
  };
}
