import type { Provider } from 'oidc-provider';
import type { Log } from '../log.ts';
import type { Users } from '../portal/users.ts';
import { readForm, singleParameters } from '../request-reading.ts';
import type { Site } from '../ui/page.ts';
import type { AttemptCounter } from './attempt-limits.ts';
import { answering, type IdentityAnswer } from './provider-endpoints.ts';

/** Options of each page on which people log in. */
export interface LoginPageOptions {
  provider: Provider;
  count: AttemptCounter;
  users: Pick<Users, 'all' | 'experimentsOf'>;
  site: Site;
  /** `{auth_url}`. */
  issuer: string;
  /** `{base_url}`, for which the access token is granted. */
  audience: string;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  log: Log;
}

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

/** A page with a form that is shown by GET and sent by POST. */
export function formPage(answer: (asked: FormRequest) => Promise<Response>): IdentityAnswer {
  return answering(['GET', 'HEAD', 'POST'], async (request, address) => {
    const sent = request.method === 'POST';
    const parameters = sent ? await readForm(request) : singleParameters(new URL(request.url).searchParams);
    const reply = await answer({ request, address, sent, parameters });
    return request.method === 'HEAD' ? new Response(null, reply) : reply;
  });
}
